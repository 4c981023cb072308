/* The wrapping of metadata records is Kafka's, byte for byte. */
#include "broker/controller/metadata_record.h"

#include <string.h>

#include "messages/metadata_records.h"
#include "messages/ottla_records.h"
#include "tests/unit/runner.h"

START_TEST(bytes_are_as_kafka_writes_them)
{
    struct record_list list = {0};
    struct producer_ids_record record = {.broker_id = 1, .broker_epoch = -1,
                                         .next_producer_id = 1000};
    record_list_add(&list, &producer_ids_record_type, 0, &record);
    static const uint8_t expected[] = {1, 15, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255,
                                       255, 255, 255, 0, 0, 0, 0, 0, 0, 3, 232, 0};
    struct view value = record_list_get(&list, 0);
    ck_assert_uint_eq(value.length, sizeof expected);
    ck_assert_mem_eq(value.data, expected, sizeof expected);
    record_list_free(&list);
}
END_TEST

START_TEST(records_are_found_again)
{
    struct record_list list = {0};
    for (int i = 0; i < 40; i++) {
        struct next_group_record record = {.next_group_id = i};
        record_list_add(&list, &next_group_record_type, 0, &record);
    }
    ck_assert_uint_eq(list.count, 40);
    for (size_t i = 0; i < 40; i++) {
        int16_t id = 0;
        int16_t version = -1;
        struct view body = VIEW_NULL;
        ck_assert_int_eq(metadata_record_open(record_list_get(&list, i), &id, &version, &body),
                         STATUS_OK);
        ck_assert_int_eq(id, 20001);
        ck_assert_int_eq(version, 0);
        ck_assert_uint_eq(body.length, 9);
        ck_assert_uint_eq(body.data[7], i);
    }
    record_list_cut(&list, 2);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_uint_eq(list.bytes.length, list.ends[1]);
    record_list_cut(&list, 0);
    ck_assert_uint_eq(list.bytes.length, 0);
    record_list_free(&list);
}
END_TEST

static enum status opened(const char *bytes, size_t length)
{
    int16_t id = 0;
    int16_t version = 0;
    struct view body = VIEW_NULL;
    return metadata_record_open((struct view){(const uint8_t *)bytes, length}, &id, &version,
                                &body);
}

START_TEST(what_is_no_record_is_told)
{
    ck_assert_int_eq(opened("\1\2\0", 3), STATUS_OK);
    ck_assert_int_eq(opened("\1\2", 2), STATUS_TRUNCATED);
    ck_assert_int_eq(opened("", 0), STATUS_TRUNCATED);
    ck_assert_int_eq(opened("\2\2\0", 3), STATUS_UNSUPPORTED);
    ck_assert_int_eq(opened("\1\xff\xff\x7f\0", 5), STATUS_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metadata record");
    TCase *tests = tcase_create("metadata record");
    tcase_add_test(tests, bytes_are_as_kafka_writes_them);
    tcase_add_test(tests, records_are_found_again);
    tcase_add_test(tests, what_is_no_record_is_told);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
