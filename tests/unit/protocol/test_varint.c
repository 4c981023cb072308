/* Zig-zag varints: the known forms, every length, and readers that run dry or on. */
#include "protocol/varint.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct view stored(uint8_t *at, int64_t value)
{
    size_t length = varint_store(at, value);
    ck_assert_uint_le(length, VARINT64_LIMIT_BYTES);
    ck_assert_uint_eq(length, varint_size(value));
    return (struct view){at, length};
}

START_TEST(known_forms)
{
    uint8_t at[VARINT64_LIMIT_BYTES];
    ck_assert(view_equal(stored(at, 0), VIEW_LITERAL("\x00")));
    ck_assert(view_equal(stored(at, -1), VIEW_LITERAL("\x01")));
    ck_assert(view_equal(stored(at, 63), VIEW_LITERAL("\x7e")));
    ck_assert(view_equal(stored(at, 64), VIEW_LITERAL("\x80\x01")));
    ck_assert(view_equal(stored(at, INT32_MAX), VIEW_LITERAL("\xfe\xff\xff\xff\x0f")));
    ck_assert(view_equal(stored(at, INT32_MIN), VIEW_LITERAL("\xff\xff\xff\xff\x0f")));
    ck_assert_uint_eq(stored(at, INT64_MIN).length, VARINT64_LIMIT_BYTES);
}
END_TEST

START_TEST(every_length_comes_back)
{
    for (int bit = 0; bit < 63; bit++) {
        int64_t values[] = {INT64_C(1) << bit, -(INT64_C(1) << bit), (INT64_C(1) << bit) - 1};
        for (size_t i = 0; i < 3; i++) {
            uint8_t at[VARINT64_LIMIT_BYTES];
            struct view view = stored(at, values[i]);
            int64_t wide = 0;
            int32_t narrow = 0;
            struct view copy = view;
            ck_assert_int_eq(varint_take_64(&view, &wide), STATUS_OK);
            ck_assert_int_eq(wide, values[i]);
            ck_assert_uint_eq(view.length, 0);
            bool fits = values[i] >= INT32_MIN && values[i] <= INT32_MAX;
            ck_assert_int_eq(varint_take_32(&copy, &narrow) == STATUS_OK, fits);
            ck_assert(!fits || narrow == values[i]);
        }
    }
}
END_TEST

START_TEST(truncated_and_endless_are_told_apart)
{
    int64_t wide = 0;
    int32_t narrow = 0;
    struct view empty = VIEW_EMPTY, cut = VIEW_LITERAL("\x80\x80");
    struct view endless = VIEW_LITERAL("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    struct view above = VIEW_LITERAL("\xff\xff\xff\xff\x1f");
    ck_assert_int_eq(varint_take_64(&empty, &wide), STATUS_TRUNCATED);
    ck_assert_int_eq(varint_take_32(&cut, &narrow), STATUS_TRUNCATED);
    ck_assert_int_eq(varint_take_32(&endless, &narrow), STATUS_INVALID);
    ck_assert_int_eq(varint_take_64(&endless, &wide), STATUS_INVALID);
    ck_assert_int_eq(varint_take_32(&above, &narrow), STATUS_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("varint");
    TCase *tests = tcase_create("varint");
    tcase_add_test(tests, known_forms);
    tcase_add_test(tests, every_length_comes_back);
    tcase_add_test(tests, truncated_and_endless_are_told_apart);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
