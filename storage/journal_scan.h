/* Reading the journal at open: finds the last frame, replays the live records, tells a torn tail
 * from damage, and leaves the ring ready to go on behind the last good frame.
 *
 * The rule: only frames that no durable frame vouches for may be missing. Each frame says up to
 * which sequence everything was on the disk when it was written; the last one found says the most.
 * A hole or bad frame above that sequence is the torn tail: it and everything behind it is cut. One
 * at or below it is damage, reported and not cut.
 */
#ifndef OTTLA_STORAGE_JOURNAL_SCAN_H
#define OTTLA_STORAGE_JOURNAL_SCAN_H

#include <stdint.h>

#include "base/status.h"
#include "storage/journal.h"
#include "storage/journal_groups.h"
#include "storage/journal_ring.h"

/* Scans an opened ring. Sets its current file, generation, position and oldest generations;
 * `*sequence` becomes that of the last good frame, 0 when there is none. STATUS_UNSUPPORTED:
 * written by a newer version. */
MUST_USE enum status journal_scan(struct journal_ring *ring, struct journal_groups *groups,
    const struct journal_handler *handler, uint64_t *sequence);

#endif
