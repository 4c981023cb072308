/* Encoding drops what may be dropped, refuses what may not, leaves gaps for records that lie
 * elsewhere, and leaves the buffer alone when it fails. */
#include "protocol/codec.h"

#include <stdlib.h>
#include <string.h>

#include "messages/describe_groups.h"
#include "messages/fetch.h"
#include "messages/metadata.h"
#include "messages/produce.h"
#include "tests/unit/runner.h"

START_TEST(appends_behind_what_is_there)
{
    struct buffer buffer = {0};
    struct metadata_request request;
    buffer_append(&buffer, "size", 4);
    message_init(&metadata_request_type, &request);
    ck_assert_int_eq(message_encode_to(&metadata_request_type, 0, &request, &buffer), STATUS_OK);
    ck_assert(view_equal(buffer_view(&buffer), VIEW_LITERAL("size\0\0\0\0")));
    buffer_free(&buffer);
}
END_TEST

START_TEST(fields_that_a_version_lacks)
{
    struct buffer buffer = {0};
    struct fetch_request request;
    buffer_append(&buffer, "kept", 4);
    message_init(&fetch_request_type, &request);
    request.rack_id = VIEW_LITERAL("r1");  /* from 11 on, may be dropped */
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 4, &request, &buffer), STATUS_OK);
    buffer.length = 4;
    request.replica_state.replica_epoch = 5;  /* from 15 on, may not */
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 14, &request, &buffer),
        STATUS_UNSUPPORTED);
    ck_assert(view_is(buffer_view(&buffer), "kept"));
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 15, &request, &buffer), STATUS_OK);
    buffer.length = 4;
    request.replica_state.replica_epoch = -1;
    struct fetch_request_forgotten_topic topic = {.topic = VIEW_LITERAL("t")};
    request.forgotten_topics_data = &topic;
    request.forgotten_topics_data_count = 1;  /* from 7 on */
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 6, &request, &buffer),
        STATUS_UNSUPPORTED);
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 7, &request, &buffer), STATUS_OK);
    buffer_free(&buffer);
}
END_TEST

START_TEST(null_where_none_may_be)
{
    struct buffer buffer = {0};
    struct metadata_request request;
    message_init(&metadata_request_type, &request);
    request.topics_count = -1;
    ck_assert_int_eq(message_encode_to(&metadata_request_type, 0, &request, &buffer),
        STATUS_UNSUPPORTED);
    ck_assert_int_eq(message_encode_to(&metadata_request_type, 1, &request, &buffer), STATUS_OK);
    struct metadata_request_metadata_request_topic topic = {.name = VIEW_NULL};
    request.topics = &topic;
    request.topics_count = 1;
    ck_assert_int_eq(message_encode_to(&metadata_request_type, 9, &request, &buffer),
        STATUS_UNSUPPORTED);
    ck_assert_int_eq(message_encode_to(&metadata_request_type, 12, &request, &buffer), STATUS_OK);
    buffer_free(&buffer);
}
END_TEST

START_TEST(strings_that_are_too_long)
{
    struct buffer buffer = {0};
    char *text = calloc(1, 32768);
    struct fetch_request request;
    message_init(&fetch_request_type, &request);
    request.rack_id = (struct view){(uint8_t *)text, 32767};
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 11, &request, &buffer), STATUS_OK);
    request.rack_id.length++;
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 11, &request, &buffer),
        STATUS_INVALID);
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 12, &request, &buffer),
        STATUS_INVALID);
    /* The buffer has grown on the way to the field that fails. */
    struct fetch_request_forgotten_topic topic = {.topic = {(uint8_t *)text, 30000}};
    size_t length = buffer.length;
    request.forgotten_topics_data = &topic;
    request.forgotten_topics_data_count = 1;
    ck_assert_int_eq(message_encode_to(&fetch_request_type, 12, &request, &buffer),
        STATUS_INVALID);
    ck_assert_uint_eq(buffer.length, length);
    free(text);
    buffer_free(&buffer);
}
END_TEST

START_TEST(large_tagged_fields_are_moved_behind_their_size)
{
    struct fetch_response_node_endpoint nodes[40];
    for (int i = 0; i < 40; i++) {
        nodes[i] = (struct fetch_response_node_endpoint){
            .node_id = i, .host = VIEW_LITERAL("broker.example"), .port = 9092};
    }
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct fetch_response response, again;
    message_init(&fetch_response_type, &response);
    response.node_endpoints = nodes;
    for (int count = 0; count <= 40; count++) {
        struct buffer buffer = {0};
        response.node_endpoints_count = count;
        ck_assert_int_eq(message_encode_to(&fetch_response_type, 16, &response, &buffer),
            STATUS_OK);
        ck_assert_int_eq(message_decode_whole(&fetch_response_type, 16, buffer_view(&buffer),
            &arena, &again), STATUS_OK);
        ck_assert(message_equal(&fetch_response_type, 16, &response, &again));
        buffer_free(&buffer);
    }
    arena_free(&arena);
}
END_TEST

/* A fetch answer of two partitions, whose records are given. */
static void encode_fetch(int16_t version, struct message_records first,
    struct message_records second, struct message_output *output)
{
    struct fetch_response_partition_data partitions[2] = {
        fetch_response_partition_data_default, fetch_response_partition_data_default};
    struct fetch_response_fetchable_topic_response topic = {
        .topic = VIEW_LITERAL("t"), .partitions = partitions, .partitions_count = 2};
    struct fetch_response response;
    message_init(&fetch_response_type, &response);
    response.responses = &topic;
    response.responses_count = 1;
    partitions[0].records = first;
    partitions[1].records = second;
    ck_assert_int_eq(message_encode(&fetch_response_type, version, &response, output), STATUS_OK);
}

static void check_gaps(int16_t version, uint32_t first_length, uint32_t second_length)
{
    uint8_t *bytes = calloc(1, 100000);
    struct buffer whole = {0}, frame = {0}, spliced = {0};
    struct message_output plain = {.buffer = &whole}, output = {.buffer = &frame};
    buffer_append(&whole, "head", 4);
    buffer_append(&frame, "head", 4);
    encode_fetch(version, (struct message_records){.bytes = {bytes, first_length}},
        (struct message_records){.bytes = {bytes, second_length}}, &plain);
    encode_fetch(version, (struct message_records){.external_length = first_length},
        (struct message_records){.external_length = second_length}, &output);
    ck_assert_uint_eq(plain.gap_count, 0);
    ck_assert_uint_eq(output.gap_count, 2);
    ck_assert_uint_eq(output.gaps[0].length, first_length);
    ck_assert_uint_eq(output.gaps[1].length, second_length);
    size_t from = 0;
    for (size_t i = 0; i < output.gap_count; i++) {
        buffer_append(&spliced, frame.data + from, output.gaps[i].position - from);
        buffer_append(&spliced, bytes, output.gaps[i].length);
        from = output.gaps[i].position;
    }
    buffer_append(&spliced, frame.data + from, frame.length - from);
    ck_assert(view_equal(buffer_view(&spliced), buffer_view(&whole)));
    free(output.gaps);
    buffer_free(&whole);
    buffer_free(&frame);
    buffer_free(&spliced);
    free(bytes);
}

START_TEST(gaps_stand_for_bytes_elsewhere)
{
    for (int16_t version = 4; version <= 12; version++) {
        check_gaps(version, 1, 126);
        check_gaps(version, 127, 128);
        check_gaps(version, 100000, 16383);
    }
}
END_TEST

START_TEST(failure_takes_gaps_back)
{
    struct buffer frame = {0};
    struct message_output output = {.buffer = &frame};
    struct fetch_response_partition_data partition = fetch_response_partition_data_default;
    struct fetch_response_fetchable_topic_response topics[2] = {
        {.topic = VIEW_LITERAL("t"), .partitions = &partition, .partitions_count = 1},
        {.topic = VIEW_NULL}};
    struct fetch_response response;
    message_init(&fetch_response_type, &response);
    response.responses = topics;
    response.responses_count = 2;
    partition.records.external_length = 70;
    ck_assert_int_eq(message_encode(&fetch_response_type, 12, &response, &output),
        STATUS_UNSUPPORTED);
    ck_assert_uint_eq(output.gap_count, 0);
    ck_assert_uint_eq(frame.length, 0);
    free(output.gaps);
    buffer_free(&frame);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codec_encode");
    TCase *tests = tcase_create("codec_encode");
    tcase_add_test(tests, appends_behind_what_is_there);
    tcase_add_test(tests, fields_that_a_version_lacks);
    tcase_add_test(tests, null_where_none_may_be);
    tcase_add_test(tests, strings_that_are_too_long);
    tcase_add_test(tests, large_tagged_fields_are_moved_behind_their_size);
    tcase_add_test(tests, gaps_stand_for_bytes_elsewhere);
    tcase_add_test(tests, failure_takes_gaps_back);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
