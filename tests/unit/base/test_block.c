/* A block lives until its last reference goes. */
#include "base/block.h"

#include <string.h>

#include "base/block_pool.h"

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

START_TEST(blocks_of_a_pool_outlive_it_and_give_regions_back)
{
    enum { SIZE = 300000, COUNT = 40 };
    struct block *blocks[COUNT];
    struct block_pool *pool = block_pool_new();
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = block_pool_take(pool, SIZE + (size_t)i);
        ck_assert(blocks[i]->has_pages);
        ck_assert_uint_eq((uintptr_t)blocks[i]->bytes % BLOCK_PAGE, 0);
        memset(blocks[i]->bytes, i, blocks[i]->capacity);
    }
    uintptr_t first = (uintptr_t)blocks[0]->bytes / BLOCK_REGION_BYTES;
    ck_assert_uint_eq((uintptr_t)blocks[1]->bytes / BLOCK_REGION_BYTES, first);
    for (int i = 0; i < COUNT; i++) {
        size_t last = blocks[i]->capacity - 1;
        ck_assert_int_eq(blocks[i]->bytes[0], i);
        ck_assert(memcmp(blocks[i]->bytes, blocks[i]->bytes + 1, last) == 0);
    }
    for (int i = 0; i < COUNT / 2; i++) {
        block_unref(blocks[i]);
    }
    /* The first region is among those that are free now, and comes again. */
    bool came_again = false;
    for (int i = 0; i < COUNT / 2; i++) {
        blocks[i] = block_pool_take(pool, SIZE);
        came_again = came_again || (uintptr_t)blocks[i]->bytes / BLOCK_REGION_BYTES == first;
    }
    ck_assert(came_again);
    struct block *small = block_pool_take(pool, 10);
    struct block *large = block_pool_take(pool, 3 * BLOCK_REGION_BYTES);
    block_pool_free(pool);
    large = block_resize(large, SIZE);
    block_unref(small);
    block_unref(large);
    blocks[0] = block_resize(blocks[0], 2 * SIZE);
    for (int i = 0; i < COUNT; i++) {
        blocks[i]->bytes[SIZE - 1] = 1;
        block_unref(blocks[i]);
    }
    block_pool_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block");
    TCase *tests = tcase_create("block");
    tcase_add_test(tests, last_reference_frees);
    tcase_add_test(tests, pages_are_the_blocks_own);
    tcase_add_test(tests, blocks_of_a_pool_outlive_it_and_give_regions_back);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
