/* Records built are records read, in every compression; records that lie are refused. */
#include "protocol/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/runner.h"

enum { RECORDS = 500, LIMIT_BYTES = 1 << 20 };

static const struct record_header headers[] = {
    {VIEW_LITERAL("trace"), VIEW_LITERAL("7")}, {VIEW_LITERAL(""), {NULL, 0}}};

static struct buffer make_batch(enum compression compression)
{
    struct batch_builder builder;
    struct buffer batch = {0};
    batch_builder_start(&builder);
    builder.header.base_offset = 40;
    builder.header.attributes = (int16_t)compression;
    for (int i = 0; i < RECORDS; i++) {
        char key[20];
        snprintf(key, sizeof key, "key-%d", i);
        batch_builder_add(&builder, 5000 - i, i % 3 == 0 ? VIEW_NULL : view_text(key),
            VIEW_LITERAL("some value that repeats"), headers, i % 3);
    }
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &batch);
    return batch;
}

static void check_record(const struct record *record, int i)
{
    char key[20];
    snprintf(key, sizeof key, "key-%d", i);
    ck_assert_int_eq(record->offset, 40 + i);
    ck_assert_int_eq(record->timestamp, 5000 - i);
    ck_assert(i % 3 == 0 ? record->key.data == NULL : view_is(record->key, key));
    ck_assert(view_is(record->value, "some value that repeats"));
    ck_assert_int_eq(record->header_count, i % 3);
    struct view left = record->headers;
    for (int32_t h = 0; h < record->header_count; h++) {
        struct record_header header;
        ck_assert_int_eq(record_next_header(&left, &header), STATUS_OK);
        ck_assert(view_equal(header.key, headers[h].key));
        ck_assert(view_equal(header.value, headers[h].value));
    }
    ck_assert_uint_eq(left.length, 0);
}

START_TEST(built_is_read)
{
    for (int c = COMPRESSION_NONE; c < COMPRESSION_COUNT; c++) {
        struct buffer batch = make_batch((enum compression)c), scratch = {0};
        struct batch_header header;
        struct view records;
        struct record record;
        ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
        ck_assert_int_eq(header.max_timestamp, 5000);
        ck_assert_int_eq(batch_unpack(buffer_view(&batch), &header, LIMIT_BYTES, &scratch,
            &records), STATUS_OK);
        struct record_iterator iterator = record_iterator_start(&header, records);
        for (int i = 0; i < RECORDS; i++) {
            ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
            check_record(&record, i);
        }
        ck_assert_int_eq(record_next(&iterator, &record), STATUS_NOT_FOUND);
        ck_assert_int_eq(batch_unpack(buffer_view(&batch), &header, 100, &scratch, &records),
            STATUS_LIMIT);
        buffer_free(&batch);
        buffer_free(&scratch);
    }
}
END_TEST

START_TEST(gaps_and_delete_horizon_of_compaction)
{
    struct batch_builder builder;
    struct buffer batch = {0};
    struct batch_header header;
    struct record record;
    batch_builder_start(&builder);
    builder.header.attributes = BATCH_DELETE_HORIZON;
    builder.header.base_timestamp = 90000;
    batch_builder_add_at(&builder, 3, 1000, VIEW_LITERAL("k"), VIEW_NULL, NULL, 0);
    batch_builder_add_at(&builder, 9, 1001, VIEW_LITERAL("l"), VIEW_NULL, NULL, 0);
    builder.header.last_offset_delta = 20;
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &batch);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
    ck_assert_int_eq(header.base_timestamp, 90000);
    ck_assert_int_eq(header.last_offset_delta, 20);
    ck_assert_int_eq(header.record_count, 2);
    struct record_iterator iterator = record_iterator_start(&header,
        view_slice(buffer_view(&batch), BATCH_HEADER_BYTES, batch.length - BATCH_HEADER_BYTES));
    ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
    ck_assert_int_eq(record.offset, 3);
    ck_assert_int_eq(record.timestamp, 1000);
    ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
    ck_assert_int_eq(record.offset, 9);
    buffer_free(&batch);
}
END_TEST

START_TEST(times_may_lie_any_distance_apart)
{
    static const int64_t times[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN + 1};
    struct batch_builder builder;
    struct buffer batch = {0};
    struct batch_header header;
    struct record record;
    batch_builder_start(&builder);
    for (size_t i = 0; i < 5; i++) {
        batch_builder_add(&builder, times[i], VIEW_NULL, VIEW_EMPTY, NULL, 0);
    }
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &batch);
    ck_assert_int_eq(batch_validate(buffer_view(&batch), &header), STATUS_OK);
    struct record_iterator iterator = record_iterator_start(&header,
        view_slice(buffer_view(&batch), BATCH_HEADER_BYTES, batch.length - BATCH_HEADER_BYTES));
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
        ck_assert_int_eq(record.timestamp, times[i]);
    }
    buffer_free(&batch);
}
END_TEST

/* Reads `count` records out of a copy of these bytes; what the first refusal said. */
static enum status read_all(struct view bytes, int32_t count)
{
    struct batch_header header = {.record_count = count, .last_offset_delta = 10,
        .base_offset = 5, .base_timestamp = 100, .magic = BATCH_MAGIC};
    uint8_t *copy = malloc(bytes.length + (bytes.length == 0));
    memcpy(copy, bytes.data, bytes.length);
    struct record_iterator iterator =
        record_iterator_start(&header, (struct view){copy, bytes.length});
    struct record record;
    enum status status;
    do {
        status = record_next(&iterator, &record);
    } while (status == STATUS_OK);
    free(copy);
    return status;
}

START_TEST(records_that_lie)
{
    /* length 9, attributes, deltas 0, null key, value "ab", one header "h": null. */
    struct view good = VIEW_LITERAL("\x16\x00\x00\x00\x01\x04" "ab\x02\x02h\x01");
    ck_assert_int_eq(read_all(good, 1), STATUS_NOT_FOUND);
    ck_assert_int_eq(read_all(good, 0), STATUS_INVALID);
    ck_assert_int_eq(read_all(good, 2), STATUS_TRUNCATED);
    for (size_t length = 0; length < good.length; length++) {
        ck_assert_int_eq(read_all(view_slice(good, 0, length), 1), STATUS_TRUNCATED);
    }
    static const char *const bad[] = {
        "\x01",                                               /* length -1 */
        "\x14\x00\x00\x00\x01\x04" "ab\x02\x02h\x01",         /* length too small */
        "\x18\x00\x00\x00\x01\x04" "ab\x02\x02h\x01\x01",     /* bytes left in the record */
        "\x16\x00\x00\x00\x03\x04" "ab\x02\x02h\x01",         /* key of length -2 */
        "\x16\x00\x00\x00\x01\x40" "ab\x02\x02h\x01",         /* value beyond the record */
        "\x16\x00\x00\x00\x01\x04" "ab\x04\x02h\x01",         /* two headers said, one there */
        "\x16\x00\x00\x00\x01\x04" "ab\x01\x02h\x01",         /* -1 headers */
        "\x14\x00\x00\x00\x01\x04" "ab\x02\x01\x01",          /* header with a null key */
        "\x10\x00\x00\x00\x01\x04" "ab\x01",                  /* -1 headers and nothing else */
        "\x16\x00\x00\x16\x01\x04" "ab\x02\x02h\x01",         /* offset above the last */
        "\x16\x00\x00\x01\x01\x04" "ab\x02\x02h\x01",         /* offset below the first */
    };
    static const size_t lengths[] = {1, 12, 13, 12, 12, 12, 12, 11, 9, 12, 12};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct view view = {(const uint8_t *)bad[i], lengths[i]};
        ck_assert_msg(read_all(view, 1) == STATUS_INVALID, "case %zu", i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *tests = tcase_create("records");
    tcase_add_test(tests, built_is_read);
    tcase_add_test(tests, gaps_and_delete_horizon_of_compaction);
    tcase_add_test(tests, times_may_lie_any_distance_apart);
    tcase_add_test(tests, records_that_lie);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
