/* Packs records into the frame's buffer. Owns the buffer; cannot fail: the caller asks for room
 * first. */
#include "storage/journal_frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_HEADER_BYTES = sizeof(struct journal_piece_header) };

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

size_t journal_frame_add(struct journal_frame *frame, const struct journal_record *record,
    size_t done_bytes)
{
    assert(journal_frame_has_room(frame));
    assert(done_bytes <= record->payload.length);
    struct journal_piece_header header = {.kind = (uint8_t)record->kind,
        .entry_kind = record->entry_kind, .tag = record->tag, .voted_for = record->voted_for,
        .sequence = frame->sequence, .group = record->group, .term = record->term,
        .index = record->index};
    size_t left = record->payload.length - done_bytes;
    size_t part = payload_that_fits(frame, left);
    header.flags |= part < left ? JOURNAL_PIECE_MORE : 0;
    header.flags |= done_bytes > 0 ? JOURNAL_PIECE_REST : 0;
    struct view payload = part == 0 ? VIEW_EMPTY
                                    : view_slice(slice_view(record->payload), done_bytes, part);
    frame->length += journal_piece_store(header, payload, frame->bytes + frame->length);
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
    memset(frame->bytes + frame->length, 0, padded - frame->length);
    return padded;
}
