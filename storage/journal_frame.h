/* The frame that is being filled. Pieces are packed into one aligned buffer until it is written; a
 * large payload in a block that has its pages for itself is not copied but written from there. */
#ifndef OTTLA_STORAGE_JOURNAL_FRAME_H
#define OTTLA_STORAGE_JOURNAL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "storage/journal_format.h"

enum { JOURNAL_FRAME_PARTS = 64 };

struct journal_frame {
    uint8_t *bytes;        /* JOURNAL_FRAME_MAX of them, page aligned */
    size_t filled;         /* of these, behind the last payload that lies apart too */
    size_t length;         /* with the header and with payloads that lie apart */
    struct iovec parts[JOURNAL_FRAME_PARTS]; /* one behind the other they are the frame */
    int part_count;
    size_t part_start;     /* in `bytes`: where the part begins that comes next */
    bool takes_apart;      /* whether payloads may lie apart */
    size_t limit;
    uint32_t piece_count;
    uint64_t sequence;
};

/* Allocates the buffer. */
void journal_frame_init(struct journal_frame *frame);

/* Releases it. */
void journal_frame_free(struct journal_frame *frame);

/* Starts an empty frame that may take `limit_bytes`, a whole number of pages. */
void journal_frame_begin(struct journal_frame *frame, uint64_t sequence, size_t limit_bytes);

/* Whether a record, or a useful part of it, still fits. */
bool journal_frame_has_room(const struct journal_frame *frame);

/* Packs as much of the record's payload from `done_bytes` on as fits; at least one piece must fit.
 * The payload has to stay until the frame is written. Returns how far it is packed now; the record
 * is finished when that is its length. */
size_t journal_frame_add(struct journal_frame *frame, const struct journal_record *record,
    size_t done_bytes);

/* Fills in the header (sequence, length and piece count are known here), pads to whole pages and
 * ends `parts`. Returns the padded length. */
size_t journal_frame_finish(struct journal_frame *frame, struct journal_frame_header header);

#endif
