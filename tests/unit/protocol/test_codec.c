/* Random messages of every type in every version come back equal and to the same bytes; defaults
 * and equality are what they say. The seed is printed and can be given in SEED. */
#include "protocol/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/consumer_group_heartbeat.h"
#include "messages/coordinator_group.h"
#include "messages/fetch.h"
#include "messages/metadata.h"
#include "messages/produce.h"
#include "tests/unit/runner.h"

enum { ARENA_BYTES = 1 << 24, ROUNDS = 6 };

static uint64_t seed_of_run(void)
{
    const char *text = getenv("SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 20240917;
    printf("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

static void *take_message(struct arena *arena, const struct message_type *type)
{
    void *message = arena_take(arena, 1, type->body->size_bytes);
    ck_assert_ptr_nonnull(message);
    return message;
}

static void round_trip(const struct message_type *type, int16_t version, uint64_t *seed)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    uint64_t began = *seed;
    void *message = take_message(&arena, type);
    void *again = take_message(&arena, type);
    struct buffer bytes = {0}, second = {0};
    ck_assert(message_random(type, version, seed, &arena, message));
    ck_assert(message_equal(type, version, message, message));
    ck_assert_int_eq(message_encode_to(type, version, message, &bytes), STATUS_OK);
    enum status status =
        message_decode_whole(type, version, buffer_view(&bytes), &arena, again);
    ck_assert_msg(status == STATUS_OK && message_equal(type, version, message, again),
        "%s %d from seed %llu", type->name, version, (unsigned long long)began);
    ck_assert_int_eq(message_encode_to(type, version, again, &second), STATUS_OK);
    ck_assert(view_equal(buffer_view(&bytes), buffer_view(&second)));
    ck_assert_uint_ge(bytes.length, type->body->minimum_bytes[version]);
    buffer_free(&bytes);
    buffer_free(&second);
    arena_free(&arena);
}

START_TEST(random_messages_come_back)
{
    uint64_t seed = seed_of_run();
    for (size_t i = 0; i < message_type_count; i++) {
        const struct message_type *type = message_types[i];
        for (int16_t version = type->first_version; version <= type->last_version; version++) {
            for (int round = 0; round < ROUNDS; round++) {
                round_trip(type, version, &seed);
            }
        }
    }
}
END_TEST

START_TEST(seed_alone_decides)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct fetch_response a, b;
    uint64_t seed = 7, same = 7;
    ck_assert(message_random(&fetch_response_type, 12, &seed, &arena, &a));
    ck_assert(message_random(&fetch_response_type, 12, &same, &arena, &b));
    ck_assert(message_equal(&fetch_response_type, 12, &a, &b));
    ck_assert_uint_eq(seed, same);
    ck_assert(message_random(&fetch_response_type, 12, &seed, &arena, &b));
    ck_assert(!message_equal(&fetch_response_type, 12, &a, &b));
    arena_free(&arena);
}
END_TEST

START_TEST(random_stops_at_the_arenas_limit)
{
    struct arena arena;
    struct fetch_response message;
    uint64_t seed = 9;
    arena_init(&arena, ARENA_BYTES);
    ck_assert(message_random(&fetch_response_type, 16, &seed, &arena, &message));
    size_t needed_bytes = arena.used_bytes;
    ck_assert_uint_gt(needed_bytes, 0);
    arena_free(&arena);
    for (size_t limit_bytes = 16; limit_bytes <= needed_bytes; limit_bytes += 16) {
        seed = 9;
        arena_init(&arena, limit_bytes);
        ck_assert_int_eq(message_random(&fetch_response_type, 16, &seed, &arena, &message),
            limit_bytes == needed_bytes);
        arena_free(&arena);
    }
}
END_TEST

START_TEST(defaults)
{
    struct fetch_request fetch;
    memset(&fetch, 0xff, sizeof fetch);
    message_init(&fetch_request_type, &fetch);
    ck_assert_int_eq(fetch.replica_id, -1);
    ck_assert_int_eq(fetch.max_bytes, INT32_MAX);
    ck_assert_int_eq(fetch.replica_state.replica_epoch, -1);
    ck_assert_ptr_null(fetch.cluster_id.data);
    ck_assert_ptr_nonnull(fetch.rack_id.data);
    ck_assert_int_eq(fetch.topics_count, 0);
    ck_assert_int_eq(fetch_request_fetch_partition_default.high_watermark, INT64_MAX);
    struct consumer_group_heartbeat_response heartbeat;
    message_init(&consumer_group_heartbeat_response_type, &heartbeat);
    ck_assert_ptr_null(heartbeat.assignment);
    struct consumer_group_member_metadata_value member;
    message_init(&consumer_group_member_metadata_value_type, &member);
    ck_assert_ptr_nonnull(member.classic_member_metadata);
    ck_assert_int_eq(member.classic_member_metadata->session_timeout_ms, 0);
}
END_TEST

START_TEST(elements_are_copies_of_the_default)
{
    struct arena arena;
    arena_init(&arena, 4096);
    struct produce_response_partition_produce_response *elements = message_elements(&arena, 3,
        &produce_response_partition_produce_response_default, sizeof *elements);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(elements[i].log_start_offset, -1);
        ck_assert_int_eq(elements[i].current_leader.leader_epoch, -1);
    }
    ck_assert_ptr_nonnull(message_elements(&arena, 0, elements, sizeof *elements));
    ck_assert_ptr_null(message_elements(&arena, 100, elements, sizeof *elements));
    arena_free(&arena);
}
END_TEST

START_TEST(equality_looks_into_everything)
{
    struct produce_request_partition_produce_data partitions[2] = {
        {.index = 1, .records.bytes = VIEW_LITERAL("abc")}, {.index = 2}};
    struct produce_request_partition_produce_data others[2] = {partitions[0], partitions[1]};
    struct produce_request_topic_produce_data topic = {
        .name = VIEW_LITERAL("t"), .partition_data = partitions, .partition_data_count = 2};
    struct produce_request_topic_produce_data other = topic;
    struct produce_request a = {.topic_data = &topic, .topic_data_count = 1};
    struct produce_request b = {.topic_data = &other, .topic_data_count = 1};
    other.partition_data = others;
    ck_assert(message_equal(&produce_request_type, 9, &a, &b));
    others[1].index = 3;
    ck_assert(!message_equal(&produce_request_type, 9, &a, &b));
    others[1].index = 2;
    others[0].records.bytes = VIEW_LITERAL("abd");
    ck_assert(!message_equal(&produce_request_type, 9, &a, &b));
    others[0].records = (struct message_records){.external_length = 3};
    ck_assert(!message_equal(&produce_request_type, 9, &a, &b));
    partitions[0].records = (struct message_records){.external_length = 4};
    ck_assert(!message_equal(&produce_request_type, 9, &a, &b));
    others[0] = partitions[0];
    ck_assert(message_equal(&produce_request_type, 9, &a, &b));
    other.partition_data_count = 1;
    ck_assert(!message_equal(&produce_request_type, 9, &a, &b));
    other.partition_data_count = 2;
    other.topic_id.bytes[3] = 1;  /* not in version 9 */
    ck_assert(message_equal(&produce_request_type, 9, &a, &b));
    ck_assert(!message_equal(&produce_request_type, 13, &a, &b));
}
END_TEST

START_TEST(versions)
{
    ck_assert(!message_has_version(&produce_request_type, 2));
    ck_assert(message_has_version(&produce_request_type, 3));
    ck_assert(message_has_version(&produce_request_type, 13));
    ck_assert(!message_has_version(&produce_request_type, 14));
    ck_assert(!message_has_version(&metadata_request_type, -1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codec");
    TCase *tests = tcase_create("codec");
    tcase_add_test(tests, random_messages_come_back);
    tcase_add_test(tests, seed_alone_decides);
    tcase_add_test(tests, random_stops_at_the_arenas_limit);
    tcase_add_test(tests, defaults);
    tcase_add_test(tests, elements_are_copies_of_the_default);
    tcase_add_test(tests, equality_looks_into_everything);
    tcase_add_test(tests, versions);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
