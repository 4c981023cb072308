/* The ring of files under the journal: which exist, which generation each holds, where the next
 * frame goes. Grows by files, fills them with zeroes before they are written for real (a write into
 * a part of a file that was never written costs a commit of the file system), and uses a file again
 * when its generation is older than what every durable frame calls needed.
 *
 * Used by one thread at a time; the caller is the journal.
 */
#ifndef OTTLA_STORAGE_JOURNAL_RING_H
#define OTTLA_STORAGE_JOURNAL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/status.h"
#include "io/file.h"
#include "storage/journal.h"

enum { JOURNAL_RING_FILES_MAX = 65536, JOURNAL_NAME_MAX = 32 };

struct journal_file {
    struct file *file;       /* null: this number is missing on the disk */
    struct file *filler;     /* the same file for zeroes, while it is being filled */
    uint32_t number;
    uint64_t size_bytes;     /* usable for frames; the last page is not */
    uint64_t filled_bytes;   /* written at least once up to here */
    uint64_t generation;     /* 0: holds nothing */
};

struct journal_ring {
    char directory[4096];
    uint64_t file_bytes;
    uint32_t file_limit;
    enum journal_flush flush;
    bool direct;
    bool is_new;             /* the directory held no file */
    struct journal_file *files; /* by number */
    uint32_t file_count;
    uint32_t current;        /* number of the file being written */
    uint64_t generation;     /* of the current file; 0 before the first */
    uint64_t position;       /* of the next frame in it */
    uint64_t oldest;         /* oldest generation needed */
    uint64_t durable_oldest; /* as the last durable frame says */
    bool growth_failed;      /* the last try to make a file failed */
    uint8_t *zeroes;         /* a page-aligned run of them, made when needed */
};

/* The name of a file of the ring. */
void journal_ring_name(uint32_t number, char name[JOURNAL_NAME_MAX]);

/* Opens the directory's files (making directory and first file when there is nothing). Does not
 * look for frames. */
MUST_USE enum status journal_ring_open(struct journal_ring *ring,
    const struct journal_settings *settings);

/* Closes all files. */
void journal_ring_close(struct journal_ring *ring);

/* The current file. */
struct journal_file *journal_ring_current(struct journal_ring *ring);

/* The file with this generation, or null. */
struct journal_file *journal_ring_find(struct journal_ring *ring, uint64_t generation);

/* Room for frames behind the current position, before the file's end. */
uint64_t journal_ring_room(struct journal_ring *ring);

/* How many files are there to go on with when the current one is full. */
uint32_t journal_ring_free_count(const struct journal_ring *ring);

/* Whether another file may be made. */
bool journal_ring_may_grow(struct journal_ring *ring);

/* Makes one more file, reserved but not filled. STATUS_LIMIT at the configured size. */
MUST_USE enum status journal_ring_grow(struct journal_ring *ring);

/* Goes on with a free file: its generation is one above. The frames in the old one are durable. */
void journal_ring_switch(struct journal_ring *ring);

/* Whether the parts of a frame may be any whole sectors; else they have to be pages. */
bool journal_ring_takes_sectors(struct journal_ring *ring);

/* Writes a frame (all parts together whole pages, each whole sectors) at the current position and
 * moves on. */
MUST_USE enum status journal_ring_write(struct journal_ring *ring, const struct iovec *parts,
    int part_count, size_t padded_bytes);

/* Makes what was written into the current file durable (interval policy). */
MUST_USE enum status journal_ring_sync(struct journal_ring *ring);

/* A step of background work: fills a piece ahead of the current position, or of the file that comes
 * next, in the measure in which the current one is used up.
 * `*worked` says whether there was something to do. */
MUST_USE enum status journal_ring_fill(struct journal_ring *ring, bool *worked);

/* Overwrites one page with zeroes, durably: an invalid frame's start. */
MUST_USE enum status journal_ring_erase(struct journal_ring *ring, struct journal_file *file,
    uint64_t position);

#endif
