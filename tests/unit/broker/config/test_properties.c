/* server.properties files read as Java's Properties.load reads them. */
#include "broker/config/properties.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct arena arena;
static struct properties_reader reader;

static void set_up(void)
{
    arena_init(&arena, 1 << 16);
}

static void tear_down(void)
{
    arena_free(&arena);
}

static void next_is(const char *expected_key, const char *expected_value)
{
    struct view key = VIEW_NULL;
    struct view value = VIEW_NULL;
    ck_assert_int_eq(properties_next(&reader, &arena, &key, &value), STATUS_OK);
    ck_assert_msg(view_is(key, expected_key), "key %.*s", VIEW_PRINT(key));
    ck_assert_msg(view_is(value, expected_value), "value %.*s", VIEW_PRINT(value));
}

static void end_is(enum status expected)
{
    struct view key = VIEW_NULL;
    struct view value = VIEW_NULL;
    ck_assert_int_eq(properties_next(&reader, &arena, &key, &value), expected);
}

START_TEST(separators)
{
    properties_init(&reader, view_text("a=1\nb:2\nc 3\nd = 4\ne\t:\t5\nf\ng=\nh==6\n"));
    next_is("a", "1");
    next_is("b", "2");
    next_is("c", "3");
    next_is("d", "4");
    next_is("e", "5");
    next_is("f", "");
    next_is("g", "");
    next_is("h", "=6");
    end_is(STATUS_NOT_FOUND);
}
END_TEST

START_TEST(comments_blank_lines_and_line_ends)
{
    properties_init(&reader, view_text("# one\r\n\r\n  ! two\n   a=1\r\n\t\n#x\\\nb=2"));
    next_is("a", "1");
    next_is("b", "2");
    ck_assert_int_eq(reader.line, 7);
    end_is(STATUS_NOT_FOUND);
    properties_init(&reader, view_text(""));
    end_is(STATUS_NOT_FOUND);
}
END_TEST

START_TEST(continued_lines)
{
    properties_init(&reader, view_text("list=a,\\\n     b,\\\r\n  c\nend=\\\\\nlast=x\\"));
    next_is("list", "a,b,c");
    next_is("end", "\\");
    next_is("last", "x");
    end_is(STATUS_NOT_FOUND);
}
END_TEST

START_TEST(escapes)
{
    properties_init(&reader, view_text("a\\=b\\ c=x\\ty\\:"
                                       "\\u0041\\u00e9\\u20AC\\q\nurl=http\\://x"));
    next_is("a=b c", "x\ty:A\xc3\xa9\xe2\x82\xacq");
    next_is("url", "http://x");
    end_is(STATUS_NOT_FOUND);
}
END_TEST

START_TEST(broken_escape_is_refused)
{
    properties_init(&reader, view_text("a=1\nb=\\u12g4\n"));
    next_is("a", "1");
    end_is(STATUS_INVALID);
    ck_assert_int_eq(reader.line, 2);
    properties_init(&reader, view_text("b=\\u12"));
    end_is(STATUS_INVALID);
}
END_TEST

START_TEST(values_keep_trailing_blanks)
{
    properties_init(&reader, view_text("a=1 \n"));
    next_is("a", "1 ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("properties");
    TCase *tests = tcase_create("properties");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, separators);
    tcase_add_test(tests, comments_blank_lines_and_line_ends);
    tcase_add_test(tests, continued_lines);
    tcase_add_test(tests, escapes);
    tcase_add_test(tests, broken_escape_is_refused);
    tcase_add_test(tests, values_keep_trailing_blanks);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
