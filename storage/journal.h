/* The journal: one sequence of durable records shared by all partition groups of a data directory.
 *
 * It is a ring of preallocated, fully written files in one directory. Records that wait are packed
 * into a frame and written with one direct, synchronous write; while it runs the next frame fills,
 * so that the batch forms itself and one write serves all groups. When a frame is on the disk, the
 * operations inside it are done, in the order they were submitted.
 *
 * Nothing is read back while running. At open every live record is replayed in order; the caller
 * rebuilds its groups from them. A file of the ring is used again when no group needs a record in
 * it: the caller says so with journal_mark after a checkpoint; the latest votes move on by
 * themselves.
 *
 * A failed write or sync is final: the operation, all that wait and all later ones end with that
 * status, and `failed` is called once. Only a new journal_open recovers.
 *
 * Damage found at open: see struct journal_damage. An incomplete last frame (a torn write, never
 * acknowledged) is cut with a line in the log. Anything that is missing or fails its check although
 * a later frame vouches for it is reported and never cut.
 */
#ifndef OTTLA_STORAGE_JOURNAL_H
#define OTTLA_STORAGE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "base/list.h"
#include "base/status.h"

struct journal;

enum journal_kind {
    JOURNAL_ENTRY = 1,    /* a Raft entry: entry_kind, term, index, tag, payload */
    JOURNAL_VOTE = 2,     /* term, voted_for, tag, index: the group's hard state; the latest one
                             counts. What tag and index mean is the caller's business */
    JOURNAL_TRUNCATE = 3, /* index: earlier entries with this index or a higher one are void */
    JOURNAL_MARK = 4,     /* index: entries up to and with it are not needed; replay only */
    JOURNAL_FORGET = 5,   /* the group is gone with all its earlier records; replay only */
    JOURNAL_ANEW = 6      /* a FORGET and then a VOTE, both or none of them */
};

/* One record. Which fields count depends on the kind; the others must be 0. */
struct journal_record {
    enum journal_kind kind;
    uint8_t entry_kind;   /* opaque to the journal: raft's kind of entry */
    int32_t voted_for;    /* node id, -1 for none */
    uint32_t tag;         /* opaque to the journal, kept with an entry or a vote */
    uint64_t group;
    uint64_t term;
    uint64_t index;
    struct slice payload; /* entries only; may be empty with a null block. At most
                             JOURNAL_PAYLOAD_MAX bytes; may be larger than a file of the ring */
};

enum { JOURNAL_PAYLOAD_MAX = 512 * 1024 * 1024 };

/* Something to be made durable. Memory is the caller's; it and the records array stay untouched
 * from submit to done. The journal holds its own references on the payload blocks meanwhile. */
struct journal_op {
    struct list_link link; /* the journal's; start it zeroed */
    const struct journal_record *records;
    size_t record_count;
    /* Called once on the journal's thread (or inside journal_run_once). With STATUS_OK the records
     * are on the disk (flush policy durable) or written (interval). May free the op and may submit
     * others; must not block. */
    void (*done)(struct journal_op *op, enum status status);
};

/* What is wrong, found at open. The records of [position, position + length) of the file are
 * lost. */
struct journal_damage {
    char file[64];      /* name inside the journal's directory */
    uint64_t position;  /* byte in the file */
    uint64_t length_bytes;
    bool group_known;   /* the record's header was whole: only this group, at this index, is hit;
                           otherwise any group may have lost records, votes included */
    uint64_t group;
    uint64_t term;
    uint64_t index;
    enum journal_kind kind;
    bool missing_file;  /* a whole file of the ring is not there; position and length are 0 */
};

enum journal_flush {
    JOURNAL_FLUSH_DURABLE, /* done means: on the disk */
    JOURNAL_FLUSH_INTERVAL /* done means: handed to the kernel; synced every flush_interval_ms */
};

struct journal_settings {
    const char *directory;     /* made when missing; the parent must exist */
    uint64_t file_bytes;       /* size of one file of the ring; a multiple of 4096, at least 64 KiB;
                                  0 means 16 MiB */
    uint64_t size_bytes;       /* the ring grows up to this, at least three files; 0: 512 MiB */
    enum journal_flush flush;
    uint32_t flush_interval_ms; /* for JOURNAL_FLUSH_INTERVAL; 0 means 1000 */
    uint32_t seal_after_ms;    /* after this long without work one empty frame is written, which
                                  vouches for the last one; 0 means 100 */
    bool threaded;             /* false: no thread is started, the owner calls journal_run_once
                                  (simulation); everything else is the same */
};

/* What the journal tells its owner. `replay` and `damage` run inside journal_open on the calling
 * thread; the others on the journal's thread. */
struct journal_handler {
    void *context;
    /* A live record, in journal order. Take a reference on payload.block to keep the payload.
     * Entries may be below a mark that comes later, or void by a later truncation. */
    void (*replay)(void *context, const struct journal_record *record);
    /* Called at the place in the replay where records are missing. */
    void (*damage)(void *context, const struct journal_damage *damage);
    /* The ring is filling up and cannot grow: these groups hold its oldest file. They should
     * checkpoint and journal_mark. `stalled` means that nothing is written until they do. The
     * array is valid during the call. */
    void (*pressure)(void *context, const uint64_t *groups, size_t count, bool stalled);
    /* A write, sync or growth failed for good. Called once. */
    void (*failed)(void *context, enum status status);
};

struct journal_stats {
    uint64_t frames;         /* writes so far */
    uint64_t records;
    uint64_t written_bytes;  /* frames with their padding */
    uint64_t payload_bytes;
    uint64_t capacity_bytes; /* of the ring as it is now */
    uint64_t used_bytes;     /* files that some group still needs, and the current one */
    uint64_t write_ns;       /* time spent in writes and syncs */
    uint64_t longest_write_ns;
    uint64_t pressure_calls;
    uint64_t stalls;
    bool direct;             /* whether the file system took direct writes */
};

/* Opens or makes the journal, replays what it holds and starts the writer. The settings are copied.
 * Errors: as io/file.h; STATUS_UNSUPPORTED for a newer format. Damage is no error. */
MUST_USE enum status journal_open(const struct journal_settings *settings,
    const struct journal_handler *handler, struct journal **journal);

/* Writes what was submitted, a last frame that vouches for everything, and closes. Nobody may call
 * into the journal any more. */
void journal_close(struct journal *journal);

/* Closes without writing anything more; operations that wait end with STATUS_CLOSED. For a
 * directory that failed, and for simulated crashes. */
void journal_abandon(struct journal *journal);

/* Adds an operation (records but marks). From any thread; never blocks on the disk. The
 * order of submits is the order in the journal. */
void journal_submit(struct journal *journal, struct journal_op *op);

/* The owner's groups have begun and answer calls for checkpoints. From now on one file of the ring
 * is kept free for the next start, which has to write before it can checkpoint. From any thread. */
void journal_running(struct journal *journal);

/* The group needs nothing up to and with this index any more: a checkpoint on the disk vouches for
 * it. Counts at once; a record of it goes into the next frame. From any thread. */
void journal_mark(struct journal *journal, uint64_t group, uint64_t index);

/* The group is gone: its files are free at once, and a record follows in the order of submits, so
 * that a replay has nothing of it but what is submitted later: the id may come back. From any
 * thread. */
void journal_forget(struct journal *journal, uint64_t group);

/* One turn of the writer: the next frame, or some background work. For threaded = false only.
 * Returns whether it did anything. `now_ms` drives sealing and interval syncs. */
bool journal_run_once(struct journal *journal, uint64_t now_ms);

/* STATUS_OK while the journal takes writes, else the failure that stopped it. From any thread. */
enum status journal_status(struct journal *journal);

/* A snapshot of the counters. From any thread. */
void journal_read_stats(struct journal *journal, struct journal_stats *stats);

#endif
