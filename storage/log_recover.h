/* Bringing one segment back: its indexes are checked against the file, headers are read again where
 * that is needed, and batches above the recovery point are checked whole.
 *
 * The cases, in order; the first that fits counts. E is the offset expected where the file stops
 * making sense, R the recovery point (what the checkpoint vouches for; -1 without one):
 *
 *   A  every byte is a good batch                             whole
 *   B  E < R                                                  damage: what was synced is lost
 *   C  R >= 0                                                 cut: never synced, the journal has it
 *   D  R = -1, a good batch or another segment follows        damage
 *   E  R = -1, nothing follows                                cut: a torn tail
 */
#ifndef OTTLA_STORAGE_LOG_RECOVER_H
#define OTTLA_STORAGE_LOG_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/log_content.h"

/* What is known before a segment is looked at. */
struct log_recover {
    struct partition_log *log;
    int64_t recovery_point; /* R */
    int64_t scan_from;      /* headers are read from this offset on, at least */
    int64_t producers_from; /* batches from here on count for the producer state */
    int64_t expected;       /* next offset, by what was read so far */
    bool expected_is_exact; /* false: a batch may start above it */
};

enum log_recover_case {
    LOG_RECOVER_WHOLE = 'A',
    LOG_RECOVER_LOST = 'B',
    LOG_RECOVER_UNSYNCED = 'C',
    LOG_RECOVER_CORRUPT = 'D',
    LOG_RECOVER_TORN = 'E'
};

/* Which case it is: the table above. */
enum log_recover_case log_recover_judge(bool whole, int64_t expected, int64_t recovery_point,
    bool something_follows);

/* Loads a segment that need not be read again: sizes, times and where its indexes end. */
MUST_USE enum status log_recover_trust(struct log_recover *recover, struct log_segment *segment);

/* Reads a segment again. `is_last`: no other segment follows. On cases B and D fills in the log's
 * damage; on C and E the file is cut. Moves recover->expected behind the last good batch. */
MUST_USE enum status log_recover_segment(struct log_recover *recover, struct log_segment *segment,
    bool is_last, enum log_recover_case *result);

/* Writes index entries that were made again, now. */
MUST_USE enum status log_recover_save_indexes(struct log_recover *recover,
    struct log_segment *segment);

/* The offset behind the last batch of a trusted segment. */
MUST_USE enum status log_recover_end_offset(struct log_recover *recover,
    struct log_segment *segment, int64_t *end_offset);

#endif
