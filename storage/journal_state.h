/* The journal's inside, shared by its few source files and nobody else.
 *
 * Threads: `lock` guards what submitters touch (the first block of fields). `groups_lock` guards
 * the groups table, which marks change from any thread. Everything else belongs to the writer: the
 * journal's thread, or whoever calls journal_run_once. The locks are never held together, nor
 * during input and output or callbacks.
 */
#ifndef OTTLA_STORAGE_JOURNAL_STATE_H
#define OTTLA_STORAGE_JOURNAL_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "storage/journal.h"
#include "storage/journal_frame.h"
#include "storage/journal_groups.h"
#include "storage/journal_ring.h"

struct journal {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list pending;      /* submitted, not yet seen by the writer */
    bool nudged;              /* something changed that the writer may wait for */
    bool stopping;
    enum status status;       /* the failure that stopped writing */
    struct journal_stats stats;

    pthread_mutex_t groups_lock;
    struct journal_groups *groups;

    struct journal_handler handler;
    struct journal_settings settings;
    pthread_t thread;
    struct journal_ring ring;
    struct journal_frame frame;
    struct list taken;        /* to be packed; the first may be packed in part */
    struct list packed;       /* whole in frames; done when this frame is written */
    size_t record_at;         /* next record of the first op in `taken` */
    size_t payload_at;        /* next payload byte of that record */
    uint64_t sequence;        /* of the last frame written */
    uint64_t synced;          /* frames up to here are durable */
    uint64_t written_oldest;  /* as the last frame says; durable when that frame is */
    uint64_t frame_oldest;    /* as the frame being filled will say */
    uint64_t now_ms;
    uint64_t last_write_ms;
    uint64_t last_sync_ms;
    uint64_t last_pressure_ms;
    bool opened;              /* a frame was written since the open */
    bool sealed;              /* nothing to vouch for */
    bool stalled;
    atomic_bool running;      /* the owner has begun; see journal_running */
};

/* Writes the next frame: what of votes, marks and taken operations fits in `limit_bytes`; may be
 * empty. Operations that are whole on the disk are done. A failure stops the journal. */
MUST_USE enum status journal_write_frame(struct journal *journal, size_t limit_bytes,
    bool with_operations);

/* Makes written frames durable (interval policy; otherwise they are). */
MUST_USE enum status journal_sync(struct journal *journal);

/* The writer can go no further: everything waiting and everything later ends with the status. */
void journal_fail(struct journal *journal, enum status status);

/* Ends all operations that wait with the status. */
void journal_end_all(struct journal *journal, enum status status);

/* Sees to it that the next frame has somewhere to go. False: it has not, the ring is full (or
 * failed). */
bool journal_make_room(struct journal *journal, size_t *limit_bytes);

/* Background work on the ring: frees, grows, fills. Whether it did something. */
bool journal_tend_ring(struct journal *journal);

#endif
