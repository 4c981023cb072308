/* Reads a window of the file at a time, larger only when a whole batch is asked for. Owns the
 * window; failures are those of the reads, or say that the bytes are no batch. */
#include "storage/log_scan.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

void log_scan_start(struct log_scan *scan, struct file *file, uint64_t position, uint64_t end)
{
    assert(position <= end);
    *scan = (struct log_scan){.file = file, .position = position, .end = end};
}

void log_scan_free(struct log_scan *scan)
{
    free(scan->window);
    scan->window = NULL;
    scan->window_capacity = 0;
    scan->window_length = 0;
}

/* Brings [position, position + length) into the window, and more where the file goes on. */
static enum status load(struct log_scan *scan, size_t length)
{
    bool inside = scan->position >= scan->window_position
        && scan->position + length <= scan->window_position + scan->window_length;
    if (inside) {
        return STATUS_OK;
    }
    size_t capacity = length < LOG_SCAN_WINDOW_BYTES ? LOG_SCAN_WINDOW_BYTES : length;
    if (capacity > scan->window_capacity) {
        free(scan->window);
        scan->window = memory_new(capacity);
        scan->window_capacity = capacity;
    }
    uint64_t left = scan->end - scan->position;
    size_t wanted = left < scan->window_capacity ? (size_t)left : scan->window_capacity;
    scan->window_position = scan->position;
    enum status status = file_read(scan->file, scan->position, scan->window, wanted,
        &scan->window_length);
    if (status != STATUS_OK) {
        scan->window_length = 0;
        return status;
    }
    return scan->window_length < length ? STATUS_TRUNCATED : STATUS_OK;
}

static struct view window_view(const struct log_scan *scan, size_t length)
{
    assert(scan->position >= scan->window_position);
    size_t at = (size_t)(scan->position - scan->window_position);
    assert(at + length <= scan->window_length);
    return (struct view){scan->window + at, length};
}

enum status log_scan_header(struct log_scan *scan, struct batch_header *header)
{
    if (scan->position >= scan->end) {
        return STATUS_NOT_FOUND;
    }
    if (scan->end - scan->position < BATCH_HEADER_BYTES) {
        return STATUS_TRUNCATED;
    }
    enum status status = load(scan, BATCH_HEADER_BYTES);
    if (status == STATUS_OK) {
        status = batch_read_header(window_view(scan, BATCH_HEADER_BYTES), header);
    }
    if (status == STATUS_OK && batch_size_bytes(header) > scan->end - scan->position) {
        status = STATUS_TRUNCATED;
    }
    return status;
}

enum status log_scan_batch(struct log_scan *scan, const struct batch_header *header,
    struct view *batch)
{
    enum status status = load(scan, batch_size_bytes(header));
    if (status == STATUS_OK) {
        *batch = window_view(scan, batch_size_bytes(header));
    }
    return status;
}

void log_scan_skip(struct log_scan *scan, const struct batch_header *header)
{
    scan->position += batch_size_bytes(header);
    assert(scan->position <= scan->end);
}
