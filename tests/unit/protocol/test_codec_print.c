/* JSON of messages: what log lines and tools show. */
#include <math.h>
#include <string.h>

#include "messages/alter_client_quotas.h"
#include "messages/heartbeat.h"
#include "messages/offset_commit.h"
#include "messages/produce.h"
#include "protocol/codec.h"
#include "tests/unit/runner.h"

static void check(const struct message_type *type, int16_t version, const void *message,
    const char *want)
{
    struct buffer text = {0};
    message_print_json(type, version, message, &text);
    buffer_append(&text, "", 1);
    ck_assert_str_eq((const char *)text.data, want);
    buffer_free(&text);
}

START_TEST(strings_are_escaped)
{
    struct heartbeat_request message;
    message_init(&heartbeat_request_type, &message);
    message.group_id = VIEW_LITERAL("a\"b\\c\n\x01");
    check(&heartbeat_request_type, 0, &message,
        "{\"groupId\":\"a\\\"b\\\\c\\u000a\\u0001\",\"generationId\":0,\"memberId\":\"\"}");
    check(&heartbeat_request_type, 3, &message,
        "{\"groupId\":\"a\\\"b\\\\c\\u000a\\u0001\",\"generationId\":0,\"memberId\":\"\","
        "\"groupInstanceId\":null}");
}
END_TEST

START_TEST(records_are_hex_or_a_length)
{
    struct produce_request_partition_produce_data partitions[3] = {
        {.index = 1, .records.bytes = VIEW_LITERAL("\x01\xaf")}, {.index = 2},
        {.index = -3, .records.external_length = 90}};
    struct produce_request_topic_produce_data topic = {
        .name = VIEW_LITERAL("t"), .partition_data = partitions, .partition_data_count = 3};
    struct produce_request message = {.topic_data = &topic, .topic_data_count = 1};
    check(&produce_request_type, 9, &message,
        "{\"transactionalId\":null,\"acks\":0,\"timeoutMs\":0,\"topicData\":[{\"name\":\"t\","
        "\"partitionData\":[{\"index\":1,\"records\":\"01af\"},{\"index\":2,\"records\":null},"
        "{\"index\":-3,\"records\":{\"externalLength\":90}}]}]}");
}
END_TEST

START_TEST(fractions_look_like_fractions)
{
    struct alter_client_quotas_request_op_data op = {.key = VIEW_LITERAL("k"), .value = 7};
    struct alter_client_quotas_request_entry_data entry = {.ops = &op, .ops_count = 1};
    struct alter_client_quotas_request message = {.entries = &entry, .entries_count = 1};
    check(&alter_client_quotas_request_type, 0, &message,
        "{\"entries\":[{\"entity\":[],\"ops\":[{\"key\":\"k\",\"value\":7.0,\"remove\":false}]}],"
        "\"validateOnly\":false}");
    op.value = INFINITY;
    op.remove = true;
    check(&alter_client_quotas_request_type, 0, &message,
        "{\"entries\":[{\"entity\":[],\"ops\":[{\"key\":\"k\",\"value\":null,\"remove\":true}]}],"
        "\"validateOnly\":false}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codec_print");
    TCase *tests = tcase_create("codec_print");
    tcase_add_test(tests, strings_are_escaped);
    tcase_add_test(tests, records_are_hex_or_a_length);
    tcase_add_test(tests, fractions_look_like_fractions);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
