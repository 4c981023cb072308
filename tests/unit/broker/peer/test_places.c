/* The places of a node are tried in turn, each once, beginning with the newest. */
#include "broker/peer/places.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct place at(const char *host)
{
    return place_of(view_text(host), 9093);
}

static struct meeting_places meet(const char *one, const char *other)
{
    return (struct meeting_places){.list = {at(one), at(other)}, .count = 2};
}

/* The next host; it is tried in vain. */
static const char *take(struct places *places, const struct meeting_places *meeting)
{
    const struct place *place = places_now(places, meeting);
    places_next(places, meeting);
    return place->host;
}

static bool record(struct places *places, const char *host)
{
    const struct place place = at(host);
    return places_record(places, &place);
}

static bool tell(struct places *places, const char *host)
{
    const struct place place = at(host);
    return places_tell(places, &place);
}

START_TEST(what_is_recorded)
{
    struct places places = {0};
    ck_assert_ptr_null(places_now(&places, NULL));
    ck_assert(record(&places, "a"));
    ck_assert(!record(&places, "a"));
    ck_assert_str_eq(take(&places, NULL), "a");
    ck_assert_str_eq(take(&places, NULL), "a");
    ck_assert(record(&places, "b"));
    ck_assert_str_eq(take(&places, NULL), "b");
}
END_TEST

START_TEST(what_is_told)
{
    struct places places = {0};
    const struct place nowhere = {0};
    record(&places, "a");
    ck_assert(!places_tell(&places, &nowhere));
    ck_assert(!tell(&places, "a")); /* as it is known */
    ck_assert_str_eq(take(&places, NULL), "a");
    ck_assert(tell(&places, "b"));
    ck_assert(!tell(&places, "b"));
    ck_assert_str_eq(take(&places, NULL), "b");
    ck_assert_str_eq(take(&places, NULL), "a");
    ck_assert_str_eq(take(&places, NULL), "b");
    ck_assert(record(&places, "b")); /* as it was told */
    ck_assert_str_eq(take(&places, NULL), "b");
    ck_assert_str_eq(take(&places, NULL), "b");
}
END_TEST

START_TEST(only_told)
{
    struct places places = {0};
    ck_assert(tell(&places, "a"));
    ck_assert_str_eq(take(&places, NULL), "a");
    ck_assert_str_eq(take(&places, NULL), "a");
}
END_TEST

START_TEST(where_controllers_are_met)
{
    struct places places = {0};
    const struct meeting_places meeting = meet("a", "c");
    record(&places, "a");
    ck_assert_str_eq(take(&places, &meeting), "a");
    ck_assert(places_is_meeting(&places));
    ck_assert_str_eq(take(&places, &meeting), "c"); /* `a` was tried */
    ck_assert(!places_is_meeting(&places));
    ck_assert_str_eq(take(&places, &meeting), "a");
    ck_assert(tell(&places, "b"));
    ck_assert_str_eq(take(&places, &meeting), "b");
    ck_assert_str_eq(take(&places, &meeting), "c");
    ck_assert_str_eq(take(&places, &meeting), "a");
}
END_TEST

START_TEST(hosts_have_a_length)
{
    char host[PEER_HOST_BYTES + 1];
    memset(host, 'h', PEER_HOST_BYTES);
    host[PEER_HOST_BYTES] = '\0';
    ck_assert_int_eq(at(host).port, 0);
    ck_assert_int_eq(at("").port, 0);
    host[PEER_HOST_BYTES - 1] = '\0';
    ck_assert_str_eq(at(host).host, host);
    ck_assert_int_eq(at(host).port, 9093);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("places");
    TCase *tests = tcase_create("places");
    tcase_add_test(tests, what_is_recorded);
    tcase_add_test(tests, what_is_told);
    tcase_add_test(tests, only_told);
    tcase_add_test(tests, where_controllers_are_met);
    tcase_add_test(tests, hosts_have_a_length);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
