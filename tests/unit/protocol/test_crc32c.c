/* The checksum is Castagnoli's, whole or in parts. */
#include "protocol/crc32c.h"

#include <string.h>

#include "tests/unit/runner.h"

START_TEST(known_values)
{
    uint8_t zeros[32] = {0};
    ck_assert_uint_eq(crc32c(VIEW_EMPTY), 0);
    ck_assert_uint_eq(crc32c(VIEW_LITERAL("123456789")), 0xe3069283);
    ck_assert_uint_eq(crc32c((struct view){zeros, sizeof zeros}), 0x8a9136aa);
}
END_TEST

START_TEST(parts_give_the_sum_of_the_whole)
{
    struct view all = VIEW_LITERAL("a batch's header and then its records");
    for (size_t cut = 0; cut <= all.length; cut++) {
        uint32_t crc = crc32c(view_slice(all, 0, cut));
        crc = crc32c_extend(crc, view_slice(all, cut, all.length - cut));
        ck_assert_uint_eq(crc, crc32c(all));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crc32c");
    TCase *tests = tcase_create("crc32c");
    tcase_add_test(tests, known_values);
    tcase_add_test(tests, parts_give_the_sum_of_the_whole);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
