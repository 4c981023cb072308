/* Input that is cut short, lies about its counts or says null where none may be never gets through,
 * and never makes the decoder allocate for what is not there. */
#include "protocol/codec.h"

#include <stdlib.h>
#include <string.h>

#include "messages/api_versions.h"
#include "messages/consumer_group_heartbeat.h"
#include "messages/coordinator_group.h"
#include "messages/fetch.h"
#include "messages/header.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/metadata.h"
#include "messages/produce.h"
#include "tests/unit/runner.h"

enum { ARENA_BYTES = 1 << 22 };

/* Decodes a copy in a block of its own, so that a checker of memory sees every step too far. */
static enum status decode_copy(const struct message_type *type, int16_t version,
    struct view bytes, struct arena *arena, void *message)
{
    uint8_t *copy = malloc(bytes.length + (bytes.length == 0));
    memcpy(copy, bytes.data, bytes.length);
    enum status status = message_decode_whole(type, version,
        (struct view){copy, bytes.length}, arena, message);
    free(copy);
    return status;
}

static enum status decode(const struct message_type *type, int16_t version, struct view bytes)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    void *message = arena_take(&arena, 1, type->body->size_bytes);
    enum status status = decode_copy(type, version, bytes, &arena, message);
    arena_free(&arena);
    return status;
}

static void cut_everywhere(const struct message_type *type, int16_t version, uint64_t *seed)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    void *message = arena_take(&arena, 1, type->body->size_bytes);
    struct buffer bytes = {0};
    ck_assert(message_random(type, version, seed, &arena, message));
    ck_assert_int_eq(message_encode_to(type, version, message, &bytes), STATUS_OK);
    arena_free(&arena);
    for (size_t length = 0; length < bytes.length; length++) {
        enum status status = decode(type, version, view_slice(buffer_view(&bytes), 0, length));
        ck_assert_msg(status == STATUS_TRUNCATED || status == STATUS_INVALID,
            "%s %d cut to %zu of %zu", type->name, version, length, bytes.length);
    }
    ck_assert_int_eq(decode(type, version, buffer_view(&bytes)), STATUS_OK);
    buffer_append(&bytes, "x", 1);
    ck_assert_int_eq(decode(type, version, buffer_view(&bytes)), STATUS_INVALID);
    buffer_free(&bytes);
}

START_TEST(cut_at_every_length)
{
    static const struct message_type *const types[] = {&produce_request_type, &fetch_request_type,
        &fetch_response_type, &metadata_response_type, &join_group_request_type,
        &request_header_type, &consumer_group_heartbeat_response_type,
        &consumer_group_member_metadata_value_type};
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int16_t version = types[i]->first_version; version <= types[i]->last_version;
            version++) {
            cut_everywhere(types[i], version, &seed);
        }
    }
}
END_TEST

/* Bytes that the arena handed out while this input was refused as too short. */
static size_t refused_bytes(const struct message_type *type, int16_t version, struct view bytes)
{
    struct arena arena;
    char message[4096];
    arena_init(&arena, SIZE_MAX / 2);
    ck_assert_uint_le(type->body->size_bytes, sizeof message);
    ck_assert_int_eq(decode_copy(type, version, bytes, &arena, message), STATUS_TRUNCATED);
    size_t used = arena.used_bytes;
    arena_free(&arena);
    return used;
}

START_TEST(counts_are_held_against_the_bytes_left)
{
    /* Metadata 0: a count and nothing behind it. */
    ck_assert_uint_eq(refused_bytes(&metadata_request_type, 0,
        VIEW_LITERAL("\x7f\xff\xff\xff")), 0);
    /* Three topics need two bytes each at least; there are five. */
    ck_assert_uint_eq(refused_bytes(&metadata_request_type, 0,
        VIEW_LITERAL("\x00\x00\x00\x03\x00\x00\x00\x00\x00")), 0);
    /* Flexible: 2^31 - 2 topics, and the largest count that five bytes can say. */
    ck_assert_uint_eq(refused_bytes(&metadata_request_type, 9,
        VIEW_LITERAL("\xff\xff\xff\xff\x07\x00\x00\x00")), 0);
    ck_assert_int_eq(decode(&metadata_request_type, 9,
        VIEW_LITERAL("\xff\xff\xff\xff\x0f\x00\x00\x00")), STATUS_INVALID);
    /* Flexible elements of two bytes: a name and no tags; two are said, three bytes are there. */
    ck_assert_uint_eq(refused_bytes(&metadata_request_type, 9,
        VIEW_LITERAL("\x03\x01\x00\x01")), 0);
    /* Forgotten partitions, four bytes each, in the middle of a fetch. */
    ck_assert_uint_eq(refused_bytes(&fetch_request_type, 7, VIEW_LITERAL(
        "\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff"
        "\0\0\0\0\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0")),
        sizeof(struct fetch_request_forgotten_topic));
}
END_TEST

START_TEST(arena_limit_is_kept)
{
    struct arena arena;
    struct metadata_request message;
    arena_init(&arena, 63);
    struct view one = VIEW_LITERAL("\0\0\0\x01\0\0"), input = one;
    ck_assert_int_eq(message_decode(&metadata_request_type, 0, &input, &arena, &message),
        STATUS_OK);
    arena_free(&arena);
    input = VIEW_LITERAL("\0\0\0\x02\0\0\0\0");
    ck_assert_int_eq(message_decode(&metadata_request_type, 0, &input, &arena, &message),
        STATUS_LIMIT);
    arena_free(&arena);
}
END_TEST

START_TEST(null_only_where_it_may_be)
{
    /* Metadata: null topics from version 1 on. */
    ck_assert_int_eq(decode(&metadata_request_type, 0, VIEW_LITERAL("\xff\xff\xff\xff")),
        STATUS_INVALID);
    ck_assert_int_eq(decode(&metadata_request_type, 1, VIEW_LITERAL("\xff\xff\xff\xff")),
        STATUS_OK);
    /* A name inside: not null, whatever negative length is said. */
    ck_assert_int_eq(decode(&metadata_request_type, 0, VIEW_LITERAL("\0\0\0\x01\xff\xff")),
        STATUS_INVALID);
    ck_assert_int_eq(decode(&metadata_request_type, 0, VIEW_LITERAL("\0\0\0\x01\x80\x00")),
        STATUS_INVALID);
    ck_assert_int_eq(decode(&metadata_request_type, 9, VIEW_LITERAL("\x02\x00\0\0\0\0\0")),
        STATUS_INVALID);
}
END_TEST

START_TEST(views_point_into_the_input)
{
    struct arena arena;
    struct request_header header;
    arena_init(&arena, 1);
    uint8_t bytes[] = "\0\x12\0\x03\0\0\0\x07\0\x02id\0rest";
    struct view input = {bytes, sizeof bytes - 1};
    ck_assert_int_eq(message_decode(&request_header_type, 2, &input, &arena, &header), STATUS_OK);
    ck_assert_ptr_eq(header.client_id.data, bytes + 10);
    ck_assert(view_is(header.client_id, "id"));
    ck_assert_int_eq(header.request_api_key, 18);
    ck_assert_int_eq(header.correlation_id, 7);
    ck_assert(view_is(input, "rest"));
}
END_TEST

START_TEST(unknown_tags_are_skipped)
{
    struct arena arena;
    struct heartbeat_request message;
    arena_init(&arena, 1);
    struct view tags = VIEW_LITERAL("\x02g\0\0\0\x05\x02m\0\x02\x07\x03xyz\xff\xff\xff\xff\x0f\0");
    ck_assert_int_eq(message_decode_whole(&heartbeat_request_type, 4, tags, &arena, &message),
        STATUS_OK);
    ck_assert(view_is(message.member_id, "m"));
    ck_assert_ptr_null(message.group_instance_id.data);
    /* The size of a tag is held against what is left. */
    ck_assert_int_eq(decode(&heartbeat_request_type, 4,
        VIEW_LITERAL("\x02g\0\0\0\x05\x02m\0\x01\x07\x04xyz")), STATUS_TRUNCATED);
    ck_assert_int_eq(decode(&heartbeat_request_type, 4,
        VIEW_LITERAL("\x02g\0\0\0\x05\x02m\0\xff\xff\xff\xff\x0f")), STATUS_TRUNCATED);
    ck_assert_int_eq(decode(&heartbeat_request_type, 4,
        VIEW_LITERAL("\x02g\0\0\0\x05\x02m\0\xff\xff\xff\xff\xff\x01")), STATUS_INVALID);
    /* A tag of 33 bits. */
    ck_assert_int_eq(decode(&heartbeat_request_type, 4,
        VIEW_LITERAL("\x02g\0\0\0\x05\x02m\0\x01\xff\xff\xff\xff\x1f\0")), STATUS_INVALID);
}
END_TEST

START_TEST(tagged_fields_fill_their_size)
{
    struct arena arena;
    struct api_versions_response message;
    arena_init(&arena, 1);
    /* error, no keys, throttle, one tag: the epoch, eight bytes. */
    struct view right = VIEW_LITERAL("\0\0\x01\0\0\0\0\x01\x01\x08\0\0\0\0\0\0\0\x07");
    ck_assert_int_eq(message_decode_whole(&api_versions_response_type, 3, right, &arena,
        &message), STATUS_OK);
    ck_assert_int_eq(message.finalized_features_epoch, 7);
    struct view wide = VIEW_LITERAL("\0\0\x01\0\0\0\0\x01\x01\x09\0\0\0\0\0\0\0\x07\0");
    ck_assert_int_eq(message_decode(&api_versions_response_type, 3, &wide, &arena, &message),
        STATUS_INVALID);
    ck_assert_int_eq(decode(&api_versions_response_type, 3,
        VIEW_LITERAL("\0\0\x01\0\0\0\0\x01\x01\x07\0\0\0\0\0\0\0\x07")), STATUS_TRUNCATED);
    /* In version 2 nothing is tagged. */
    ck_assert_int_eq(decode(&api_versions_response_type, 2, VIEW_LITERAL("\0\0\0\0\0\0\0\0\0\0")),
        STATUS_OK);
}
END_TEST

START_TEST(nullable_structs)
{
    struct arena arena;
    struct consumer_group_heartbeat_response message;
    arena_init(&arena, 4096);
    struct view null = VIEW_LITERAL("\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\xff\0");
    struct view odd_null = VIEW_LITERAL("\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x80\0");
    struct view present = VIEW_LITERAL("\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x01\x01\0\0");
    ck_assert_int_eq(message_decode_whole(&consumer_group_heartbeat_response_type, 0, null,
        &arena, &message), STATUS_OK);
    ck_assert_ptr_null(message.assignment);
    ck_assert_int_eq(message_decode_whole(&consumer_group_heartbeat_response_type, 0, odd_null,
        &arena, &message), STATUS_OK);
    ck_assert_ptr_null(message.assignment);
    ck_assert_int_eq(message_decode_whole(&consumer_group_heartbeat_response_type, 0, present,
        &arena, &message), STATUS_OK);
    ck_assert_ptr_nonnull(message.assignment);
    ck_assert_int_eq(message.assignment->topic_partitions_count, 0);
    arena_free(&arena);
}
END_TEST

START_TEST(tagged_nullable_structs)
{
    struct arena arena;
    struct consumer_group_member_metadata_value message;
    const struct message_type *type = &consumer_group_member_metadata_value_type;
    arena_init(&arena, 4096);
    struct view null = VIEW_LITERAL("\0\0\x01\x01\x01\0\0\0\0\x07\0\x01\0\x01\0");
    struct view present =
        VIEW_LITERAL("\0\0\x01\x01\x01\0\0\0\0\x07\0\x01\0\x07\x01\0\0\0\x09\x01\0");
    struct view absent = VIEW_LITERAL("\0\0\x01\x01\x01\0\0\0\0\x07\0\0");
    ck_assert_int_eq(message_decode_whole(type, 0, null, &arena, &message), STATUS_OK);
    ck_assert_ptr_null(message.classic_member_metadata);
    ck_assert_int_eq(message_decode_whole(type, 0, present, &arena, &message), STATUS_OK);
    ck_assert_int_eq(message.classic_member_metadata->session_timeout_ms, 9);
    ck_assert_int_eq(message_decode_whole(type, 0, absent, &arena, &message), STATUS_OK);
    ck_assert_int_eq(message.classic_member_metadata->session_timeout_ms, 0);
    arena_free(&arena);
}
END_TEST

START_TEST(strings_are_no_longer_than_kafka_lets_them)
{
    struct buffer bytes = {0};
    buffer_append(&bytes, "\x80\x80\x02", 3);  /* 32767 and one */
    memset(buffer_extend(&bytes, 32767), 'a', 32767);
    buffer_append(&bytes, "\0\0\0\x05\x02m\0\0", 8);
    ck_assert_int_eq(decode(&heartbeat_request_type, 4, buffer_view(&bytes)), STATUS_OK);
    bytes.data[0] = 0x81;
    buffer_append(&bytes, "\0", 1);
    ck_assert_int_eq(decode(&heartbeat_request_type, 4, buffer_view(&bytes)), STATUS_INVALID);
    buffer_free(&bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codec_decode");
    TCase *tests = tcase_create("codec_decode");
    tcase_add_test(tests, cut_at_every_length);
    tcase_add_test(tests, counts_are_held_against_the_bytes_left);
    tcase_add_test(tests, arena_limit_is_kept);
    tcase_add_test(tests, null_only_where_it_may_be);
    tcase_add_test(tests, views_point_into_the_input);
    tcase_add_test(tests, unknown_tags_are_skipped);
    tcase_add_test(tests, tagged_fields_fill_their_size);
    tcase_add_test(tests, nullable_structs);
    tcase_add_test(tests, tagged_nullable_structs);
    tcase_add_test(tests, strings_are_no_longer_than_kafka_lets_them);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
