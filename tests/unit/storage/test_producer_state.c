/* Duplicates are recognised, gaps refused, old epochs fenced; snapshots are Kafka's bytes. */
#include "storage/producer_state.h"

#include <string.h>

#include "base/bytes.h"
#include "protocol/crc32c.h"
#include "tests/unit/runner.h"

static struct producer_batch batch(int16_t epoch, int32_t sequence, int32_t count, int64_t offset)
{
    return (struct producer_batch){.producer_id = 7, .epoch = epoch, .base_sequence = sequence,
        .record_count = count, .base_offset = offset, .last_offset = offset + count - 1,
        .timestamp_ms = offset * 10};
}

/* One step of a story: what happens, and the verdict on the batch before it. */
struct step {
    const char *what;   /* "check", "propose", "commit", "drop" */
    int16_t epoch;
    int32_t sequence;
    int32_t count;
    int64_t offset;
    enum producer_verdict verdict;
    int64_t original;   /* offset of a duplicate */
};

static void play(const struct step *steps, size_t count)
{
    struct producer_state *state = producer_state_new(10);
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        struct producer_batch b = batch(step->epoch, step->sequence, step->count, step->offset);
        if (strcmp(step->what, "check") == 0) {
            struct producer_answer answer = producer_state_check(state, &b);
            ck_assert_msg(answer.verdict == step->verdict, "step %zu: %d, not %d", i,
                (int)answer.verdict, (int)step->verdict);
            ck_assert_int_eq(answer.base_offset, step->original);
            ck_assert_int_eq(answer.timestamp_ms, step->original < 0 ? -1 : step->original * 10);
        } else if (strcmp(step->what, "propose") == 0) {
            ck_assert_int_eq(producer_state_check(state, &b).verdict, PRODUCER_ACCEPT);
            producer_state_propose(state, &b);
        } else if (strcmp(step->what, "commit") == 0) {
            producer_state_update(state, &b);
        } else {
            producer_state_drop_proposed(state, step->offset);
        }
    }
    producer_state_free(state);
}

#define PLAY(...) \
    do { \
        const struct step steps[] = {__VA_ARGS__}; \
        play(steps, sizeof steps / sizeof steps[0]); \
    } while (0)

START_TEST(unknown_producer_may_start_anywhere)
{
    PLAY({"check", 0, 0, 1, 0, PRODUCER_ACCEPT, -1}, {"check", 5, 123, 1, 0, PRODUCER_ACCEPT, -1},
        {"check", 0, INT32_MAX, 1, 0, PRODUCER_ACCEPT, -1});
}
END_TEST

START_TEST(next_sequence_is_accepted_and_a_gap_refused)
{
    PLAY({"commit", 0, 0, 3, 100}, {"check", 0, 3, 1, 0, PRODUCER_ACCEPT, -1},
        {"check", 0, 4, 1, 0, PRODUCER_OUT_OF_ORDER, -1},
        {"check", 0, 2, 1, 0, PRODUCER_OUT_OF_ORDER, -1});
}
END_TEST

START_TEST(a_gap_says_what_is_missing)
{
    struct producer_state *state = producer_state_new(10);
    struct producer_batch first = batch(0, INT32_MAX - 1, 2, 100);
    struct producer_batch same = batch(0, 0, 1, 0);
    struct producer_batch later = batch(0, 3, 1, 0);
    struct producer_batch earlier = batch(0, INT32_MAX - 5, 1, 0);
    struct producer_batch epoch = batch(1, 3, 1, 0);
    ck_assert_int_eq(producer_state_check(state, &later).missing_sequence, -1);
    producer_state_update(state, &first);
    ck_assert_int_eq(producer_state_check(state, &same).missing_sequence, -1);
    ck_assert_int_eq(producer_state_check(state, &later).missing_sequence, 0);
    ck_assert_int_eq(producer_state_check(state, &later).last_offset, 101);
    ck_assert_int_eq(producer_state_check(state, &earlier).verdict, PRODUCER_OUT_OF_ORDER);
    ck_assert_int_eq(producer_state_check(state, &earlier).missing_sequence, -1);
    ck_assert_int_eq(producer_state_check(state, &epoch).verdict, PRODUCER_OUT_OF_ORDER);
    ck_assert_int_eq(producer_state_check(state, &epoch).missing_sequence, -1);
    producer_state_free(state);
}
END_TEST

START_TEST(last_five_batches_are_recognised_and_older_ones_refused)
{
    PLAY({"commit", 0, 0, 2, 10}, {"commit", 0, 2, 2, 12}, {"commit", 0, 4, 2, 14},
        {"commit", 0, 6, 2, 16}, {"commit", 0, 8, 2, 18}, {"commit", 0, 10, 2, 20},
        {"check", 0, 10, 2, 0, PRODUCER_DUPLICATE, 20},
        {"check", 0, 2, 2, 0, PRODUCER_DUPLICATE, 12},
        {"check", 0, 0, 2, 0, PRODUCER_OUT_OF_ORDER, -1},
        {"check", 0, 2, 1, 0, PRODUCER_OUT_OF_ORDER, -1});
}
END_TEST

START_TEST(sequences_wrap_to_zero)
{
    PLAY({"commit", 0, INT32_MAX - 1, 2, 10}, {"check", 0, 0, 1, 0, PRODUCER_ACCEPT, -1},
        {"commit", 0, 0, 1, 12}, {"check", 0, 1, 1, 0, PRODUCER_ACCEPT, -1},
        {"check", 0, INT32_MAX - 1, 2, 0, PRODUCER_DUPLICATE, 10});
    PLAY({"commit", 0, INT32_MAX, 3, 10}, {"check", 0, 2, 1, 0, PRODUCER_ACCEPT, -1},
        {"check", 0, INT32_MAX, 3, 0, PRODUCER_DUPLICATE, 10});
}
END_TEST

START_TEST(new_epoch_starts_at_zero_and_fences_the_old)
{
    PLAY({"commit", 1, 0, 3, 10}, {"check", 0, 3, 1, 0, PRODUCER_FENCED, -1},
        {"check", 2, 3, 1, 0, PRODUCER_OUT_OF_ORDER, -1},
        {"check", 2, 0, 1, 0, PRODUCER_ACCEPT, -1},
        {"commit", 2, 0, 1, 13}, {"check", 1, 3, 1, 0, PRODUCER_FENCED, -1},
        {"check", 2, 1, 1, 0, PRODUCER_ACCEPT, -1});
}
END_TEST

START_TEST(proposed_batches_count_until_dropped)
{
    PLAY({"propose", 0, 0, 2, 10}, {"check", 0, 0, 2, 0, PRODUCER_DUPLICATE_PROPOSED, 10},
        {"check", 0, 2, 1, 0, PRODUCER_ACCEPT, -1}, {"propose", 0, 2, 1, 12},
        {"commit", 0, 0, 2, 10}, {"check", 0, 0, 2, 0, PRODUCER_DUPLICATE, 10},
        {"check", 0, 2, 1, 0, PRODUCER_DUPLICATE_PROPOSED, 12},
        {"check", 0, 4, 1, 0, PRODUCER_OUT_OF_ORDER, -1}, {"drop", 0, 0, 1, 12},
        {"check", 0, 2, 1, 0, PRODUCER_ACCEPT, -1},
        {"check", 0, 3, 1, 0, PRODUCER_OUT_OF_ORDER, -1});
    PLAY({"propose", 0, 5, 2, 10}, {"drop", 0, 0, 1, 0},
        {"check", 0, 99, 2, 0, PRODUCER_ACCEPT, -1});
}
END_TEST

START_TEST(more_proposed_than_five_are_kept)
{
    struct producer_state *state = producer_state_new(10);
    for (int32_t i = 0; i < 40; i++) {
        struct producer_batch b = batch(0, i, 1, i);
        ck_assert_int_eq(producer_state_check(state, &b).verdict, PRODUCER_ACCEPT);
        producer_state_propose(state, &b);
    }
    struct producer_batch first = batch(0, 0, 1, 0);
    ck_assert_int_eq(producer_state_check(state, &first).verdict, PRODUCER_DUPLICATE_PROPOSED);
    producer_state_free(state);
}
END_TEST

START_TEST(marker_ends_a_transaction)
{
    struct producer_state *state = producer_state_new(10);
    struct producer_batch b = batch(3, 0, 5, 100);
    b.is_transactional = true;
    producer_state_update(state, &b);
    ck_assert_int_eq(producer_state_first_open_offset(state), 100);
    producer_state_end_transaction(state, 7, 4, 9, 105, 1);
    ck_assert_int_eq(producer_state_first_open_offset(state), -1);
    struct producer_batch next = batch(4, 0, 1, 0);
    ck_assert_int_eq(producer_state_check(state, &next).verdict, PRODUCER_ACCEPT);
    next.base_sequence = 5;
    ck_assert_int_eq(producer_state_check(state, &next).verdict, PRODUCER_OUT_OF_ORDER);
    next.epoch = 3;
    ck_assert_int_eq(producer_state_check(state, &next).verdict, PRODUCER_FENCED);
    producer_state_free(state);
}
END_TEST

START_TEST(silent_producers_expire_and_the_number_is_bounded)
{
    struct producer_state *state = producer_state_new(3);
    for (int64_t id = 0; id < 5; id++) {
        struct producer_batch b = batch(0, 0, 1, id);
        b.producer_id = id;
        b.timestamp_ms = 1000 * id;
        producer_state_update(state, &b);
    }
    ck_assert_uint_eq(producer_state_count(state), 3);
    ck_assert_uint_eq(producer_state_expire(state, 13500, 10000), 2);
    ck_assert_uint_eq(producer_state_count(state), 1);
    struct producer_batch b = batch(0, 1, 1, 9);
    b.producer_id = 4;
    producer_state_propose(state, &b);
    ck_assert_uint_eq(producer_state_expire(state, INT64_MAX, 1), 0);
    producer_state_free(state);
}
END_TEST

START_TEST(snapshot_has_kafkas_layout_and_comes_back)
{
    struct producer_state *state = producer_state_new(10);
    struct buffer bytes = {0};
    struct producer_batch b = batch(2, 10, 3, 100);
    producer_state_update(state, &b);
    producer_state_save(state, INT64_MAX, &bytes);
    ck_assert_uint_eq(bytes.length, 2 + 4 + 4 + 46);
    ck_assert_int_eq(load_be16(bytes.data), 1);
    ck_assert_uint_eq(load_be32(bytes.data + 2),
        crc32c((struct view){bytes.data + 6, bytes.length - 6}));
    ck_assert_int_eq(load_be32(bytes.data + 6), 1);
    ck_assert_int_eq(load_be64(bytes.data + 10), 7);
    ck_assert_int_eq(load_be16(bytes.data + 18), 2);
    ck_assert_int_eq(load_be32(bytes.data + 20), 12);
    ck_assert_int_eq(load_be64(bytes.data + 24), 102);
    ck_assert_int_eq(load_be32(bytes.data + 32), 2);
    ck_assert_int_eq((int64_t)load_be64(bytes.data + 36), 1000);
    ck_assert_int_eq((int32_t)load_be32(bytes.data + 44), -1);
    ck_assert_int_eq((int64_t)load_be64(bytes.data + 48), -1);
    struct producer_state *copy = producer_state_new(10);
    ck_assert_int_eq(producer_state_load(copy, buffer_view(&bytes)), STATUS_OK);
    ck_assert_int_eq(producer_state_check(copy, &b).verdict, PRODUCER_DUPLICATE);
    ck_assert_int_eq(producer_state_check(copy, &b).base_offset, 100);
    bytes.data[30] ^= 1;
    ck_assert_int_eq(producer_state_load(copy, buffer_view(&bytes)), STATUS_CORRUPT);
    ck_assert_uint_eq(producer_state_count(copy), 0);
    bytes.data[1] = 9;
    ck_assert_int_eq(producer_state_load(copy, buffer_view(&bytes)), STATUS_UNSUPPORTED);
    ck_assert_int_eq(producer_state_load(copy, VIEW_EMPTY), STATUS_CORRUPT);
    producer_state_free(copy);
    producer_state_free(state);
    buffer_free(&bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("producer_state");
    TCase *tests = tcase_create("producer_state");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, unknown_producer_may_start_anywhere);
    tcase_add_test(tests, next_sequence_is_accepted_and_a_gap_refused);
    tcase_add_test(tests, a_gap_says_what_is_missing);
    tcase_add_test(tests, last_five_batches_are_recognised_and_older_ones_refused);
    tcase_add_test(tests, sequences_wrap_to_zero);
    tcase_add_test(tests, new_epoch_starts_at_zero_and_fences_the_old);
    tcase_add_test(tests, proposed_batches_count_until_dropped);
    tcase_add_test(tests, more_proposed_than_five_are_kept);
    tcase_add_test(tests, marker_ends_a_transaction);
    tcase_add_test(tests, silent_producers_expire_and_the_number_is_bounded);
    tcase_add_test(tests, snapshot_has_kafkas_layout_and_comes_back);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
