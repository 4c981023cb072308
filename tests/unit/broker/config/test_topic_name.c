/* Names that Kafka takes are taken, names that it refuses are refused with the reason. */
#include "broker/config/topic_name.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena, 1 << 16);
}

static void tear_down(void)
{
    arena_free(&arena);
}

static void good(const char *name)
{
    struct view why = VIEW_NULL;
    ck_assert_int_eq(topic_name_check(view_text(name), &arena, &why), STATUS_OK);
}

static void bad(const char *name, const char *expected)
{
    struct view why = VIEW_NULL;
    ck_assert_int_eq(topic_name_check(view_text(name), &arena, &why), STATUS_INVALID);
    ck_assert_msg(view_is(why, expected), "%.*s", VIEW_PRINT(why));
}

START_TEST(legal_names)
{
    good("a");
    good("...");
    good("A.b_c-9");
    good("__consumer_offsets");
    char name[TOPIC_NAME_LONGEST + 1];
    memset(name, 'x', TOPIC_NAME_LONGEST);
    name[TOPIC_NAME_LONGEST] = '\0';
    good(name);
}
END_TEST

START_TEST(illegal_names)
{
    bad("", "Invalid topic name: it is empty");
    bad(".", "Invalid topic name '.': it would be a path");
    bad("..", "Invalid topic name '..': it would be a path");
    bad("a b", "Invalid topic name 'a b': only a-z, A-Z, 0-9, '.', '_' and '-' may stand in it");
    bad("a/b", "Invalid topic name 'a/b': only a-z, A-Z, 0-9, '.', '_' and '-' may stand in it");
    bad("\xc3\xa9", "Invalid topic name '\xc3\xa9': only a-z, A-Z, 0-9, '.', '_' and '-' may stand "
                    "in it");
    struct view why = VIEW_NULL;
    ck_assert_int_eq(topic_name_check(VIEW_NULL, &arena, &why), STATUS_INVALID);
    ck_assert_int_eq(topic_name_check((struct view){(const uint8_t *)"a\0b", 3}, &arena, &why),
                     STATUS_INVALID);
}
END_TEST

START_TEST(one_character_too_many)
{
    char name[TOPIC_NAME_LONGEST + 2];
    memset(name, 'x', TOPIC_NAME_LONGEST + 1);
    name[TOPIC_NAME_LONGEST + 1] = '\0';
    struct view why = VIEW_NULL;
    ck_assert_int_eq(topic_name_check(view_text(name), &arena, &why), STATUS_INVALID);
    char *text = view_copy_text(why);
    ck_assert_ptr_nonnull(strstr(text, "it has more than 249 characters"));
    free(text);
}
END_TEST

START_TEST(dots_and_underscores_collide)
{
    ck_assert(topic_names_collide(view_text("a.b"), view_text("a_b")));
    ck_assert(topic_names_collide(view_text("a_b"), view_text("a_b")));
    ck_assert(!topic_names_collide(view_text("a-b"), view_text("a_b")));
    ck_assert(!topic_names_collide(view_text("a.b"), view_text("a_bc")));
}
END_TEST

START_TEST(internal_topics)
{
    ck_assert(topic_is_internal(view_text("__consumer_offsets")));
    ck_assert(topic_is_internal(view_text("__transaction_state")));
    ck_assert(topic_is_internal(view_text("__share_group_state")));
    ck_assert(!topic_is_internal(view_text("__other")));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topic name");
    TCase *tests = tcase_create("topic name");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, legal_names);
    tcase_add_test(tests, illegal_names);
    tcase_add_test(tests, one_character_too_many);
    tcase_add_test(tests, dots_and_underscores_collide);
    tcase_add_test(tests, internal_topics);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
