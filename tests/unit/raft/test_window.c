/* The log's window: a ring that keeps order, references and terms while it grows and shrinks. */
#include "raft/window.h"

#include "tests/unit/runner.h"

static void append(struct raft_window *window, uint64_t term, struct block *block)
{
    struct raft_entry entry = {.index = raft_window_last(window) + 1, .term = term};
    if (block != NULL) {
        entry.payload = slice_of(block, 0, block->capacity);
    }
    raft_window_append(window, &entry);
}

START_TEST(ring_keeps_its_entries_while_it_wraps_and_grows)
{
    struct raft_window window;
    raft_window_init(&window, 0, 0);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 7; i++) {
            append(&window, (uint64_t)round + 1, NULL);
        }
        raft_window_release(&window, raft_window_last(&window) - 3);
        for (uint64_t index = window.start_index + 1; index <= raft_window_last(&window); index++) {
            ck_assert_uint_eq(raft_window_at(&window, index)->index, index);
        }
    }
    ck_assert_uint_eq(raft_window_last(&window), 350);
    ck_assert_uint_eq(window.start_index, 347);
    raft_window_free(&window);
}
END_TEST

START_TEST(empty_window_holds_no_memory_and_a_big_one_shrinks)
{
    struct raft_window window;
    raft_window_init(&window, 5, 2);
    ck_assert_ptr_null(window.slots);
    for (int i = 0; i < 1000; i++) {
        append(&window, 3, NULL);
    }
    uint32_t most = window.capacity;
    for (uint64_t to = 6; to <= 1000; to++) {
        raft_window_release(&window, to);
    }
    ck_assert_uint_lt(window.capacity, most / 8);
    raft_window_release(&window, 1005);
    ck_assert_ptr_null(window.slots);
    ck_assert_uint_eq(raft_window_last(&window), 1005);
    ck_assert_uint_eq(raft_window_last_term(&window), 3);
}
END_TEST

START_TEST(references_are_taken_and_given_back)
{
    struct block *block = block_new(10);
    struct raft_window window;
    raft_window_init(&window, 0, 0);
    for (int i = 0; i < 4; i++) {
        append(&window, 1, block);
    }
    ck_assert_uint_eq(atomic_load(&block->references), 5);
    raft_window_release(&window, 1);
    ck_assert_uint_eq(atomic_load(&block->references), 4);
    raft_window_truncate(&window, 3);
    ck_assert_uint_eq(atomic_load(&block->references), 2);
    raft_window_reset(&window, 9, 4);
    ck_assert_uint_eq(atomic_load(&block->references), 1);
    ck_assert_uint_eq(raft_window_last(&window), 9);
    block_unref(block);
}
END_TEST

START_TEST(terms_are_known_inside_and_at_the_start_only)
{
    struct raft_window window;
    raft_window_init(&window, 10, 2);
    append(&window, 3, NULL);
    append(&window, 3, NULL);
    append(&window, 7, NULL);
    uint64_t term = 0;
    ck_assert(!raft_window_term(&window, 9, &term));
    ck_assert(raft_window_term(&window, 10, &term) && term == 2);
    ck_assert(raft_window_term(&window, 12, &term) && term == 3);
    ck_assert(raft_window_term(&window, 13, &term) && term == 7);
    ck_assert(!raft_window_term(&window, 14, &term));
    raft_window_free(&window);
}
END_TEST

START_TEST(find_term_skips_whole_terms)
{
    struct raft_window window;
    raft_window_init(&window, 2, 1);
    uint64_t terms[] = {1, 2, 2, 2, 5, 5, 8};
    for (size_t i = 0; i < 7; i++) {
        append(&window, terms[i], NULL); /* indexes 3 to 9 */
    }
    ck_assert_uint_eq(raft_window_find_term(&window, 9, 9), 9);
    ck_assert_uint_eq(raft_window_find_term(&window, 9, 7), 8);
    ck_assert_uint_eq(raft_window_find_term(&window, 8, 4), 6);
    ck_assert_uint_eq(raft_window_find_term(&window, 5, 2), 5);
    ck_assert_uint_eq(raft_window_find_term(&window, 9, 1), 3);
    ck_assert_uint_eq(raft_window_find_term(&window, 9, 0), 2);
    raft_window_free(&window);
}
END_TEST

START_TEST(bytes_between_indexes_need_no_walk_and_survive_releases)
{
    struct block *block = block_new(100);
    struct raft_window window;
    raft_window_init(&window, 0, 0);
    for (int i = 0; i < 10; i++) {
        append(&window, 1, block);
    }
    uint64_t each = 100 + sizeof(struct raft_entry);
    ck_assert_uint_eq(raft_window_bytes(&window, 2, 7), 5 * each);
    raft_window_release(&window, 4);
    ck_assert_uint_eq(raft_window_bytes(&window, 2, 7), 3 * each);
    raft_window_truncate(&window, 6);
    append(&window, 2, NULL);
    ck_assert_uint_eq(raft_window_bytes(&window, 4, 6), each + sizeof(struct raft_entry));
    raft_window_free(&window);
    block_unref(block);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tests = tcase_create("window");
    tcase_add_test(tests, ring_keeps_its_entries_while_it_wraps_and_grows);
    tcase_add_test(tests, empty_window_holds_no_memory_and_a_big_one_shrinks);
    tcase_add_test(tests, references_are_taken_and_given_back);
    tcase_add_test(tests, terms_are_known_inside_and_at_the_start_only);
    tcase_add_test(tests, find_term_skips_whole_terms);
    tcase_add_test(tests, bytes_between_indexes_need_no_walk_and_survive_releases);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
