/* A block lives until its last reference goes. */
#include "base/block.h"

#include <string.h>

#include "tests/unit/runner.h"

START_TEST(last_reference_frees)
{
    struct block *block = block_copy(VIEW_LITERAL("hello"));
    struct slice slice = slice_of(block_ref(block), 1, 3);
    block_unref(block);
    ck_assert(view_is(slice_view(slice), "ell"));
    ck_assert_uint_eq(block->references, 1);
    block_unref(slice.block);
    block_unref(NULL);
}
END_TEST

START_TEST(pages_are_the_blocks_own)
{
    for (size_t capacity = 1; capacity < 3 * BLOCK_PAGE; capacity += 777) {
        struct block *block = block_new_pages(capacity);
        ck_assert(block->has_pages);
        ck_assert_uint_eq(block->capacity, capacity);
        ck_assert_uint_eq((uintptr_t)block->bytes % BLOCK_PAGE, 0);
        memset(block->bytes, 'x', capacity);
        for (size_t at = capacity; at % BLOCK_PAGE != 0; at++) {
            ck_assert_uint_eq(block->bytes[at], 0);
        }
        block = block_resize(block, capacity + 5000);
        ck_assert(block->has_pages);
        ck_assert_uint_eq((uintptr_t)block->bytes % BLOCK_PAGE, 0);
        ck_assert_int_eq(block->bytes[0], 'x');
        ck_assert_int_eq(block->bytes[capacity - 1], 'x');
        block = block_resize(block, 1);
        ck_assert_int_eq(block->bytes[0], 'x');
        ck_assert_int_eq(block->bytes[1], 0);
        block_unref(block);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block");
    TCase *tests = tcase_create("block");
    tcase_add_test(tests, last_reference_frees);
    tcase_add_test(tests, pages_are_the_blocks_own);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
