/* A producer's batches before the last one survive a snapshot: sent again after a restart they are
 * still recognised. */
#include "storage/producer_state.h"

#include "tests/unit/runner.h"

static struct producer_batch batch_at(int64_t id, int32_t sequence, int64_t offset)
{
    return (struct producer_batch){.producer_id = id,
                                   .epoch = 0,
                                   .base_sequence = sequence,
                                   .record_count = 10,
                                   .base_offset = offset,
                                   .last_offset = offset + 9,
                                   .timestamp_ms = 1000 + offset};
}

static struct producer_state *filled(int batches)
{
    struct producer_state *state = producer_state_new(100);
    for (int i = 0; i < batches; i++) {
        for (int64_t id = 1; id <= 3; id++) {
            struct producer_batch batch = batch_at(id, i * 10, i * 30 + (id - 1) * 10);
            producer_state_update(state, &batch);
        }
    }
    return state;
}

static void check_reloaded(int batches)
{
    struct producer_state *state = filled(batches);
    struct buffer saved = {0};
    producer_state_save(state, INT64_MAX, &saved);
    producer_state_free(state);
    state = producer_state_new(100);
    ck_assert_int_eq(producer_state_load(state, buffer_view(&saved)), STATUS_OK);
    int first_kept = batches > PRODUCER_BATCHES_KEPT ? batches - PRODUCER_BATCHES_KEPT : 0;
    for (int i = first_kept; i < batches; i++) {
        for (int64_t id = 1; id <= 3; id++) {
            struct producer_batch again = batch_at(id, i * 10, -1);
            struct producer_answer answer = producer_state_check(state, &again);
            ck_assert_int_eq(answer.verdict, PRODUCER_DUPLICATE);
            ck_assert_int_eq(answer.base_offset, i * 30 + (id - 1) * 10);
        }
    }
    struct producer_batch next = batch_at(2, batches * 10, -1);
    ck_assert_int_eq(producer_state_check(state, &next).verdict, PRODUCER_ACCEPT);
    buffer_free(&saved);
    producer_state_free(state);
}

START_TEST(all_kept_batches_survive)
{
    for (int batches = 1; batches <= 8; batches++) {
        check_reloaded(batches);
    }
}
END_TEST

START_TEST(a_changed_byte_is_corrupt)
{
    struct producer_state *state = filled(5);
    struct buffer saved = {0};
    producer_state_save(state, INT64_MAX, &saved);
    for (size_t i = 2; i < saved.length; i++) {
        saved.data[i] ^= 0x40;
        ck_assert_int_eq(producer_state_load(state, buffer_view(&saved)), STATUS_CORRUPT);
        ck_assert_uint_eq(producer_state_count(state), 0);
        saved.data[i] ^= 0x40;
    }
    ck_assert_int_eq(producer_state_load(state, buffer_view(&saved)), STATUS_OK);
    buffer_free(&saved);
    producer_state_free(state);
}
END_TEST

START_TEST(a_snapshot_as_of_an_offset_leaves_out_what_is_later)
{
    struct producer_state *state = filled(5);
    struct buffer saved = {0};
    producer_state_save(state, 3 * 30, &saved);
    producer_state_free(state);
    state = producer_state_new(100);
    ck_assert_int_eq(producer_state_load(state, buffer_view(&saved)), STATUS_OK);
    for (int i = 0; i < 3; i++) {
        struct producer_batch again = batch_at(1, i * 10, -1);
        ck_assert_int_eq(producer_state_check(state, &again).verdict, PRODUCER_DUPLICATE);
    }
    struct producer_batch next = batch_at(1, 30, -1);
    ck_assert_int_eq(producer_state_check(state, &next).verdict, PRODUCER_ACCEPT);
    buffer_free(&saved);
    producer_state_free(state);
}
END_TEST

START_TEST(what_a_power_loss_took_from_the_log_is_forgotten)
{
    struct producer_state *state = filled(5);
    producer_state_forget_from(state, 3 * 30);
    struct producer_batch kept = batch_at(1, 20, -1);
    struct producer_batch lost = batch_at(1, 30, -1);
    ck_assert_int_eq(producer_state_check(state, &kept).verdict, PRODUCER_DUPLICATE);
    ck_assert_int_eq(producer_state_check(state, &lost).verdict, PRODUCER_ACCEPT);
    producer_state_free(state);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("producer_snapshot");
    TCase *tests = tcase_create("producer_snapshot");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, all_kept_batches_survive);
    tcase_add_test(tests, a_changed_byte_is_corrupt);
    tcase_add_test(tests, a_snapshot_as_of_an_offset_leaves_out_what_is_later);
    tcase_add_test(tests, what_a_power_loss_took_from_the_log_is_forgotten);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
