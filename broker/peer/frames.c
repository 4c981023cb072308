/* Encoding and decoding of frames between nodes. Bytes go out as references to blocks: what the
 * evbuffer copies, it puts into chains as large as the piece before. Nothing here can fail: what is
 * encoded is made here, and what is decoded has been checked by the codec. */
#include "broker/peer/frames.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "protocol/api_table.h"

enum {
    FRAME_SIZE_BYTES = 4,        /* they do not count */
    FLAG_ACCEPTED = 1,
    FLAG_TRANSFER = 2,
    FLAG_SLEEP = 4,
    FLAG_WITHDRAWN = 8,
    MESSAGE_BYTES = 66,          /* on the wire, without entries */
    ENTRY_BYTES = 17,            /* without payload and pad */
    PAD_FROM_BYTES = 8 * 1024,   /* smaller payloads are copied on their way to the disk */
    KEPT_ENTRIES = 4096,         /* room that stays for the next frame */
    KEPT_FRAME_BYTES = 16 * 1024,
    HEADER_BYTES = 15,           /* with the size in front, without a client id */
    SMALL_FRAME_BYTES = 64 * 1024,
    LEAST_SHARE = 4,             /* a message below a fourth of its frame has its payloads copied */
};

static void give_back_block(const void *data, size_t length, void *argument)
{
    (void)data;
    (void)length;
    block_unref(argument);
}

/* Takes over the caller's reference. */
static void add_piece(struct evbuffer *out, struct block *block, const uint8_t *data, size_t length)
{
    if (length == 0) {
        block_unref(block);
        return;
    }
    int failed = evbuffer_add_reference(out, data, length, give_back_block, block);
    assert(failed == 0);
    (void)failed;
}

static void reserve(struct raft_outbox *outbox, size_t entries)
{
    if (outbox->message_count == outbox->message_capacity) {
        outbox->message_capacity = outbox->message_capacity > 0 ? outbox->message_capacity * 2 : 16;
        outbox->messages = memory_resize(outbox->messages, outbox->message_capacity,
                                         sizeof *outbox->messages);
    }
    if (outbox->entry_count + entries > outbox->entry_capacity) {
        outbox->entry_capacity = (outbox->entry_count + entries) * 2;
        outbox->entries =
            memory_resize(outbox->entries, outbox->entry_capacity, sizeof *outbox->entries);
        outbox->payloads =
            memory_resize(outbox->payloads, outbox->entry_capacity, sizeof *outbox->payloads);
        outbox->places =
            memory_resize(outbox->places, outbox->entry_capacity, sizeof *outbox->places);
    }
}

static const uint8_t no_bytes[PAYLOAD_PLACE_UNIT];

static void add_entry(struct raft_outbox *outbox, const struct raft_entry *entry, uint64_t place)
{
    struct peer_raft_request_entry *out = &outbox->entries[outbox->entry_count];
    struct slice payload = entry->payload;
    *out = (struct peer_raft_request_entry){.term = (int64_t)entry->term,
                                            .kind = (int8_t)entry->kind};
    if (payload.block != NULL && payload.length >= PEER_COPY_BELOW_BYTES) {
        assert(payload.length < INT32_MAX);
        out->payload.external_length = (uint32_t)payload.length;
    } else {
        out->payload.bytes = payload.length > 0 ? slice_view(payload) : VIEW_EMPTY;
    }
    assert(payload.block != NULL || payload.length == 0);
    if (payload.block != NULL) {
        block_ref(payload.block);
    }
    outbox->places[outbox->entry_count] = place;
    outbox->payloads[outbox->entry_count++] = payload;
    outbox->bytes += ENTRY_BYTES + payload.length;
}

void raft_outbox_add(struct raft_outbox *outbox, uint64_t group,
                     const struct raft_message *message, struct payload_place place)
{
    reserve(outbox, message->entry_count);
    assert(message->entry_count <= INT32_MAX);
    outbox->messages[outbox->message_count++] = (struct peer_raft_request_message){
        .group = (int64_t)group,
        .kind = (int8_t)message->kind,
        .flags = (int8_t)((message->accepted ? FLAG_ACCEPTED : 0) |
                          (message->transfer ? FLAG_TRANSFER : 0) |
                          (message->sleep ? FLAG_SLEEP : 0) |
                          (message->withdrawn ? FLAG_WITHDRAWN : 0)),
        .term = (int64_t)message->term,
        .index = (int64_t)message->index,
        .log_term = (int64_t)message->log_term,
        .commit = (int64_t)message->commit,
        .hint_index = (int64_t)message->hint_index,
        .round = (int64_t)message->round,
        .move = message->note,
        .entries_count = (int32_t)message->entry_count,
    };
    outbox->bytes += MESSAGE_BYTES;
    for (size_t i = 0; i < message->entry_count; i++) {
        assert(message->entries[i].index == message->index + 1 + i);
        add_entry(outbox, &message->entries[i], place.position);
        place.position += message->entries[i].payload.length - place.overlap;
    }
}

/* Gives the entries of all messages their pads; the messages begin `at` so many bytes. */
static void pad_entries(struct raft_outbox *outbox, size_t at)
{
    size_t number = 0;
    for (size_t i = 0; i < outbox->message_count; i++) {
        at += MESSAGE_BYTES;
        for (int32_t k = 0; k < outbox->messages[i].entries_count; k++, number++) {
            size_t payload = outbox->payloads[number].length;
            size_t off = (size_t)(outbox->places[number] - (at + ENTRY_BYTES)) % PAYLOAD_PLACE_UNIT;
            size_t pad = payload >= PAD_FROM_BYTES ? off : 0;
            outbox->entries[number].pad = (struct view){no_bytes, pad};
            at += ENTRY_BYTES + pad + payload;
        }
    }
    assert(number == outbox->entry_count);
}

/* The encoded bytes, and between them the payloads that are not among them. */
static void write_pieces(struct raft_outbox *outbox, const struct buffer *frame,
                         const struct message_output *output, struct evbuffer *out)
{
    struct block *block = block_copy(buffer_view(frame));
    size_t from = 0;
    size_t gap = 0;
    size_t between = 0; /* bytes of the payloads so far */
    for (size_t i = 0; i < outbox->entry_count; i++) {
        struct slice payload = outbox->payloads[i];
        if (outbox->entries[i].payload.external_length == 0) {
            block_unref(payload.block);
            continue;
        }
        assert(gap < output->gap_count && output->gaps[gap].length == payload.length);
        size_t to = output->gaps[gap++].position;
        assert(payload.length < PAD_FROM_BYTES ||
               (to + between - FRAME_SIZE_BYTES - outbox->places[i]) % PAYLOAD_PLACE_UNIT == 0);
        between += payload.length;
        add_piece(out, block_ref(block), block->bytes + from, to - from);
        add_piece(out, payload.block, payload.data, payload.length);
        from = to;
    }
    assert(gap == output->gap_count);
    add_piece(out, block, block->bytes + from, frame->length - from);
}

static void empty_outbox(struct raft_outbox *outbox)
{
    outbox->message_count = 0;
    outbox->entry_count = 0;
    outbox->bytes = 0;
    if (outbox->entry_capacity > KEPT_ENTRIES || outbox->message_capacity > KEPT_ENTRIES ||
        outbox->frame.capacity > KEPT_FRAME_BYTES) {
        raft_outbox_free(outbox);
    }
}

void raft_outbox_write(struct raft_outbox *outbox, int32_t correlation_id, struct evbuffer *out)
{
    struct peer_raft_request request = {
        .messages = outbox->messages,
        .messages_count = (int32_t)outbox->message_count,
    };
    size_t entry = 0;
    assert(outbox->message_count <= INT32_MAX);
    for (size_t i = 0; i < outbox->message_count; i++) {
        outbox->messages[i].entries = outbox->entries + entry;
        entry += (size_t)outbox->messages[i].entries_count;
    }
    assert(entry == outbox->entry_count);
    struct buffer *frame = &outbox->frame;
    struct message_output output = {.buffer = frame};
    frame->length = 0;
    peer_frame_begin(frame, API_PEER_RAFT, 0, correlation_id);
    pad_entries(outbox, frame->length - FRAME_SIZE_BYTES + sizeof request.messages_count);
    enum status status = message_encode(&peer_raft_request_type, 0, &request, &output);
    assert(status == STATUS_OK);
    (void)status;
    size_t total = frame->length - FRAME_SIZE_BYTES;
    for (size_t i = 0; i < output.gap_count; i++) {
        total += output.gaps[i].length;
    }
    assert(total <= INT32_MAX);
    store_be32(frame->data, (uint32_t)total);
    write_pieces(outbox, frame, &output, out);
    free(output.gaps);
    empty_outbox(outbox);
}

void raft_outbox_free(struct raft_outbox *outbox)
{
    for (size_t i = 0; i < outbox->entry_count; i++) {
        block_unref(outbox->payloads[i].block);
    }
    free(outbox->messages);
    free(outbox->entries);
    free(outbox->payloads);
    free(outbox->places);
    buffer_free(&outbox->frame);
    *outbox = (struct raft_outbox){0};
}

struct raft_message raft_message_of(const struct peer_raft_request_message *wire,
                                    struct block *frame, struct raft_entry *entries)
{
    struct raft_message message = {
        .kind = (uint8_t)wire->kind,
        .accepted = (wire->flags & FLAG_ACCEPTED) != 0,
        .transfer = (wire->flags & FLAG_TRANSFER) != 0,
        .sleep = (wire->flags & FLAG_SLEEP) != 0,
        .withdrawn = (wire->flags & FLAG_WITHDRAWN) != 0,
        .term = (uint64_t)wire->term,
        .index = (uint64_t)wire->index,
        .log_term = (uint64_t)wire->log_term,
        .commit = (uint64_t)wire->commit,
        .hint_index = (uint64_t)wire->hint_index,
        .round = (uint64_t)wire->round,
        .note = wire->move,
        .entries = entries,
        .entry_count = (size_t)wire->entries_count,
    };
    for (int32_t i = 0; i < wire->entries_count; i++) {
        struct view payload = wire->entries[i].payload.bytes;
        assert(payload.length == 0 || (payload.data >= frame->bytes &&
                                       payload.data < frame->bytes + frame->capacity));
        entries[i] = (struct raft_entry){
            .index = message.index + 1 + (uint64_t)i,
            .term = (uint64_t)wire->entries[i].term,
            .kind = (uint8_t)wire->entries[i].kind,
        };
        if (payload.length > 0) {
            entries[i].payload = (struct slice){frame, payload.data, payload.length};
        }
    }
    return message;
}

struct block *raft_message_detach(struct raft_entry *entries, size_t count, size_t frame_length)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += entries[i].payload.length;
    }
    assert(total <= frame_length);
    if (total == 0 || frame_length <= SMALL_FRAME_BYTES || total >= frame_length / LEAST_SHARE) {
        return NULL;
    }
    struct block *block = block_new(total);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        struct slice *payload = &entries[i].payload;
        if (payload->length > 0) {
            memcpy(block->bytes + at, payload->data, payload->length);
            *payload = slice_of(block, at, payload->length);
            at += payload->length;
        }
    }
    return block;
}

void peer_frame_begin(struct buffer *frame, int16_t api_key, int16_t api_version,
                      int32_t correlation_id)
{
    const struct api *api = api_find(api_key);
    assert(api != NULL && frame->length == 0);
    uint8_t *at = buffer_extend(frame, HEADER_BYTES);
    store_be32(at, 0);
    store_be16(at + 4, (uint16_t)api_key);
    store_be16(at + 6, (uint16_t)api_version);
    store_be32(at + 8, (uint32_t)correlation_id);
    store_be16(at + 12, UINT16_MAX); /* no client id */
    at[14] = 0;                      /* no tagged fields, in the version that may have them */
    frame->length -= api_request_header_version(api, api_version) < 2;
}

void peer_frame_write(struct buffer *frame, struct evbuffer *out)
{
    assert(frame->length > 4 && frame->length - 4 <= INT32_MAX);
    store_be32(frame->data, (uint32_t)(frame->length - 4));
    struct block *block = block_copy(buffer_view(frame));
    add_piece(out, block, block->bytes, frame->length);
    buffer_free(frame);
}
