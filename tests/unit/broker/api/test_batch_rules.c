/* A topic's own compression and the keys of compacted topics. */
#include "broker/api/batch_rules.h"

#include "messages/errors.h"
#include "tests/unit/runner.h"

enum { PREFIX = 4 };

static struct topic_settings settings_of(enum topic_compression compression, bool compacts)
{
    return (struct topic_settings){.compression = (uint8_t)compression,
                                   .compacts = compacts,
                                   .max_decompressed_bytes = 1 << 20,
                                   .gzip_level = 1,
                                   .lz4_level = 1,
                                   .zstd_level = 1};
}

static struct buffer make_batch(enum compression compression, struct view last_key)
{
    struct batch_builder builder;
    struct buffer bytes = {0};
    batch_builder_start(&builder);
    builder.header.attributes = (int16_t)compression;
    builder.header.producer_id = 7;
    builder.header.producer_epoch = 1;
    builder.header.base_sequence = 30;
    batch_builder_add(&builder, 1000, VIEW_LITERAL("k"), VIEW_LITERAL("first"), NULL, 0);
    batch_builder_add(&builder, 2000, last_key, VIEW_LITERAL("second"), NULL, 0);
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &bytes);
    return bytes;
}

static void check_repacked(struct view batch, enum compression wanted)
{
    struct batch_header header;
    struct buffer scratch = {0};
    struct view records;
    struct record record;
    ck_assert_int_eq(batch_validate(batch, &header), STATUS_OK);
    ck_assert_int_eq(batch_compression(&header), wanted);
    ck_assert_int_eq(header.producer_id, 7);
    ck_assert_int_eq(header.base_sequence, 30);
    ck_assert_int_eq(header.max_timestamp, 2000);
    ck_assert_int_eq(batch_unpack(batch, &header, 1 << 20, &scratch, &records), STATUS_OK);
    struct record_iterator iterator = record_iterator_start(&header, records);
    ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
    ck_assert(view_is(record.value, "first"));
    ck_assert_int_eq(record_next(&iterator, &record), STATUS_OK);
    ck_assert(view_is(record.value, "second"));
    ck_assert_int_eq(record_next(&iterator, &record), STATUS_NOT_FOUND);
    buffer_free(&scratch);
}

START_TEST(a_topic_with_its_own_compression_stores_in_it)
{
    for (int from = 0; from < COMPRESSION_COUNT; from++) {
        for (int to = 0; to < COMPRESSION_COUNT; to++) {
            struct buffer bytes = make_batch((enum compression)from, VIEW_LITERAL("k2"));
            struct topic_settings settings = settings_of((enum topic_compression)to, false);
            struct batch_header header;
            struct block *repacked;
            const char *why = NULL;
            ck_assert_int_eq(batch_validate(buffer_view(&bytes), &header), STATUS_OK);
            ck_assert_int_eq(batch_rules_apply(&settings, buffer_view(&bytes), &header, PREFIX,
                                               &repacked, &why),
                             KAFKA_NONE);
            ck_assert_int_eq(repacked == NULL, from == to);
            if (repacked != NULL) {
                check_repacked((struct view){repacked->bytes + PREFIX, repacked->capacity - PREFIX},
                               (enum compression)to);
            }
            block_unref(repacked);
            buffer_free(&bytes);
        }
    }
}
END_TEST

START_TEST(producer_compression_keeps_the_batch)
{
    struct buffer bytes = make_batch(COMPRESSION_ZSTD, VIEW_NULL);
    struct topic_settings settings = settings_of(TOPIC_COMPRESSION_PRODUCER, false);
    struct batch_header header;
    struct block *repacked;
    const char *why = NULL;
    ck_assert_int_eq(batch_validate(buffer_view(&bytes), &header), STATUS_OK);
    ck_assert_int_eq(
        batch_rules_apply(&settings, buffer_view(&bytes), &header, PREFIX, &repacked, &why),
        KAFKA_NONE);
    ck_assert_ptr_null(repacked);
    buffer_free(&bytes);
}
END_TEST

static int16_t apply_compacted(struct view last_key, int32_t limit)
{
    struct buffer bytes = make_batch(COMPRESSION_LZ4, last_key);
    struct topic_settings settings = settings_of(TOPIC_COMPRESSION_PRODUCER, true);
    struct batch_header header;
    struct block *repacked;
    const char *why = NULL;
    settings.max_decompressed_bytes = limit;
    ck_assert_int_eq(batch_validate(buffer_view(&bytes), &header), STATUS_OK);
    int16_t error =
        batch_rules_apply(&settings, buffer_view(&bytes), &header, PREFIX, &repacked, &why);
    ck_assert_int_eq(why == NULL, error == KAFKA_NONE);
    ck_assert_ptr_null(repacked);
    buffer_free(&bytes);
    return error;
}

START_TEST(compacted_topics_need_keys)
{
    ck_assert_int_eq(apply_compacted(VIEW_LITERAL("k2"), 1 << 20), KAFKA_NONE);
    ck_assert_int_eq(apply_compacted(VIEW_EMPTY, 1 << 20), KAFKA_NONE);
    ck_assert_int_eq(apply_compacted(VIEW_NULL, 1 << 20), KAFKA_INVALID_RECORD);
    ck_assert_int_eq(apply_compacted(VIEW_LITERAL("k2"), 4), KAFKA_INVALID_RECORD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch_rules");
    TCase *tests = tcase_create("batch_rules");
    tcase_add_test(tests, a_topic_with_its_own_compression_stores_in_it);
    tcase_add_test(tests, producer_compression_keeps_the_batch);
    tcase_add_test(tests, compacted_topics_need_keys);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
