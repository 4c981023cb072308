/* Opening a log: lists its directory, loads segments, epochs and producers, and reads again what
 * the checkpoint does not vouch for. A partition without a directory costs one look for it. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/clock.h"
#include "storage/log_content.h"
#include "storage/log_recover.h"

enum { SMALL_FILE_MAX = 64 * 1024 * 1024 };

/* Offsets named by files. */
struct offsets {
    int64_t *values;
    size_t count;
    size_t capacity;
};

/* What the directory holds. */
struct listing {
    char directory[FILE_PATH_MAX];
    struct offsets segments;
    struct offsets snapshots;
    bool has_metadata;
    bool has_gaps;
};

static void add_offset(struct offsets *offsets, int64_t value)
{
    if (offsets->count == offsets->capacity) {
        offsets->capacity = offsets->capacity == 0 ? 4 : offsets->capacity * 2;
        offsets->values = memory_resize(offsets->values, offsets->capacity, sizeof(int64_t));
    }
    offsets->values[offsets->count++] = value;
}

static int compare_offsets(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static void sort_offsets(struct offsets *offsets)
{
    if (offsets->count > 1) {
        qsort(offsets->values, offsets->count, sizeof(int64_t), compare_offsets);
    }
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static void remove_in(const char *directory, const char *name)
{
    char path[FILE_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    assert(length > 0 && (size_t)length < sizeof path);
    enum status status = file_remove(path);
    (void)status; /* logged; what stays is looked at again at the next open */
}

static bool list_entry(void *context, const char *name, bool is_directory)
{
    struct listing *listing = context;
    int64_t offset;
    if (is_directory) {
        return true;
    }
    if (ends_with(name, ".deleted") || ends_with(name, ".tmp")) {
        remove_in(listing->directory, name);
    } else if (log_file_offset(name, "log", &offset)) {
        add_offset(&listing->segments, offset);
    } else if (log_file_offset(name, "snapshot", &offset)) {
        add_offset(&listing->snapshots, offset);
    } else if (strcmp(name, "partition.metadata") == 0) {
        listing->has_metadata = true;
    } else if (strcmp(name, LOG_GAPS_NAME) == 0) {
        listing->has_gaps = true;
    }
    return true;
}

static void free_listing(struct listing *listing)
{
    free(listing->segments.values);
    free(listing->snapshots.values);
}

/* Small files ------------------------------------------------------------------------------- */

/* The topic id in a text like partition.metadata's; false when there is none, as after a crash that
 * tore the file. */
static bool parse_metadata(struct view bytes, struct uuid *topic_id)
{
    char *text = view_copy_text(bytes);
    const char *id = strstr(text, "topic_id: ");
    bool good = false;
    if (id != NULL) {
        id += strlen("topic_id: ");
        struct view value = {(const uint8_t *)id, strcspn(id, "\r\n")};
        good = uuid_parse(value, topic_id) == STATUS_OK;
    }
    free(text);
    return good;
}

/* Compares the topic id in partition.metadata with the one expected. A file that has none counts as
 * missing: it is written again. */
static enum status check_metadata(const struct partition_log *log, struct listing *listing)
{
    char path[FILE_PATH_MAX];
    struct buffer text = {0};
    struct uuid topic_id;
    snprintf(path, sizeof path, "%.4000s/partition.metadata", listing->directory);
    enum status status = file_read_whole(path, SMALL_FILE_MAX, &text);
    if (status == STATUS_OK && !parse_metadata(buffer_view(&text), &topic_id)) {
        log_warn("log", "%s names no topic id and is written again", path);
        listing->has_metadata = false;
    } else if (status == STATUS_OK && !uuid_equal(topic_id, log->identity.topic_id)
        && !uuid_is_zero(log->identity.topic_id)) {
        log_error("log", "%s belongs to another topic of that name", listing->directory);
        status = STATUS_INVALID;
    }
    buffer_free(&text);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Loads leader-epoch-checkpoint; `*loaded` is false when it is missing or broken. */
static enum status load_epochs(struct partition_log *log, const struct listing *listing,
    bool *loaded)
{
    char path[FILE_PATH_MAX];
    struct buffer text = {0};
    snprintf(path, sizeof path, "%.4000s/leader-epoch-checkpoint", listing->directory);
    enum status status = file_read_whole(path, SMALL_FILE_MAX, &text);
    if (status == STATUS_OK) {
        status = log_epochs_load(&log->content->epochs, buffer_view(&text));
    }
    buffer_free(&text);
    *loaded = status == STATUS_OK;
    return status == STATUS_IO ? status : STATUS_OK;
}

static enum status load_snapshot_at(struct partition_log *log, const struct listing *listing,
    int64_t offset)
{
    char path[FILE_PATH_MAX];
    struct buffer bytes = {0};
    log_file_path(listing->directory, offset, LOG_FILE_SNAPSHOT, path);
    enum status status = file_read_whole(path, SMALL_FILE_MAX, &bytes);
    if (status == STATUS_OK) {
        status = producer_state_load(partition_log_producers(log), buffer_view(&bytes));
    }
    buffer_free(&bytes);
    if (status != STATUS_OK && status != STATUS_IO) {
        log_warn("log", "%s: broken, the log is read instead", path);
    }
    return status;
}

/* Loads the newest good snapshot at or below the recovery point; where all are above it (the log
 * rolled since the checkpoint), the lowest of those: it knows what was before it, and all that it
 * knows is committed. `*found`: its offset; -1: none. */
static enum status load_snapshot(struct partition_log *log, const struct listing *listing,
    int64_t recovery_point, bool *broken, int64_t *found)
{
    const struct offsets *snapshots = &listing->snapshots;
    enum status status = STATUS_NOT_FOUND;
    *found = -1;
    for (size_t i = snapshots->count; i > 0 && *found < 0 && status != STATUS_IO; i--) {
        if (snapshots->values[i - 1] <= recovery_point) {
            status = load_snapshot_at(log, listing, snapshots->values[i - 1]);
            *found = status == STATUS_OK ? snapshots->values[i - 1] : -1;
            *broken = *broken || status != STATUS_OK;
        }
    }
    if (*found < 0 && !*broken && recovery_point >= 0 && snapshots->count > 0) {
        status = load_snapshot_at(log, listing, snapshots->values[0]);
        *found = status == STATUS_OK ? snapshots->values[0] : -1;
        *broken = status != STATUS_OK;
    }
    return status == STATUS_IO ? status : STATUS_OK;
}

/* Those below the first segment are from before the log began anew, with producers of then. */
static void remove_snapshots_below(struct listing *listing, int64_t first_offset)
{
    struct offsets *snapshots = &listing->snapshots;
    size_t below = 0;
    assert(first_offset >= 0);
    while (below < snapshots->count && snapshots->values[below] < first_offset) {
        char path[FILE_PATH_MAX];
        log_file_path(listing->directory, snapshots->values[below++], LOG_FILE_SNAPSHOT, path);
        enum status status = file_remove(path);
        (void)status; /* logged; looked at again at the next open */
    }
    snapshots->count -= below;
    for (size_t i = 0; below > 0 && i < snapshots->count; i++) {
        snapshots->values[i] = snapshots->values[i + below];
    }
}

/* Keeps the newest snapshots up to the end of the log and removes the others. */
static void keep_snapshots(struct partition_log *log, const struct listing *listing)
{
    size_t kept = 0;
    for (size_t i = listing->snapshots.count; i > 0; i--) {
        int64_t offset = listing->snapshots.values[i - 1];
        if (offset <= log->next_offset && kept < LOG_SNAPSHOTS_KEPT) {
            log->content->snapshots[kept++] = offset;
        } else {
            char path[FILE_PATH_MAX];
            log_file_path(listing->directory, offset, LOG_FILE_SNAPSHOT, path);
            enum status status = file_remove(path);
            (void)status; /* logged; looked at again at the next open */
        }
    }
}

/* Segments ---------------------------------------------------------------------------------- */

static enum status size_of(const char *path, uint64_t *size_bytes)
{
    struct file *file;
    enum status status = file_open(path, FILE_READ, &file);
    if (status == STATUS_OK) {
        status = file_size(file, size_bytes);
        file_unref(file);
    }
    return status;
}

/* Makes the segments, with their sizes. */
static enum status load_segments(struct partition_log *log, const struct listing *listing,
    int64_t now_ms)
{
    for (size_t i = 0; i < listing->segments.count; i++) {
        char path[FILE_PATH_MAX];
        log_file_path(listing->directory, listing->segments.values[i], LOG_FILE_LOG, path);
        struct log_segment *segment = log_content_add(log->content,
            listing->segments.values[i], now_ms);
        enum status status = size_of(path, &segment->size_bytes);
        if (status != STATUS_OK) {
            return status;
        }
        segment->written_bytes = segment->size_bytes;
        log->content->size_bytes += segment->size_bytes;
    }
    return STATUS_OK;
}

static void remove_segment_files(const struct listing *listing, int64_t base_offset)
{
    enum log_file_kind kinds[] = {LOG_FILE_LOG, LOG_FILE_INDEX, LOG_FILE_TIME_INDEX};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char path[FILE_PATH_MAX];
        log_file_path(listing->directory, base_offset, kinds[i], path);
        enum status status = file_remove(path);
        (void)status; /* logged; an empty segment does no harm */
    }
}

/* Takes segments from `keep` on out of memory; with `files`, off the disk too. */
static void drop_behind(struct partition_log *log, const struct listing *listing, size_t keep,
    bool files)
{
    struct log_content *content = log->content;
    while (content->segment_count > keep) {
        struct log_segment *segment = content->segments[--content->segment_count];
        content->size_bytes -= segment->size_bytes;
        if (files) {
            remove_segment_files(listing, segment->base_offset);
        }
        log_segment_free(log->shard, segment);
    }
}

/* The same for good: a removal that a power cut undoes would be found among what comes after. */
static enum status remove_behind(struct partition_log *log, const struct listing *listing,
    size_t keep)
{
    if (log->content->segment_count <= keep) {
        return STATUS_OK;
    }
    drop_behind(log, listing, keep, true);
    return file_sync_directory(listing->directory);
}

/* Whether the segments end with the empty one that a log makes which starts anew, and those before
 * it, with all that is vouched for, did not go any more. */
static bool is_begun_restart(const struct log_recover *recover, size_t number)
{
    const struct log_content *content = recover->log->content;
    return number + 2 == content->segment_count && log_active(content)->size_bytes == 0
        && log_active(content)->base_offset > recover->expected
        && recover->expected >= recover->recovery_point && !log_may_have_gaps(recover->log);
}

/* Offsets between segments that no file has: a file is missing. Compacted logs have such gaps. */
static bool note_gap(struct log_recover *recover, size_t number, int64_t end_offset)
{
    struct log_content *content = recover->log->content;
    if (number + 1 >= content->segment_count || log_may_have_gaps(recover->log)
        || content->segments[number + 1]->base_offset == end_offset) {
        return false;
    }
    struct log_damage *damage = &content->damage;
    snprintf(damage->file, sizeof damage->file, "%020" PRId64 ".log", end_offset);
    damage->position = 0;
    damage->offset = end_offset;
    damage->resume_offset = content->segments[number + 1]->base_offset;
    damage->reason = "offsets are missing between two segments";
    recover->expected = end_offset;
    return true;
}

/* A segment below everything that must be read again. */
static enum status trust_segment(struct log_recover *recover, size_t number, bool *damaged)
{
    struct log_segment *segment = recover->log->content->segments[number];
    int64_t end_offset;
    enum status status = log_recover_trust(recover, segment);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t interval = (uint64_t)recover->log->settings->index_interval_bytes;
    if ((log_index_count(&segment->offsets) == 0 && segment->size_bytes > 2 * interval)
        || (log_index_count(&segment->times) == 0 && segment->size_bytes > 0)) {
        enum log_recover_case result; /* an index is lost: read the segment again */
        log_handle_close(recover->log->shard, &segment->offsets.handle);
        log_handle_close(recover->log->shard, &segment->times.handle);
        recover->expected = segment->base_offset;
        status = log_recover_segment(recover, segment, false, &result);
        if (status == STATUS_OK) {
            status = log_recover_save_indexes(recover, segment);
        }
        segment->finished = true;
        *damaged = status == STATUS_OK && result != LOG_RECOVER_WHOLE;
        return status;
    }
    status = log_recover_end_offset(recover, segment, &end_offset);
    if (status == STATUS_CORRUPT) {
        end_offset = segment->base_offset;
        status = STATUS_OK;
    }
    recover->expected = end_offset;
    return status;
}

/* What a segment's case, when it is not whole, means for those behind it. */
static enum status stop_behind(struct log_recover *recover, const struct listing *listing,
    size_t number, enum log_recover_case result)
{
    if (result == LOG_RECOVER_LOST || result == LOG_RECOVER_CORRUPT) {
        drop_behind(recover->log, listing, number + 1, false);
        return STATUS_OK;
    }
    return remove_behind(recover->log, listing, number + 1);
}

static enum status recover_segments(struct log_recover *recover, const struct listing *listing)
{
    struct log_content *content = recover->log->content;
    size_t first_read = log_segment_at(content, recover->scan_from);
    for (size_t i = 0; i < content->segment_count; i++) {
        struct log_segment *segment = content->segments[i];
        bool is_last = i + 1 == content->segment_count;
        enum log_recover_case result = LOG_RECOVER_WHOLE;
        enum status status;
        bool damaged = false;
        if (i < first_read && !is_last) {
            status = trust_segment(recover, i, &damaged);
            result = damaged ? LOG_RECOVER_LOST : result;
        } else {
            status = log_recover_segment(recover, segment, is_last, &result);
        }
        if (status != STATUS_OK) {
            return status;
        }
        if (result != LOG_RECOVER_WHOLE) {
            return stop_behind(recover, listing, i, result);
        }
        if (is_begun_restart(recover, i)) {
            return remove_behind(recover->log, listing, i + 1);
        }
        if (note_gap(recover, i, recover->expected)) {
            drop_behind(recover->log, listing, i + 1, false);
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

/* The log as a whole ------------------------------------------------------------------------ */

/* From where headers must be read again, by what else is there to start from. */
static enum status plan(struct log_recover *recover, const struct listing *listing)
{
    struct partition_log *log = recover->log;
    bool broken = false;
    int64_t first = log->content->segment_count == 0 ? 0 : log->content->segments[0]->base_offset;
    bool epochs = false;
    int64_t snapshot = -1;
    enum status status = load_epochs(log, listing, &epochs);
    if (status == STATUS_OK) {
        status = load_snapshot(log, listing, recover->recovery_point, &broken, &snapshot);
    }
    if (status != STATUS_OK) {
        return status;
    }
    recover->scan_from = recover->recovery_point < 0 ? first : recover->recovery_point;
    recover->producers_from = recover->scan_from;
    if (snapshot >= 0 || broken) {
        recover->producers_from = broken && snapshot < 0 ? first : snapshot;
        recover->scan_from = recover->producers_from < recover->scan_from ? recover->producers_from
                                                                          : recover->scan_from;
    }
    recover->scan_from = epochs ? recover->scan_from : first;
    log_epochs_cut_back(&log->content->epochs, recover->scan_from); /* they are read again */
    return STATUS_OK;
}

static void report_damage(const struct partition_log *log)
{
    const struct log_damage *damage = &log->content->damage;
    log_error("log", "%s-%d: %s at position %" PRIu64 ", offset %" PRId64 ": %s; not served from"
        " there on, not cut", log->identity.topic, (int)log->identity.partition, damage->file,
        damage->position, damage->offset, damage->reason);
}

/* Offsets, sync state and what the first job has to do, from what was found. */
static void settle(struct log_recover *recover, const struct log_recovery *given)
{
    struct partition_log *log = recover->log;
    struct log_content *content = log->content;
    log->next_offset = recover->expected;
    int64_t first = content->segment_count == 0 ? log->next_offset
                                                : content->segments[0]->base_offset;
    log->start_offset = given->log_start > first ? given->log_start : first;
    if (log->start_offset > log->next_offset) {
        log->start_offset = log->next_offset;
    }
    content->written_offset = log->next_offset;
    content->synced_offset = recover->recovery_point < first ? first : recover->recovery_point;
    if (content->synced_offset > log->next_offset) {
        content->synced_offset = log->next_offset;
    }
    log_epochs_cut_back(&content->epochs, log->next_offset);
    if (log_epochs_cut_front(&content->epochs, log->start_offset)) {
        content->epochs_changed = true;
    }
    content->directory_made = true;
    /* What a process before this one made, and nobody vouches for. */
    content->names_unsynced = content->synced_offset < log->next_offset;
    content->producers_changed = log->producers != NULL
        && content->synced_offset < log->next_offset;
    if (content->damage.file[0] != '\0') {
        log->status = STATUS_CORRUPT;
        report_damage(log);
    }
}

/* A log whose directory holds no segment: it starts where the checkpoint says. */
static void settle_empty(struct log_recover *recover, const struct log_recovery *given)
{
    struct partition_log *log = recover->log;
    int64_t start = given->log_start > 0 ? given->log_start : 0;
    log->start_offset = start;
    log->next_offset = start;
    if (given->next_offset <= start) {
        if (start > 0) {
            log_content_of(log);
            log_content_add(log->content, start, clock_wall_ms());
        }
        return;
    }
    struct log_damage *damage = &log_content_of(log)->damage;
    snprintf(damage->file, sizeof damage->file, "%020" PRId64 ".log", start);
    damage->offset = start;
    damage->resume_offset = -1;
    damage->reason = "all segments are missing though a checkpoint vouches for them";
    log->status = STATUS_CORRUPT;
    report_damage(log);
}

/* Whether there is something the writer should do soon: what was read may not be on the disk, and
 * index entries that were made again are not. */
static bool has_to_write(const struct log_content *content)
{
    const struct log_segment *active = log_active(content);
    return content->synced_offset < content->log->next_offset
        || (active != NULL && active->offsets.pending.length + active->times.pending.length > 0);
}

static enum status load(struct partition_log *log, const struct log_recovery *given,
    struct listing *listing)
{
    struct log_recover recover = {.log = log, .recovery_point = given->next_offset,
        .expected = -1};
    if (listing->segments.count == 0) {
        settle_empty(&recover, given);
        if (log->content != NULL) {
            log->content->directory_made = listing->has_metadata;
        }
        return STATUS_OK;
    }
    remove_snapshots_below(listing, listing->segments.values[0]);
    log_content_of(log);
    log->content->metadata_durable = listing->has_metadata;
    log->content->has_gaps = listing->has_gaps;
    log->content->gaps_noted = listing->has_gaps;
    enum status status = load_segments(log, listing, clock_wall_ms());
    if (status != STATUS_OK) {
        return status;
    }
    status = plan(&recover, listing);
    if (status == STATUS_OK) {
        status = recover_segments(&recover, listing);
    }
    if (status == STATUS_OK) {
        settle(&recover, given);
        keep_snapshots(log, listing);
        if (log->status == STATUS_OK && has_to_write(log->content)) {
            log_mark_dirty(log, log->shard->now_ms);
        }
    }
    return status;
}

static enum status list_and_load(struct partition_log *log, const struct log_recovery *given)
{
    struct listing listing = {0};
    log_directory_path(&log->identity, listing.directory);
    enum status status = STATUS_OK;
    if (file_exists(listing.directory)) {
        status = file_list(listing.directory, list_entry, &listing);
    }
    sort_offsets(&listing.segments);
    sort_offsets(&listing.snapshots);
    if (status == STATUS_OK && listing.has_metadata) {
        status = check_metadata(log, &listing);
    }
    if (status == STATUS_OK) {
        status = load(log, given, &listing);
    }
    free_listing(&listing);
    return status;
}

enum status partition_log_open(struct log_shard *shard, const struct log_identity *identity,
    const struct log_settings *settings, const struct log_recovery *recovery,
    struct partition_log **result, struct log_damage *damage)
{
    struct partition_log *log = memory_new_zero(1, sizeof *log);
    log->shard = shard;
    log->identity = *identity;
    log->settings = settings;
    *damage = (struct log_damage){.offset = -1, .resume_offset = -1};
    *result = NULL;
    enum status status = list_and_load(log, recovery);
    if (status != STATUS_OK) {
        partition_log_close(log);
        return status;
    }
    if (log->content != NULL && log->content->damage.file[0] != '\0') {
        *damage = log->content->damage;
    }
    *result = log;
    return STATUS_OK;
}

enum status partition_log_cut_damage(struct partition_log *log)
{
    struct log_content *content = log->content;
    if (content == NULL || content->damage.file[0] == '\0') {
        return STATUS_OK;
    }
    struct log_recovery recovery = {content->damage.offset, log->start_offset};
    struct listing listing = {0};
    log_directory_path(&log->identity, listing.directory);
    enum status status = STATUS_OK;
    if (file_exists(listing.directory)) {
        status = file_list(listing.directory, list_entry, &listing);
    }
    log_warn("log", "%s-%d: cut at offset %" PRId64 " to be repaired", log->identity.topic,
        (int)log->identity.partition, recovery.next_offset);
    for (size_t i = 0; i < listing.segments.count && status == STATUS_OK; i++) {
        if (listing.segments.values[i] >= recovery.next_offset) {
            remove_segment_files(&listing, listing.segments.values[i]);
        }
    }
    free_listing(&listing);
    if (status == STATUS_OK) {
        log_content_free(log);
        producer_state_free(log->producers);
        log->producers = NULL;
        log->status = STATUS_OK;
        recovery.next_offset = recovery.next_offset > recovery.log_start ? recovery.next_offset
                                                                         : recovery.log_start;
        status = list_and_load(log, &recovery);
    }
    return status;
}
