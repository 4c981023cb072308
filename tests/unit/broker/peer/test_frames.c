/* Raft messages come out of a frame as they went in, with entries of every size, and the payloads
 * are parts of the received frame. */
#include "broker/peer/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/header.h"
#include "protocol/api_table.h"
#include "tests/unit/runner.h"

enum { ENTRIES = 6 };

static const size_t sizes[ENTRIES] = {0, 1, PEER_COPY_BELOW_BYTES - 1, PEER_COPY_BELOW_BYTES,
                                      100000, 7};

static void make_entries(struct raft_entry *entries, uint64_t before)
{
    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = (struct raft_entry){
            .index = before + 1 + (uint64_t)i, .term = 40 + (uint64_t)i, .kind = RAFT_ENTRY_DATA};
        if (sizes[i] > 0) {
            struct block *block = block_new(sizes[i] + 10);
            memset(block->bytes, 'a' + i, block->capacity);
            entries[i].payload = slice_of(block, 5, sizes[i]);
        }
    }
}

static void free_entries(struct raft_entry *entries)
{
    for (int i = 0; i < ENTRIES; i++) {
        block_unref(entries[i].payload.block);
    }
}

/* What was written, as the other side reads it: a block without the size. */
static struct block *take_frame(struct evbuffer *out, size_t *length)
{
    uint8_t head[4];
    ck_assert_int_eq(evbuffer_remove(out, head, sizeof head), 4);
    *length = load_be32(head);
    ck_assert_uint_le(*length, evbuffer_get_length(out));
    struct block *block = block_new(*length);
    ck_assert_int_eq(evbuffer_remove(out, block->bytes, *length), (int)*length);
    return block;
}

static void decode(struct block *block, size_t length, struct arena *arena,
                   struct request_header *header, struct peer_raft_request *request)
{
    struct view rest = {block->bytes, length};
    arena_init(arena, 1 << 20);
    ck_assert_int_eq(message_decode(&request_header_type, 1, &rest, arena, header), STATUS_OK);
    ck_assert_int_eq(
        message_decode_whole(&peer_raft_request_type, 0, rest, arena, request), STATUS_OK);
}

static void check_same(const struct raft_message *a, const struct raft_message *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_int_eq(a->accepted, b->accepted);
    ck_assert_int_eq(a->transfer, b->transfer);
    ck_assert_int_eq(a->sleep, b->sleep);
    ck_assert_int_eq(a->withdrawn, b->withdrawn);
    ck_assert_int_eq(a->note, b->note);
    ck_assert_uint_eq(a->term, b->term);
    ck_assert_uint_eq(a->index, b->index);
    ck_assert_uint_eq(a->log_term, b->log_term);
    ck_assert_uint_eq(a->commit, b->commit);
    ck_assert_uint_eq(a->hint_index, b->hint_index);
    ck_assert_uint_eq(a->round, b->round);
    ck_assert_uint_eq(a->entry_count, b->entry_count);
    for (size_t i = 0; i < a->entry_count; i++) {
        ck_assert_uint_eq(a->entries[i].index, b->entries[i].index);
        ck_assert_uint_eq(a->entries[i].term, b->entries[i].term);
        ck_assert_int_eq(a->entries[i].kind, b->entries[i].kind);
        ck_assert(a->entries[i].payload.length == b->entries[i].payload.length);
        ck_assert(a->entries[i].payload.length == 0 ||
                  memcmp(a->entries[i].payload.data, b->entries[i].payload.data,
                         a->entries[i].payload.length) == 0);
    }
}

static void round_trip(const struct raft_message *messages, int count)
{
    struct raft_outbox outbox = {0};
    struct evbuffer *out = evbuffer_new();
    struct request_header header;
    struct peer_raft_request request;
    struct arena arena;
    size_t length;
    for (int i = 0; i < count; i++) {
        raft_outbox_add(&outbox, 100 + (uint64_t)i, &messages[i],
                        (struct payload_place){.position = 4711, .overlap = 4});
    }
    size_t about = outbox.bytes;
    raft_outbox_write(&outbox, 77, out);
    ck_assert_uint_eq(outbox.message_count, 0);
    ck_assert_uint_eq(outbox.bytes, 0);
    struct block *block = take_frame(out, &length);
    ck_assert_uint_eq(evbuffer_get_length(out), 0);
    ck_assert_uint_le(length, about + 64 + (size_t)count * PAYLOAD_PLACE_UNIT);
    decode(block, length, &arena, &header, &request);
    ck_assert_int_eq(header.request_api_key, API_PEER_RAFT);
    ck_assert_int_eq(header.correlation_id, 77);
    ck_assert_int_eq(request.messages_count, count);
    for (int i = 0; i < count; i++) {
        struct raft_entry entries[ENTRIES];
        struct raft_message message = raft_message_of(&request.messages[i], block, entries);
        ck_assert_int_eq(request.messages[i].group, 100 + i);
        check_same(&message, &messages[i]);
        for (size_t k = 0; k < message.entry_count; k++) {
            bool has_bytes = message.entries[k].payload.length > 0;
            ck_assert_ptr_eq(message.entries[k].payload.block, has_bytes ? block : NULL);
        }
    }
    block_unref(block);
    arena_free(&arena);
    evbuffer_free(out);
    raft_outbox_free(&outbox);
}

START_TEST(entries_of_every_size_come_back)
{
    struct raft_entry entries[ENTRIES];
    make_entries(entries, 5000000000);
    struct raft_message messages[3] = {
        {.kind = RAFT_APPEND, .term = 44, .index = 5000000000, .log_term = 40, .commit = 4999999999,
         .entries = entries, .entry_count = ENTRIES},
        {.kind = RAFT_HEARTBEAT, .sleep = true, .term = 1, .round = UINT64_MAX},
        {.kind = RAFT_APPEND, .term = 9, .index = 5000000002, .entries = entries + 2,
         .entry_count = 3},
    };
    round_trip(messages, 3);
    round_trip(messages + 2, 1);
    free_entries(entries);
}
END_TEST

START_TEST(every_field_comes_back)
{
    for (uint8_t kind = RAFT_PRE_VOTE; kind <= RAFT_TIMEOUT_NOW; kind++) {
        struct raft_message message = {
            .kind = kind,
            .accepted = kind % 2 == 0,
            .transfer = kind % 3 == 0,
            .sleep = kind % 5 == 0,
            .withdrawn = kind % 7 == 0,
            .note = INT32_MAX - kind,
            .term = 1 + (uint64_t)kind,
            .index = UINT64_C(1) << (40 + kind),
            .log_term = 3,
            .commit = UINT64_MAX - 1,
            .hint_index = 5,
            .round = 6,
        };
        round_trip(&message, 1);
    }
}
END_TEST

START_TEST(large_payloads_go_by_reference)
{
    struct raft_entry entries[ENTRIES];
    struct raft_outbox outbox = {0};
    struct evbuffer *out = evbuffer_new();
    make_entries(entries, 0);
    struct raft_message message = {
        .kind = RAFT_APPEND, .term = 50, .entries = entries, .entry_count = ENTRIES};
    raft_outbox_add(&outbox, 1, &message, (struct payload_place){0});
    raft_outbox_write(&outbox, 1, out);
    for (int i = 0; i < ENTRIES; i++) {
        if (sizes[i] > 0) {
            bool held = sizes[i] >= PEER_COPY_BELOW_BYTES;
            ck_assert_uint_eq(atomic_load(&entries[i].payload.block->references), held ? 2 : 1);
        }
    }
    evbuffer_free(out);
    for (int i = 1; i < ENTRIES; i++) {
        ck_assert_uint_eq(atomic_load(&entries[i].payload.block->references), 1);
    }
    raft_outbox_free(&outbox);
    free_entries(entries);
}
END_TEST

/* Batches with a prefix of four bytes each that stays out of the file, among entries too small to
 * be worth it and messages of other groups. */
START_TEST(large_payloads_lie_as_they_will_in_the_file)
{
    enum { OVERLAP = 4, COUNT = 5 };
    static const size_t lengths[COUNT] = {20000, 70001, 100, 8192, 300000};
    struct raft_entry entries[COUNT];
    struct raft_outbox outbox = {0};
    struct evbuffer *out = evbuffer_new();
    struct request_header header;
    struct peer_raft_request request;
    struct arena arena;
    size_t length;
    for (int i = 0; i < COUNT; i++) {
        entries[i] = (struct raft_entry){.index = 8 + (uint64_t)i, .term = 3,
                                         .payload = slice_of(block_new(lengths[i]), 0, lengths[i])};
        memset(entries[i].payload.block->bytes, 'a' + i, lengths[i]);
    }
    struct raft_message messages[2] = {{.kind = RAFT_HEARTBEAT, .term = 3},
        {.kind = RAFT_APPEND, .term = 3, .index = 7, .entries = entries, .entry_count = COUNT}};
    uint64_t position = 1000003;
    raft_outbox_add(&outbox, 1, &messages[0], (struct payload_place){0});
    for (uint64_t group = 2; group < 4; group++) {
        struct payload_place place = {.position = position - OVERLAP, .overlap = OVERLAP};
        raft_outbox_add(&outbox, group, &messages[1], place);
    }
    raft_outbox_write(&outbox, 5, out);
    struct block *block = take_frame(out, &length);
    decode(block, length, &arena, &header, &request);
    for (int i = 0; i < 2 * COUNT; i++) {
        struct view payload = request.messages[1 + i / COUNT].entries[i % COUNT].payload.bytes;
        uint64_t at = (uint64_t)(payload.data - block->bytes) + OVERLAP;
        ck_assert_uint_eq(payload.length, lengths[i % COUNT]);
        ck_assert_int_eq(payload.data[payload.length - 1], 'a' + i % COUNT);
        position = i % COUNT == 0 ? 1000003 : position;
        ck_assert(payload.length == 100 ||
                  at % PAYLOAD_PLACE_UNIT == position % PAYLOAD_PLACE_UNIT);
        position += payload.length - OVERLAP;
    }
    block_unref(block);
    arena_free(&arena);
    evbuffer_free(out);
    raft_outbox_free(&outbox);
    for (int i = 0; i < COUNT; i++) {
        block_unref(entries[i].payload.block);
    }
}
END_TEST

START_TEST(a_small_part_of_a_large_frame_is_copied)
{
    struct block *frame = block_new(400000);
    memset(frame->bytes, 'f', frame->capacity);
    struct raft_entry entries[3] = {{.payload = slice_of(frame, 10, 5000)},
                                    {.index = 2},
                                    {.payload = slice_of(frame, 300000, 1)}};
    frame->bytes[10] = 'a';
    frame->bytes[300000] = 'b';
    ck_assert_ptr_null(raft_message_detach(entries, 3, 64 * 1024)); /* not a large frame */
    ck_assert_ptr_null(raft_message_detach(entries + 1, 1, 400000)); /* nothing to copy */
    ck_assert_ptr_eq(entries[0].payload.block, frame);
    struct block *own = raft_message_detach(entries, 3, 400000);
    ck_assert_ptr_nonnull(own);
    ck_assert_uint_eq(own->capacity, 5001);
    ck_assert_ptr_eq(entries[0].payload.block, own);
    ck_assert_ptr_null(entries[1].payload.block);
    ck_assert_ptr_eq(entries[2].payload.block, own);
    block_unref(frame);
    ck_assert_int_eq(entries[0].payload.data[0], 'a');
    ck_assert_int_eq(entries[0].payload.data[4999], 'f');
    ck_assert_int_eq(entries[2].payload.data[0], 'b');
    block_unref(own);
    struct block *full = block_new(400000);
    struct raft_entry large = {.payload = slice_of(full, 0, 100000)};
    ck_assert_ptr_null(raft_message_detach(&large, 1, 400000));
    block_unref(full);
}
END_TEST

START_TEST(what_is_not_sent_is_let_go)
{
    struct raft_entry entries[ENTRIES];
    struct raft_outbox outbox = {0};
    make_entries(entries, 0);
    struct raft_message message = {
        .kind = RAFT_APPEND, .term = 50, .entries = entries, .entry_count = ENTRIES};
    raft_outbox_add(&outbox, 1, &message, (struct payload_place){0});
    ck_assert_uint_eq(atomic_load(&entries[1].payload.block->references), 2);
    raft_outbox_free(&outbox);
    ck_assert_uint_eq(atomic_load(&entries[1].payload.block->references), 1);
    ck_assert_uint_eq(outbox.bytes, 0);
    free_entries(entries);
}
END_TEST

START_TEST(a_beat_is_a_frame_without_messages)
{
    struct raft_outbox outbox = {0};
    struct evbuffer *out = evbuffer_new();
    struct request_header header;
    struct peer_raft_request request;
    struct arena arena;
    size_t length;
    raft_outbox_write(&outbox, 0, out);
    struct block *block = take_frame(out, &length);
    decode(block, length, &arena, &header, &request);
    ck_assert_int_eq(request.messages_count, 0);
    ck_assert_uint_eq(length, 14);
    block_unref(block);
    arena_free(&arena);
    evbuffer_free(out);
    raft_outbox_free(&outbox);
}
END_TEST

/* In a version with tagged fields too. */
START_TEST(a_frame_begins_as_the_codec_writes_it)
{
    static const struct {
        int16_t key;
        int16_t version;
        int16_t header;
    } requests[] = {{API_PEER_RAFT, 0, 1}, {API_METADATA, 8, 1}, {API_METADATA, 9, 2}};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct buffer frame = {0};
        struct buffer expected = {0};
        struct request_header header = {.request_api_key = requests[i].key,
                                        .request_api_version = requests[i].version,
                                        .correlation_id = 0x01020304};
        peer_frame_begin(&frame, requests[i].key, requests[i].version, 0x01020304);
        buffer_append_be32(&expected, 0);
        ck_assert_int_eq(message_encode_to(&request_header_type, requests[i].header, &header,
                                           &expected), STATUS_OK);
        ck_assert_uint_eq(frame.length, expected.length);
        ck_assert_mem_eq(frame.data, expected.data, frame.length);
        buffer_free(&frame);
        buffer_free(&expected);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frames");
    TCase *tests = tcase_create("frames");
    tcase_add_test(tests, entries_of_every_size_come_back);
    tcase_add_test(tests, every_field_comes_back);
    tcase_add_test(tests, large_payloads_go_by_reference);
    tcase_add_test(tests, large_payloads_lie_as_they_will_in_the_file);
    tcase_add_test(tests, a_small_part_of_a_large_frame_is_copied);
    tcase_add_test(tests, what_is_not_sent_is_let_go);
    tcase_add_test(tests, a_beat_is_a_frame_without_messages);
    tcase_add_test(tests, a_frame_begins_as_the_codec_writes_it);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
