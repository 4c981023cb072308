/* A sorted array; short, since an epoch is an election. Broken files are a status, nothing else can
 * fail. */
#include "storage/log_epochs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ENTRIES_MAX = 10 * 1000 * 1000 };

void log_epochs_free(struct log_epochs *epochs)
{
    free(epochs->entries);
    *epochs = (struct log_epochs){0};
}

bool log_epochs_note(struct log_epochs *epochs, int32_t epoch, int64_t start_offset)
{
    struct log_epoch *last = epochs->count == 0 ? NULL : &epochs->entries[epochs->count - 1];
    if (epoch < 0
        || (last != NULL && (epoch <= last->epoch || start_offset < last->start_offset))) {
        return false;
    }
    if (last != NULL && last->start_offset == start_offset) {
        last->epoch = epoch; /* the one before had no batch */
        return true;
    }
    if (epochs->count == epochs->capacity) {
        epochs->capacity = epochs->capacity == 0 ? 1 : epochs->capacity * 2;
        epochs->entries = memory_resize(epochs->entries, epochs->capacity,
            sizeof *epochs->entries);
    }
    epochs->entries[epochs->count++] = (struct log_epoch){epoch, start_offset};
    return true;
}

bool log_epochs_cut_front(struct log_epochs *epochs, int64_t offset)
{
    size_t gone = 0;
    while (gone + 1 < epochs->count && epochs->entries[gone + 1].start_offset <= offset) {
        gone++;
    }
    epochs->count -= gone;
    if (gone > 0) {
        memmove(epochs->entries, epochs->entries + gone, epochs->count * sizeof *epochs->entries);
    }
    if (epochs->count > 0 && epochs->entries[0].start_offset < offset) {
        epochs->entries[0].start_offset = offset;
        return true;
    }
    return gone > 0;
}

void log_epochs_cut_back(struct log_epochs *epochs, int64_t offset)
{
    while (epochs->count > 0 && epochs->entries[epochs->count - 1].start_offset >= offset) {
        epochs->count--;
    }
}

struct log_epoch_end log_epochs_end(const struct log_epochs *epochs, int32_t epoch,
    int64_t log_end)
{
    struct log_epoch_end unknown = {-1, -1};
    if (epoch < 0 || epochs->count == 0) {
        return unknown;
    }
    if (epoch > epochs->entries[epochs->count - 1].epoch) {
        return unknown; /* as in Kafka: a later epoch than any that is known */
    }
    size_t next = 0;
    while (next < epochs->count && epochs->entries[next].epoch <= epoch) {
        next++;
    }
    if (next == 0) {
        /* Before the first one known: everything of it is gone, the log starts after it. */
        return (struct log_epoch_end){epoch, epochs->entries[0].start_offset};
    }
    int64_t end = next == epochs->count ? log_end : epochs->entries[next].start_offset;
    return (struct log_epoch_end){epochs->entries[next - 1].epoch, end};
}

int32_t log_epochs_at(const struct log_epochs *epochs, int64_t offset)
{
    int32_t epoch = -1;
    for (size_t i = 0; i < epochs->count && epochs->entries[i].start_offset <= offset; i++) {
        epoch = epochs->entries[i].epoch;
    }
    return epoch;
}

static void append_text(struct buffer *out, const char *text)
{
    buffer_append(out, text, strlen(text));
}

void log_epochs_save(const struct log_epochs *epochs, struct buffer *out)
{
    char line[64];
    snprintf(line, sizeof line, "0\n%zu\n", epochs->count);
    append_text(out, line);
    for (size_t i = 0; i < epochs->count; i++) {
        snprintf(line, sizeof line, "%d %lld\n", (int)epochs->entries[i].epoch,
            (long long)epochs->entries[i].start_offset);
        append_text(out, line);
    }
}

static bool load_lines(struct log_epochs *epochs, const char *text)
{
    char *end;
    if (strtol(text, &end, 10) != 0 || end == text) {
        return false;
    }
    text = end;
    long count = strtol(text, &end, 10);
    if (end == text || count < 0 || count > ENTRIES_MAX) {
        return false;
    }
    text = end;
    for (long i = 0; i < count; i++) {
        long epoch = strtol(text, &end, 10);
        if (end == text || epoch < 0 || epoch > INT32_MAX) {
            return false;
        }
        text = end;
        long long start = strtoll(text, &end, 10);
        struct log_epoch *last = epochs->count == 0 ? NULL : &epochs->entries[epochs->count - 1];
        if (end == text || start < 0
            || (last != NULL && (epoch <= last->epoch || start <= last->start_offset))) {
            return false;
        }
        text = end;
        log_epochs_note(epochs, (int32_t)epoch, start);
    }
    return true;
}

enum status log_epochs_load(struct log_epochs *epochs, struct view text)
{
    log_epochs_free(epochs);
    char *copy = view_copy_text(text);
    bool good = load_lines(epochs, copy);
    free(copy);
    if (!good) {
        log_epochs_free(epochs);
    }
    return good ? STATUS_OK : STATUS_CORRUPT;
}
