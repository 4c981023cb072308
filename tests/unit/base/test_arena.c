/* The arena keeps its bound, zeroes what it hands out and copies what it is given. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/runner.h"

START_TEST(takes_are_zeroed_and_aligned)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (int i = 1; i < 300; i++) {
        uint8_t *taken = arena_take(&arena, (size_t)i, 1);
        ck_assert_ptr_nonnull(taken);
        ck_assert_uint_eq((uintptr_t)taken % 16, 0);
        for (int k = 0; k < i; k++) {
            ck_assert_uint_eq(taken[k], 0);
        }
        memset(taken, 0xff, (size_t)i);
    }
    arena_free(&arena);
}
END_TEST

START_TEST(limit_is_never_passed)
{
    struct arena arena;
    arena_init(&arena, 1000);
    ck_assert_ptr_nonnull(arena_take(&arena, 900, 1));
    ck_assert_ptr_null(arena_take(&arena, 200, 1));
    ck_assert_ptr_nonnull(arena_take(&arena, 50, 1));
    ck_assert_ptr_null(arena_take(&arena, SIZE_MAX, 8));
    ck_assert(arena.used_bytes <= 1000);
    arena_free(&arena);
    ck_assert_ptr_nonnull(arena_take(&arena, 900, 1));
    arena_free(&arena);
}
END_TEST

START_TEST(copies_keep_null_apart_from_empty)
{
    struct arena arena;
    arena_init(&arena, 1000);
    ck_assert_ptr_null(arena_copy(&arena, VIEW_NULL).data);
    ck_assert_ptr_nonnull(arena_copy(&arena, VIEW_EMPTY).data);
    ck_assert(view_is(arena_copy(&arena, VIEW_LITERAL("abc")), "abc"));
    ck_assert(view_is(arena_format(&arena, "%s-%d", "t", 7), "t-7"));
    arena_free(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arena");
    TCase *tests = tcase_create("arena");
    tcase_add_test(tests, takes_are_zeroed_and_aligned);
    tcase_add_test(tests, limit_is_never_passed);
    tcase_add_test(tests, copies_keep_null_apart_from_empty);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
