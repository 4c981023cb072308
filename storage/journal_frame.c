/* Packs records into the frame's buffer. Owns the buffer; cannot fail: the caller asks for room
 * first. */
#include "storage/journal_frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_HEADER_BYTES = sizeof(struct journal_piece_header),
    APART_BYTES = 8 * 1024 /* less is copied sooner than another part is written */
};

void journal_frame_init(struct journal_frame *frame)
{
    *frame = (struct journal_frame){0};
    frame->bytes = aligned_alloc(JOURNAL_PAGE, JOURNAL_FRAME_MAX);
    assert(frame->bytes != NULL);
}

void journal_frame_free(struct journal_frame *frame)
{
    free(frame->bytes);
    *frame = (struct journal_frame){0};
}

void journal_frame_begin(struct journal_frame *frame, uint64_t sequence, size_t limit_bytes)
{
    assert(limit_bytes >= JOURNAL_PAGE && limit_bytes <= JOURNAL_FRAME_MAX);
    assert(limit_bytes % JOURNAL_PAGE == 0);
    frame->length = sizeof(struct journal_frame_header);
    frame->filled = frame->length;
    frame->part_count = 0;
    frame->part_start = 0;
    frame->limit = limit_bytes;
    frame->piece_count = 0;
    frame->sequence = sequence;
}

bool journal_frame_has_room(const struct journal_frame *frame)
{
    return frame->length + PIECE_HEADER_BYTES + JOURNAL_PIECE_ALIGNMENT <= frame->limit;
}

/* How much payload the next piece takes. Big payloads are cut only when they must be. */
static size_t payload_that_fits(const struct journal_frame *frame, size_t wanted)
{
    size_t room = frame->limit - frame->length - PIECE_HEADER_BYTES;
    return journal_piece_padded(wanted) <= room ? wanted
                                                : room / JOURNAL_PIECE_ALIGNMENT
                                                    * JOURNAL_PIECE_ALIGNMENT;
}

/* Ends the part that is being filled, if there is anything in it. */
static void end_part(struct journal_frame *frame)
{
    if (frame->filled > frame->part_start) {
        frame->parts[frame->part_count++] = (struct iovec){
            frame->bytes + frame->part_start, frame->filled - frame->part_start};
        frame->part_start = frame->filled;
    }
}

/* How much of the payload can lie apart in this frame; 0 when it should not. */
static size_t fits_apart(const struct journal_frame *frame, struct slice payload)
{
    size_t start = journal_sector_up(frame->length + PIECE_HEADER_BYTES);
    size_t before = (uintptr_t)payload.data % JOURNAL_SECTOR;
    if (!frame->takes_apart || payload.length < APART_BYTES || !payload.block->has_pages
        || frame->part_count + 3 > JOURNAL_FRAME_PARTS || frame->limit < start + APART_BYTES) {
        return 0;
    }
    size_t room = frame->limit - start - before;
    return payload.length < room ? payload.length : room;
}

/* Its sectors go into the frame as they are in memory. */
static void add_apart(struct journal_frame *frame, struct journal_piece_header header,
    struct view payload)
{
    size_t start = journal_sector_up(frame->length + PIECE_HEADER_BYTES);
    size_t before = (uintptr_t)payload.data % JOURNAL_SECTOR;
    size_t sectors = journal_sector_up(before + payload.length);
    size_t filled = frame->filled + (start - frame->length);
    assert(frame->filled % JOURNAL_SECTOR == frame->length % JOURNAL_SECTOR);
    journal_piece_store_apart(header, payload, start + before - frame->length - PIECE_HEADER_BYTES,
        start + sectors - frame->length, frame->bytes + frame->filled);
    memset(frame->bytes + frame->filled + PIECE_HEADER_BYTES, 0,
        filled - frame->filled - PIECE_HEADER_BYTES);
    frame->filled = filled;
    end_part(frame);
    frame->parts[frame->part_count++] = (struct iovec){
        (void *)((uintptr_t)payload.data - before), sectors};
    frame->length = start + sectors;
}

size_t journal_frame_add(struct journal_frame *frame, const struct journal_record *record,
    size_t done_bytes)
{
    assert(journal_frame_has_room(frame));
    assert(done_bytes <= record->payload.length);
    struct journal_piece_header header = {.kind = (uint8_t)record->kind,
        .entry_kind = record->entry_kind, .tag = record->tag, .voted_for = record->voted_for,
        .sequence = frame->sequence, .group = record->group, .term = record->term,
        .index = record->index};
    struct slice rest = record->payload;
    rest.data = done_bytes > 0 ? rest.data + done_bytes : rest.data;
    rest.length -= done_bytes;
    size_t apart = fits_apart(frame, rest);
    size_t part = apart > 0 ? apart : payload_that_fits(frame, rest.length);
    header.flags |= part < rest.length ? JOURNAL_PIECE_MORE : 0;
    header.flags |= done_bytes > 0 ? JOURNAL_PIECE_REST : 0;
    struct view payload = part == 0 ? VIEW_EMPTY : (struct view){rest.data, part};
    if (apart > 0) {
        add_apart(frame, header, payload);
    } else {
        size_t used = journal_piece_store(header, payload, frame->bytes + frame->filled);
        frame->filled += used;
        frame->length += used;
    }
    frame->piece_count++;
    assert(frame->length <= frame->limit);
    return done_bytes + part;
}

size_t journal_frame_finish(struct journal_frame *frame, struct journal_frame_header header)
{
    header.sequence = frame->sequence;
    header.length = (uint32_t)frame->length;
    header.piece_count = frame->piece_count;
    journal_frame_store(header, frame->bytes);
    size_t padded = (size_t)journal_page_align(frame->length);
    memset(frame->bytes + frame->filled, 0, padded - frame->length);
    frame->filled += padded - frame->length;
    end_part(frame);
    return padded;
}
