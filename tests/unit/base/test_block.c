/* A block lives until its last reference goes. */
#include "base/block.h"

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

int main(void)
{
    Suite *suite = suite_create("block");
    TCase *tests = tcase_create("block");
    tcase_add_test(tests, last_reference_frees);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
