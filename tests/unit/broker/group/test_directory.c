/* Everybody sees who leads a group; a group nobody told of has no leader. */
#include "broker/group/directory.h"

#include <stdlib.h>

#include "tests/unit/runner.h"

START_TEST(leaders_are_as_last_told)
{
    struct directory *directory = calloc(1, sizeof *directory);
    uint64_t far = (uint64_t)DIRECTORY_PAGE_GROUPS * 7 + 3;
    ck_assert_int_eq(directory_get(directory, 5).leader, -1);
    directory_add(directory, 5);
    directory_add(directory, far);
    ck_assert_int_eq(directory_get(directory, 5).leader, -1);
    ck_assert_int_eq(directory_get(directory, 5).epoch, -1);
    directory_set(directory, 5, 1, 3);
    directory_set(directory, far, 2, 9);
    directory_set(directory, 5, -1, 4);
    ck_assert_int_eq(directory_get(directory, 5).leader, -1);
    ck_assert_int_eq(directory_get(directory, 5).epoch, 4);
    ck_assert_int_eq(directory_get(directory, far).leader, 2);
    ck_assert_int_eq(directory_get(directory, UINT64_MAX).leader, -1);
    directory_free(directory);
    free(directory);
}
END_TEST

START_TEST(what_another_node_says_holds_unless_it_is_old)
{
    struct directory *directory = calloc(1, sizeof *directory);
    ck_assert_uint_eq(directory_lag(directory, 2000), 0);
    directory_set_told(directory, 2000, 3, 0, 4); /* its page is made */
    ck_assert_int_eq(directory_get(directory, 2000).leader, 3);
    directory_set_told(directory, 2000, 2, 7, 5);
    directory_set_told(directory, 2000, 3, 6, 6);
    ck_assert_uint_eq(directory_lag(directory, 2000), 5);
    ck_assert_int_eq(directory_get(directory, 2000).leader, 2);
    ck_assert_int_eq(directory_get(directory, 2000).epoch, 7);
    directory_set(directory, 2000, -1, 8);
    ck_assert_uint_eq(directory_lag(directory, 2000), 5);
    directory_set_told(directory, 2000, 3, 8, 1); /* the leader of an epoch that is known already */
    ck_assert_int_eq(directory_get(directory, 2000).leader, 3);
    directory_free(directory);
    free(directory);
}
END_TEST

START_TEST(who_leads_no_more_says_so_of_one_epoch)
{
    struct directory *directory = calloc(1, sizeof *directory);
    directory_set_ended(directory, 2000, 3, 7); /* a group that is not known */
    directory_set_told(directory, 2000, 3, 7, 5);
    directory_set_ended(directory, 2000, 3, 6);
    directory_set_ended(directory, 2000, 2, 7);
    ck_assert_int_eq(directory_get(directory, 2000).leader, 3);
    directory_set_ended(directory, 2000, 3, 7);
    ck_assert_int_eq(directory_get(directory, 2000).leader, -1);
    ck_assert_int_eq(directory_get(directory, 2000).epoch, 7);
    directory_set_told(directory, 2000, 2, 8, 5);
    directory_set_ended(directory, 2000, 3, 7);
    ck_assert_int_eq(directory_get(directory, 2000).leader, 2);
    directory_free(directory);
    free(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("directory");
    TCase *tests = tcase_create("directory");
    tcase_add_test(tests, leaders_are_as_last_told);
    tcase_add_test(tests, what_another_node_says_holds_unless_it_is_old);
    tcase_add_test(tests, who_leads_no_more_says_so_of_one_epoch);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
