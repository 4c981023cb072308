/* The leader epochs of a log and where each begins (KIP-101, KIP-279), with the file
 * leader-epoch-checkpoint in Kafka's format: a line "0", a line with the number of entries, a line
 * "EPOCH START" for each. */
#ifndef OTTLA_STORAGE_LOG_EPOCHS_H
#define OTTLA_STORAGE_LOG_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"
#include "storage/partition_log.h"

struct log_epochs {
    struct log_epoch *entries; /* both fields rise */
    size_t count;
    size_t capacity;
};

/* Forgets all entries. */
void log_epochs_free(struct log_epochs *epochs);

/* A batch of this epoch starts at the offset. Returns whether that was news. Epochs not above
 * the latest, offsets below its start, and -1, are no news. */
bool log_epochs_note(struct log_epochs *epochs, int32_t epoch, int64_t start_offset);

/* Forgets epochs that end at or below the offset; the one it lies in starts there now. Returns
 * whether something changed. */
bool log_epochs_cut_front(struct log_epochs *epochs, int64_t offset);

/* Forgets epochs that start at or above the offset. */
void log_epochs_cut_back(struct log_epochs *epochs, int64_t offset);

/* See partition_log_epoch_end. */
struct log_epoch_end log_epochs_end(const struct log_epochs *epochs, int32_t epoch,
    int64_t log_end);

/* The epoch at an offset; -1 when unknown. */
int32_t log_epochs_at(const struct log_epochs *epochs, int64_t offset);

/* Appends the file's text. */
void log_epochs_save(const struct log_epochs *epochs, struct buffer *out);

/* Replaces the entries by those of the file. STATUS_CORRUPT when it cannot be read; there are none
 * then. */
MUST_USE enum status log_epochs_load(struct log_epochs *epochs, struct view text);

#endif
