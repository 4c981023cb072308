/* Goes through the batches of a .log file, header by header or whole. */
#ifndef OTTLA_STORAGE_LOG_SCAN_H
#define OTTLA_STORAGE_LOG_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/view.h"
#include "io/file.h"
#include "protocol/records.h"

enum { LOG_SCAN_WINDOW_BYTES = 8192 };

struct log_scan {
    struct file *file;      /* borrowed */
    uint64_t position;      /* of the batch looked at next */
    uint64_t end;           /* nothing is read from here on */
    uint64_t window_position;
    size_t window_length;
    size_t window_capacity;
    uint8_t *window;
};

/* Starts at `position`; nothing is read yet. */
void log_scan_start(struct log_scan *scan, struct file *file, uint64_t position, uint64_t end);

/* Releases memory. */
void log_scan_free(struct log_scan *scan);

/* The header at the current position. STATUS_NOT_FOUND: at the end. STATUS_TRUNCATED: the batch
 * does not end before `end`. STATUS_INVALID, STATUS_UNSUPPORTED: no batch is there. STATUS_IO. */
MUST_USE enum status log_scan_header(struct log_scan *scan, struct batch_header *header);

/* The whole batch whose header was just read; valid until the next call. */
MUST_USE enum status log_scan_batch(struct log_scan *scan, const struct batch_header *header,
    struct view *batch);

/* Moves behind the batch. */
void log_scan_skip(struct log_scan *scan, const struct batch_header *header);

#endif
