/* One group's members, votes, leader and subscriptions. The winners of equal votes are those that
 * the reference chose. */
#include "broker/coordinator/consumer_group.h"

#include <string.h>

#include "broker/coordinator/subscriptions.h"
#include "tests/unit/broker/coordinator/hex.h"
#include "tests/unit/runner.h"

static struct join_group_request_join_group_request_protocol protocols[8];

/* Adds a member with up to three protocols. */
static struct consumer_member *add(struct consumer_group *group, const char *id, const char *first,
                                   const char *second, const char *third)
{
    const char *names[] = {first, second, third};
    size_t count = 0;
    for (; count < 3 && names[count] != NULL; count++) {
        protocols[count].name = view_text(names[count]);
        protocols[count].metadata = view_text(id);
    }
    struct member_details details = {
        .id = view_text(id),
        .client_id = VIEW_LITERAL("c"),
        .client_host = VIEW_LITERAL("/h"),
        .protocol_type = VIEW_LITERAL("consumer"),
        .session_timeout_ms = 10000,
        .rebalance_timeout_ms = 1000,
        .protocols = protocols,
        .protocol_count = count,
    };
    return consumer_group_add(group, &details);
}

static void vote(const char *x, const char *y, const char *winner)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    add(group, "a", x, y, NULL);
    add(group, "b", y, x, NULL);
    ck_assert_msg(view_is(consumer_group_select_protocol(group), winner), "%s", winner);
    consumer_group_free(group);
}

START_TEST(equal_votes_are_decided_as_the_reference_does)
{
    vote("range", "roundrobin", "range");
    vote("roundrobin", "range", "range");
    vote("range", "cooperative-sticky", "range");
    vote("cooperative-sticky", "range", "range");
    vote("sticky", "range", "sticky");
    vote("compatible", "sessioned", "compatible");
    vote("sessioned", "compatible", "compatible");
    vote("xa", "zz", "zz");
    vote("zz", "xa", "zz");
}
END_TEST

START_TEST(only_what_all_support_can_win)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    add(group, "a", "x", "range", NULL);
    add(group, "b", "x", "range", NULL);
    ck_assert(view_is(consumer_group_select_protocol(group), "x"));
    struct consumer_member *last = add(group, "c", "range", "y", NULL);
    ck_assert(view_is(consumer_group_select_protocol(group), "range"));
    consumer_group_remove(group, last);
    ck_assert(view_is(consumer_group_select_protocol(group), "x"));
    consumer_group_free(group);
}
END_TEST

START_TEST(a_protocol_listed_twice_counts_once)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    add(group, "a", "x", "x", "range");
    add(group, "b", "range", "range", NULL);
    ck_assert(view_is(consumer_group_select_protocol(group), "range"));
    consumer_group_free(group);
}
END_TEST

START_TEST(newcomers_need_the_type_and_a_common_protocol)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    protocols[0].name = view_text("range");
    protocols[1].name = view_text("zzz");
    struct view type = view_text("consumer");
    ck_assert(consumer_group_supports(group, type, protocols + 1, 1));
    ck_assert(!consumer_group_supports(group, type, protocols, 0));
    ck_assert(!consumer_group_supports(group, VIEW_EMPTY, protocols, 1));
    add(group, "a", "range", NULL, NULL);
    consumer_group_transition(group, GROUP_PREPARING_REBALANCE, 1);
    protocols[0].name = view_text("range");
    protocols[1].name = view_text("zzz");
    ck_assert(consumer_group_supports(group, type, protocols, 2));
    ck_assert(!consumer_group_supports(group, type, protocols + 1, 1));
    ck_assert(!consumer_group_supports(group, view_text("connect"), protocols, 2));
    add(group, "b", "range", "zzz", NULL); /* one of two lists zzz */
    ck_assert(consumer_group_supports(group, type, protocols, 1));
    ck_assert(!consumer_group_supports(group, type, protocols + 1, 1));
    consumer_group_free(group);
}
END_TEST

START_TEST(the_leader_is_followed_by_the_oldest_member)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    struct consumer_member *a = add(group, "a", "range", NULL, NULL);
    struct consumer_member *b = add(group, "b", "range", NULL, NULL);
    struct consumer_member *c = add(group, "c", "range", NULL, NULL);
    ck_assert_ptr_eq(group->leader, a);
    consumer_group_remove(group, a);
    ck_assert_ptr_eq(group->leader, b);
    ck_assert(!consumer_group_elect_leader(group));
    c->join.waiting = true;
    ck_assert(consumer_group_elect_leader(group));
    ck_assert_ptr_eq(group->leader, c);
    c->join.waiting = false;
    consumer_group_free(group);
}
END_TEST

START_TEST(static_members_are_found_by_instance_and_fenced_by_id)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    protocols[0].name = view_text("range");
    struct member_details details = {.id = view_text("i-1"),
                                     .instance_id = view_text("i"),
                                     .client_id = VIEW_EMPTY,
                                     .client_host = VIEW_EMPTY,
                                     .protocol_type = view_text("consumer"),
                                     .protocols = protocols,
                                     .protocol_count = 1};
    struct consumer_member *member = consumer_group_add(group, &details);
    struct view instance = view_text("i");
    ck_assert_int_eq(consumer_group_check_member(group, view_text("i-1"), instance), KAFKA_NONE);
    ck_assert_int_eq(consumer_group_check_member(group, view_text("i-0"), instance),
                     KAFKA_FENCED_INSTANCE_ID);
    ck_assert_int_eq(consumer_group_check_member(group, view_text("i-1"), view_text("j")),
                     KAFKA_UNKNOWN_MEMBER_ID);
    ck_assert_int_eq(consumer_group_check_member(group, view_text("i-0"), VIEW_NULL),
                     KAFKA_UNKNOWN_MEMBER_ID);
    consumer_group_rename(group, member, view_text("i-2"));
    ck_assert_int_eq(consumer_group_check_member(group, view_text("i-1"), instance),
                     KAFKA_FENCED_INSTANCE_ID);
    ck_assert_ptr_eq(consumer_group_static_member(group, instance), member);
    ck_assert_ptr_eq(consumer_group_member(group, view_text("i-2")), member);
    consumer_group_free(group);
}
END_TEST

/* A subscription of the Java client: version 3, topic "in". */
static const char SUBSCRIPTION[] = "0003000000010002696effffffff00000000ffffffffffff";

static struct consumer_group *subscribed_group(const char *hex, struct view *blob)
{
    *blob = hex_bytes(hex);
    struct group_metadata_value_member_metadata member = {
        .member_id = view_text("a"),
        .client_id = VIEW_EMPTY,
        .client_host = VIEW_EMPTY,
        .subscription = *blob,
        .assignment = VIEW_EMPTY,
        .rebalance_timeout = -1,
        .session_timeout = 7000,
    };
    struct group_metadata_value value = {
        .protocol_type = view_text("consumer"),
        .generation = 4,
        .protocol = view_text("range"),
        .leader = view_text("a"),
        .current_state_timestamp = 99,
        .members = &member,
        .members_count = 1,
    };
    return consumer_group_load(view_text("g"), &value);
}

START_TEST(a_loaded_group_is_stable_and_knows_its_topics)
{
    struct view blob;
    struct consumer_group *group = subscribed_group(SUBSCRIPTION, &blob);
    ck_assert_int_eq(group->state, GROUP_STABLE);
    ck_assert_int_eq(group->generation, 4);
    ck_assert_int_eq(group->state_timestamp_ms, 99);
    ck_assert_ptr_eq(group->leader, consumer_group_first(group));
    ck_assert_int_eq(group->leader->rebalance_timeout_ms, 7000);
    ck_assert(!group->leader->is_new);
    ck_assert(group->subscribed_known);
    ck_assert(consumer_group_is_subscribed(group, view_text("in")));
    ck_assert(!consumer_group_is_subscribed(group, view_text("out")));
    consumer_group_free(group);
    hex_free(blob);
}
END_TEST

START_TEST(subscriptions_of_newer_versions_are_read_and_broken_ones_mean_any_topic)
{
    struct view blob;
    struct consumer_group *newer =
        subscribed_group("0009000000010002696effffffff00000000ffffffffffff1234", &blob);
    ck_assert(newer->subscribed_known);
    ck_assert(!consumer_group_is_subscribed(newer, view_text("out")));
    consumer_group_free(newer);
    hex_free(blob);
    static const char *const broken[] = {"", "00", "000300000005", "ffff"};
    for (size_t i = 0; i < 4; i++) {
        struct consumer_group *group = subscribed_group(broken[i], &blob);
        ck_assert(!group->subscribed_known);
        ck_assert(consumer_group_is_subscribed(group, view_text("out")));
        consumer_group_free(group);
        hex_free(blob);
    }
}
END_TEST

START_TEST(a_generation_without_members_is_empty)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    struct consumer_member *a = add(group, "a", "range", NULL, NULL);
    consumer_group_transition(group, GROUP_PREPARING_REBALANCE, 1);
    consumer_group_next_generation(group, 2);
    ck_assert_int_eq(group->state, GROUP_COMPLETING_REBALANCE);
    ck_assert_int_eq(group->generation, 1);
    ck_assert(view_is(group->protocol_name, "range"));
    consumer_group_remove(group, a);
    consumer_group_transition(group, GROUP_PREPARING_REBALANCE, 3);
    consumer_group_next_generation(group, 4);
    ck_assert_int_eq(group->state, GROUP_EMPTY);
    ck_assert_int_eq(group->generation, 2);
    ck_assert_ptr_null(group->protocol_name.data);
    ck_assert_ptr_null(group->leader);
    ck_assert(view_is(group->protocol_type, "consumer"));
    ck_assert(!consumer_group_is_subscribed(group, view_text("in")));
    consumer_group_free(group);
}
END_TEST

START_TEST(metadata_is_compared_with_its_order)
{
    struct consumer_group *group = consumer_group_new(view_text("g"), 0);
    struct consumer_member *a = add(group, "a", "range", "sticky", NULL);
    protocols[0] = (struct join_group_request_join_group_request_protocol){view_text("range"),
                                                                          view_text("a")};
    protocols[1] = (struct join_group_request_join_group_request_protocol){view_text("sticky"),
                                                                          view_text("a")};
    ck_assert(consumer_member_matches(a, protocols, 2));
    ck_assert(!consumer_member_matches(a, protocols, 1));
    protocols[1].metadata = view_text("b");
    ck_assert(!consumer_member_matches(a, protocols, 2));
    ck_assert(view_is(consumer_member_metadata(a, view_text("sticky")), "a"));
    ck_assert(view_is(consumer_member_metadata(a, view_text("none")), ""));
    consumer_group_free(group);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator consumer group");
    TCase *all = tcase_create("all");
    tcase_add_test(all, equal_votes_are_decided_as_the_reference_does);
    tcase_add_test(all, only_what_all_support_can_win);
    tcase_add_test(all, a_protocol_listed_twice_counts_once);
    tcase_add_test(all, newcomers_need_the_type_and_a_common_protocol);
    tcase_add_test(all, the_leader_is_followed_by_the_oldest_member);
    tcase_add_test(all, static_members_are_found_by_instance_and_fenced_by_id);
    tcase_add_test(all, a_loaded_group_is_stable_and_knows_its_topics);
    tcase_add_test(all, subscriptions_of_newer_versions_are_read_and_broken_ones_mean_any_topic);
    tcase_add_test(all, a_generation_without_members_is_empty);
    tcase_add_test(all, metadata_is_compared_with_its_order);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
