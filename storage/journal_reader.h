/* Reads frames out of one file of the journal, through a window in memory. Used at open only. */
#ifndef OTTLA_STORAGE_JOURNAL_READER_H
#define OTTLA_STORAGE_JOURNAL_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/view.h"
#include "io/file.h"
#include "storage/journal_format.h"

struct journal_reader {
    struct file *file;
    uint64_t size_bytes;    /* frames end here */
    uint8_t *window;
    uint64_t window_position;
    size_t window_length;
    size_t window_bytes;    /* how much is read at once: little at first, more as it goes on */
    enum status status;     /* sticky: the first read that failed, or an unsupported version */
};

/* Opens the file for reading beside the ring's own handle. */
MUST_USE enum status journal_reader_open(struct journal_reader *reader, const char *directory,
    uint32_t number, uint64_t size_bytes);

/* Closes and releases; also after a failed open. */
void journal_reader_close(struct journal_reader *reader);

/* The bytes [position, position + length), valid until the next call; shorter at the file's end or
 * after a failure, which is then in `status`. length <= JOURNAL_FRAME_MAX. */
struct view journal_reader_view(struct journal_reader *reader, uint64_t position, size_t length);

/* A frame header and where it was found. */
struct journal_found {
    struct journal_frame_header header;
    uint64_t position;
};

/* The first frame at or behind `position` with this generation (0: any) and a sequence above
 * `after`. False when there is none or a read failed. */
bool journal_reader_find(struct journal_reader *reader, uint64_t position, uint64_t generation,
    uint64_t after, struct journal_found *found);

/* The position behind a frame. */
uint64_t journal_found_end(const struct journal_found *found);

#endif
