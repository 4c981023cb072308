/* How the journal looks on the disk: frames, and inside them pieces of records.
 *
 * A frame is what one write made durable. It starts at a multiple of 4096 with a header; its length
 * is padded to the next such multiple. Frames carry consecutive sequences over the whole life of
 * the journal, and the generation of the file, which rises by one with each file that is begun; so
 * stale bytes of a file used before never count. A record longer than the room left in a frame goes
 * on in the next one, as further pieces.
 *
 * A payload follows its piece's header at once, or lies apart: in sectors of its own, written from
 * where it lay in memory, with whatever was around it there in the first and the last of them.
 *
 * Integers are little endian. The check of a frame covers its header, that of a piece its header,
 * and that of a payload the payload: what is whole in a damaged frame can be told and used.
 */
#ifndef OTTLA_STORAGE_JOURNAL_FORMAT_H
#define OTTLA_STORAGE_JOURNAL_FORMAT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"
#include "storage/journal.h"

enum {
    JOURNAL_PAGE = 4096,               /* alignment of frames */
    JOURNAL_FRAME_MAX = 1024 * 1024,   /* longest frame */
    JOURNAL_FORMAT_VERSION = 2,
    JOURNAL_PIECE_ALIGNMENT = 8,
    JOURNAL_SECTOR = 512               /* what a device writes as a whole */
};

#define JOURNAL_FRAME_MAGIC 0x314a544fu  /* "OTJ1" */
#define JOURNAL_FILLED_MAGIC 0x3146544fu /* "OTF1": last page of a file that was written whole */

enum journal_frame_flag {
    JOURNAL_FRAME_OPENED = 1 /* first frame after an open: a record begun before has no end */
};

/* Begins a frame. [disk] */
struct journal_frame_header {
    uint32_t magic;
    uint32_t crc;         /* CRC-32C of the bytes after this field */
    uint64_t sequence;
    uint64_t generation;  /* of the file */
    uint64_t oldest;      /* the oldest generation that was needed */
    uint64_t synced;      /* frames up to and with this sequence were on the disk */
    uint32_t length;      /* header and pieces, without the padding */
    uint32_t piece_count;
    uint32_t file_count;  /* files of the ring */
    uint16_t version;
    uint16_t flags;
    uint64_t unused;
};

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the journal is written as the machine stores it");
_Static_assert(sizeof(struct journal_frame_header) == 64, "no padding on the disk");
_Static_assert(offsetof(struct journal_frame_header, sequence) == 8, "the check covers the rest");
_Static_assert(offsetof(struct journal_frame_header, length) == 40, "field position on the disk");
_Static_assert(offsetof(struct journal_frame_header, unused) == 56, "field position on the disk");

enum journal_piece_flag {
    JOURNAL_PIECE_MORE = 1, /* the record goes on in the next piece */
    JOURNAL_PIECE_REST = 2  /* the record began in an earlier piece */
};

/* Begins a piece of a record. [disk] */
struct journal_piece_header {
    uint32_t crc;         /* CRC-32C of the bytes after this field, of this header */
    uint32_t payload_crc; /* CRC-32C of the payload in this piece */
    uint32_t length;      /* payload bytes in this piece */
    uint8_t kind;
    uint8_t entry_kind;
    uint16_t flags;
    uint32_t tag;
    int32_t voted_for;
    uint64_t sequence;    /* of the frame */
    uint64_t group;
    uint64_t term;
    uint64_t index;
    uint32_t skip;        /* bytes between this header and the payload */
    uint32_t extent;      /* from the start of this header to what follows the piece */
};

_Static_assert(sizeof(struct journal_piece_header) == 64, "no padding on the disk");
_Static_assert(offsetof(struct journal_piece_header, sequence) == 24, "position on the disk");
_Static_assert(offsetof(struct journal_piece_header, index) == 48, "position on the disk");
_Static_assert(offsetof(struct journal_piece_header, extent) == 60, "position on the disk");

/* The length rounded up to whole pages. */
static inline uint64_t journal_page_align(uint64_t length_bytes)
{
    return (length_bytes + JOURNAL_PAGE - 1) / JOURNAL_PAGE * JOURNAL_PAGE;
}

/* Down and up to whole sectors. */
static inline size_t journal_sector_down(size_t at)
{
    return at - at % JOURNAL_SECTOR;
}

static inline size_t journal_sector_up(size_t at)
{
    return journal_sector_down(at + JOURNAL_SECTOR - 1);
}

/* The payload's length rounded up as it is behind its header. */
static inline size_t journal_piece_padded(size_t length_bytes)
{
    return (length_bytes + JOURNAL_PIECE_ALIGNMENT - 1) / JOURNAL_PIECE_ALIGNMENT
        * JOURNAL_PIECE_ALIGNMENT;
}

/* Fills in magic, version and check, and stores the header at `at`. */
void journal_frame_store(struct journal_frame_header header, uint8_t *at);

/* The same for another version of the format. */
void journal_frame_store_version(struct journal_frame_header header, uint16_t version,
    uint8_t *at);

/* Reads a header. False when it is not one: magic, check or length do not fit. A header of another
 * version is one; the caller looks at `version`. */
bool journal_frame_load(const uint8_t *at, struct journal_frame_header *header);

/* Stores a piece: header, payload and padding. Returns the bytes used. */
size_t journal_piece_store(struct journal_piece_header header, struct view payload, uint8_t *at);

/* Stores the header of a piece whose payload lies apart: `skip` bytes behind it, and the next piece
 * `extent` bytes behind its start. */
void journal_piece_store_apart(struct journal_piece_header header, struct view payload, size_t skip,
    size_t extent, uint8_t *at);

enum journal_piece_state {
    JOURNAL_PIECE_WHOLE,
    JOURNAL_PIECE_BAD_PAYLOAD, /* the header can be trusted */
    JOURNAL_PIECE_BAD_HEADER
};

/* Reads the piece at the start of `rest` (what is left of the frame). `*used` is the piece's extent
 * unless the header is bad. */
enum journal_piece_state journal_piece_load(struct view rest, uint64_t sequence,
    struct journal_piece_header *header, struct view *payload, size_t *used);

#endif
