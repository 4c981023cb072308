/* Views compare by bytes and keep null apart from empty. */
#include "base/view.h"

#include <stdlib.h>

#include "tests/unit/runner.h"

START_TEST(null_is_not_empty)
{
    ck_assert(!view_equal(VIEW_NULL, VIEW_EMPTY));
    ck_assert(view_equal(VIEW_NULL, VIEW_NULL));
    ck_assert(view_equal(VIEW_EMPTY, view_text("")));
}
END_TEST

START_TEST(order_is_by_bytes_then_length)
{
    ck_assert_int_lt(view_compare(view_text("a"), view_text("ab")), 0);
    ck_assert_int_gt(view_compare(view_text("b"), view_text("ab")), 0);
    ck_assert_int_eq(view_compare(view_text("ab"), view_text("ab")), 0);
    char *text = view_copy_text(view_slice(view_text("hello"), 1, 3));
    ck_assert_str_eq(text, "ell");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("view");
    TCase *tests = tcase_create("view");
    tcase_add_test(tests, null_is_not_empty);
    tcase_add_test(tests, order_is_by_bytes_then_length);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
