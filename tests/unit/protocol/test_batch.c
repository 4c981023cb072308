/* Batch headers: every lie is found, and what the broker writes into a batch keeps it valid. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/errors.h"
#include "protocol/crc32c.h"
#include "protocol/records.h"
#include "tests/unit/runner.h"

enum { LENGTH_AT = 8, CRC_AT = 17, CHECKED_AT = 21, DELTA_AT = 23, COUNT_AT = 57 };

static struct buffer make_batch(int records)
{
    struct batch_builder builder;
    struct buffer batch = {0};
    batch_builder_start(&builder);
    for (int i = 0; i < records; i++) {
        batch_builder_add(&builder, 1000 + i, VIEW_NULL, VIEW_LITERAL("value"), NULL, 0);
    }
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &batch);
    return batch;
}

static void sign(struct buffer *batch)
{
    store_be32(batch->data + CRC_AT,
        crc32c(view_slice(buffer_view(batch), CHECKED_AT, batch->length - CHECKED_AT)));
}

START_TEST(valid_batches)
{
    struct buffer batch = make_batch(3);
    struct batch_header header;
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
    ck_assert_uint_eq(batch_size_bytes(&header), batch.length);
    ck_assert_int_eq(header.record_count, 3);
    ck_assert_int_eq(header.last_offset_delta, 2);
    ck_assert_int_eq(header.base_timestamp, 1000);
    ck_assert_int_eq(header.max_timestamp, 1002);
    ck_assert_int_eq(header.leader_epoch, -1);
    ck_assert_int_eq(batch_last_sequence(&header), -1);
    ck_assert_int_eq(batch_produced_error(&header), KAFKA_NONE);
    buffer_free(&batch);
}
END_TEST

START_TEST(every_flipped_bit_behind_the_checksum_is_found)
{
    struct buffer batch = make_batch(2);
    struct batch_header header;
    for (size_t i = LENGTH_AT; i < batch.length; i++) {
        if (i >= 12 && i < 16) {
            continue;  /* the leader epoch is outside */
        }
        for (int bit = 0; bit < 8; bit++) {
            batch.data[i] ^= (uint8_t)(1 << bit);
            ck_assert_int_ne(batch_validate(buffer_view(&batch), &header), STATUS_OK);
            batch.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
    buffer_free(&batch);
}
END_TEST

START_TEST(lengths_that_lie)
{
    struct buffer batch = make_batch(2);
    struct batch_header header;
    for (size_t length = 0; length < batch.length; length++) {
        ck_assert_int_eq(batch_validate(view_slice(buffer_view(&batch), 0, length), &header),
            STATUS_TRUNCATED);
    }
    buffer_append(&batch, "x", 1);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_INVALID);
    store_be32(batch.data + LENGTH_AT, 48);
    ck_assert_int_eq(batch_read_header(buffer_view(&batch), &header), STATUS_INVALID);
    store_be32(batch.data + LENGTH_AT, UINT32_MAX);
    ck_assert_int_eq(batch_read_header(buffer_view(&batch), &header), STATUS_INVALID);
    batch.data[16] = 1;
    ck_assert_int_eq(batch_read_header(buffer_view(&batch), &header), STATUS_UNSUPPORTED);
    buffer_free(&batch);
}
END_TEST

START_TEST(counts_that_lie)
{
    struct buffer batch = make_batch(2);
    struct batch_header header;
    store_be32(batch.data + COUNT_AT, 4);  /* of 7 bytes at least, in 24 */
    sign(&batch);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_INVALID);
    store_be32(batch.data + COUNT_AT, UINT32_MAX);
    sign(&batch);
    ck_assert_int_eq(batch_read_header(buffer_view(&batch), &header), STATUS_INVALID);
    store_be32(batch.data + COUNT_AT, 2);
    store_be32(batch.data + DELTA_AT, UINT32_MAX);
    sign(&batch);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_INVALID);
    store_be32(batch.data + DELTA_AT, 1);
    store_be16(batch.data + CHECKED_AT, 5);  /* no such compression */
    sign(&batch);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_INVALID);
    buffer_free(&batch);
}
END_TEST

START_TEST(what_producers_may_send)
{
    struct batch_header good = {.magic = BATCH_MAGIC, .record_count = 2, .last_offset_delta = 1,
        .producer_id = -1, .producer_epoch = -1, .base_sequence = -1};
    ck_assert_int_eq(batch_produced_error(&good), KAFKA_NONE);
    struct batch_header bad = good;
    bad.record_count = 0;
    bad.last_offset_delta = -1;
    ck_assert_int_eq(batch_produced_error(&bad), KAFKA_INVALID_RECORD);
    bad = good;
    bad.last_offset_delta = 2;
    ck_assert_int_eq(batch_produced_error(&bad), KAFKA_INVALID_RECORD);
    bad = good;
    bad.attributes = BATCH_CONTROL;
    ck_assert_int_eq(batch_produced_error(&bad), KAFKA_INVALID_RECORD);
    bad = good;
    bad.attributes = BATCH_TRANSACTIONAL;
    ck_assert_int_eq(batch_produced_error(&bad), KAFKA_INVALID_RECORD);
    bad = good;
    bad.producer_id = 4;
    ck_assert_int_eq(batch_produced_error(&bad), KAFKA_INVALID_RECORD);
    bad.producer_epoch = 0;
    bad.base_sequence = 0;
    ck_assert_int_eq(batch_produced_error(&bad), KAFKA_NONE);
}
END_TEST

START_TEST(sequences_wrap)
{
    struct batch_header header = {.base_sequence = INT32_MAX - 1, .last_offset_delta = 1};
    ck_assert_int_eq(batch_last_sequence(&header), INT32_MAX);
    header.last_offset_delta = 2;
    ck_assert_int_eq(batch_last_sequence(&header), 0);
    header.last_offset_delta = 5;
    ck_assert_int_eq(batch_last_sequence(&header), 3);
}
END_TEST

START_TEST(offset_and_epoch_are_outside_the_checksum)
{
    struct buffer batch = make_batch(3);
    struct batch_header header;
    batch_set_offset_and_epoch(batch.data, INT64_C(1) << 40, 12);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
    ck_assert_int_eq(header.base_offset, INT64_C(1) << 40);
    ck_assert_int_eq(header.leader_epoch, 12);
    ck_assert_int_eq(batch_last_offset(&header), (INT64_C(1) << 40) + 2);
    buffer_free(&batch);
}
END_TEST

START_TEST(append_time)
{
    struct buffer batch = make_batch(2);
    struct batch_header header, again;
    struct record record;
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
    batch_set_append_time(batch.data, &header, 555);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &again), STATUS_OK);
    ck_assert(batch_has(&again, BATCH_LOG_APPEND_TIME));
    ck_assert_int_eq(again.max_timestamp, 555);
    ck_assert_int_eq(again.crc, header.crc);
    struct record_iterator iterator = record_iterator_start(&again,
        view_slice(buffer_view(&batch), BATCH_HEADER_BYTES, batch.length - BATCH_HEADER_BYTES));
    ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
    ck_assert_int_eq(record.timestamp, 555);
    buffer_free(&batch);
}
END_TEST

START_TEST(one_after_another)
{
    struct buffer first = make_batch(2), second = make_batch(1);
    size_t length = first.length;
    buffer_append(&first, second.data, second.length);
    struct view left = buffer_view(&first), batch;
    struct batch_header header;
    ck_assert_int_eq(batch_next(&left, &batch, &header), STATUS_OK);
    ck_assert_uint_eq(batch.length, length);
    struct view cut = view_slice(left, 0, left.length - 1);
    ck_assert_int_eq(batch_next(&cut, &batch, &header), STATUS_TRUNCATED);
    ck_assert_int_eq(batch_next(&left, &batch, &header), STATUS_OK);
    ck_assert_uint_eq(batch.length, second.length);
    ck_assert_int_eq(batch_next(&left, &batch, &header), STATUS_NOT_FOUND);
    buffer_free(&first);
    buffer_free(&second);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tests = tcase_create("batch");
    tcase_add_test(tests, valid_batches);
    tcase_add_test(tests, every_flipped_bit_behind_the_checksum_is_found);
    tcase_add_test(tests, lengths_that_lie);
    tcase_add_test(tests, counts_that_lie);
    tcase_add_test(tests, what_producers_may_send);
    tcase_add_test(tests, sequences_wrap);
    tcase_add_test(tests, offset_and_epoch_are_outside_the_checksum);
    tcase_add_test(tests, append_time);
    tcase_add_test(tests, one_after_another);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
