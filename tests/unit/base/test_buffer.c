/* A buffer grows and keeps byte order. */
#include "base/buffer.h"

#include <string.h>

#include "tests/unit/runner.h"

START_TEST(appends_grow_and_keep_order)
{
    struct buffer buffer = {0};
    ck_assert_ptr_nonnull(buffer_view(&buffer).data);
    for (uint32_t i = 0; i < 1000; i++) {
        buffer_append_be32(&buffer, i);
    }
    ck_assert_uint_eq(buffer.length, 4000);
    ck_assert_int_eq(memcmp(buffer.data + 4 * 515, "\x00\x00\x02\x03", 4), 0);
    buffer_append_be16(&buffer, 0x0102);
    buffer_append_be64(&buffer, 0x0102030405060708u);
    buffer_append(&buffer, "xy", 2);
    ck_assert_int_eq(
        memcmp(buffer.data + 4000, "\x01\x02\x01\x02\x03\x04\x05\x06\x07\x08xy", 12), 0);
    buffer_free(&buffer);
    ck_assert_uint_eq(buffer.length, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("buffer");
    TCase *tests = tcase_create("buffer");
    tcase_add_test(tests, appends_grow_and_keep_order);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
