/* Frames and pieces to bytes and back. Pure: owns nothing; what does not fit is told by the result
 * and never trusted. */
#include "storage/journal_format.h"

#include <assert.h>
#include <string.h>

#include "protocol/crc32c.h"

/* The check of a header whose first four bytes after `skip` hold it. */
static uint32_t header_crc(const void *header, size_t size, size_t skip)
{
    return crc32c((struct view){(const uint8_t *)header + skip, size - skip});
}

void journal_frame_store(struct journal_frame_header header, uint8_t *at)
{
    assert(header.length >= sizeof header && header.length <= JOURNAL_FRAME_MAX);
    assert(header.generation > 0 && header.oldest > 0 && header.oldest <= header.generation);
    assert(header.synced < header.sequence);
    journal_frame_store_version(header, JOURNAL_FORMAT_VERSION, at);
}

void journal_frame_store_version(struct journal_frame_header header, uint16_t version, uint8_t *at)
{
    header.magic = JOURNAL_FRAME_MAGIC;
    header.version = version;
    header.unused = 0;
    header.crc = header_crc(&header, sizeof header, 8);
    memcpy(at, &header, sizeof header);
}

bool journal_frame_load(const uint8_t *at, struct journal_frame_header *header)
{
    memcpy(header, at, sizeof *header);
    return header->magic == JOURNAL_FRAME_MAGIC
        && header->crc == header_crc(header, sizeof *header, 8)
        && header->length >= sizeof *header && header->length <= JOURNAL_FRAME_MAX
        && header->generation > 0 && header->oldest > 0 && header->oldest <= header->generation
        && header->synced < header->sequence;
}

static void store_header(struct journal_piece_header header, struct view payload, size_t skip,
    size_t extent, uint8_t *at)
{
    assert(header.kind >= JOURNAL_ENTRY && header.kind <= JOURNAL_ANEW);
    assert(extent <= JOURNAL_FRAME_MAX && extent % JOURNAL_PIECE_ALIGNMENT == 0);
    assert(sizeof header + skip + payload.length <= extent);
    header.length = (uint32_t)payload.length;
    header.skip = (uint32_t)skip;
    header.extent = (uint32_t)extent;
    header.payload_crc = crc32c(payload);
    header.crc = header_crc(&header, sizeof header, 4);
    memcpy(at, &header, sizeof header);
}

size_t journal_piece_store(struct journal_piece_header header, struct view payload, uint8_t *at)
{
    size_t padded = journal_piece_padded(payload.length);
    store_header(header, payload, 0, sizeof header + padded, at);
    if (payload.length > 0) {
        memcpy(at + sizeof header, payload.data, payload.length);
        memset(at + sizeof header + payload.length, 0, padded - payload.length);
    }
    return sizeof header + padded;
}

void journal_piece_store_apart(struct journal_piece_header header, struct view payload, size_t skip,
    size_t extent, uint8_t *at)
{
    assert(payload.length > 0);
    store_header(header, payload, skip, extent, at);
}

static bool piece_header_is_good(const struct journal_piece_header *header, uint64_t sequence,
    size_t left)
{
    uint64_t end = (uint64_t)sizeof *header + header->skip + header->length;
    return header->crc == header_crc(header, sizeof *header, 4) && header->sequence == sequence
        && header->kind >= JOURNAL_ENTRY && header->kind <= JOURNAL_ANEW
        && end <= header->extent && header->extent <= left
        && header->extent % JOURNAL_PIECE_ALIGNMENT == 0;
}

enum journal_piece_state journal_piece_load(struct view rest, uint64_t sequence,
    struct journal_piece_header *header, struct view *payload, size_t *used)
{
    *payload = VIEW_EMPTY;
    *used = 0;
    if (rest.length < sizeof *header) {
        return JOURNAL_PIECE_BAD_HEADER;
    }
    memcpy(header, rest.data, sizeof *header);
    if (!piece_header_is_good(header, sequence, rest.length)) {
        return JOURNAL_PIECE_BAD_HEADER;
    }
    *payload = view_slice(rest, sizeof *header + header->skip, header->length);
    *used = header->extent;
    assert(*used <= rest.length);
    bool whole = crc32c(*payload) == header->payload_crc;
    return whole ? JOURNAL_PIECE_WHOLE : JOURNAL_PIECE_BAD_PAYLOAD;
}
