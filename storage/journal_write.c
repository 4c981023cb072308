/* Filling and writing frames, and what follows from a written one: operations are done, counters
 * move, older files may become free. A failed write or sync stops the journal for good. */
#include "storage/journal_state.h"

#include <assert.h>

#include "base/log.h"
#include "io/clock.h"

/* Notes and packs a record that the journal itself writes. */
static void pack_own(struct journal *journal, const struct journal_record *record)
{
    journal_groups_note(journal->groups, record, journal->ring.generation);
    size_t packed = journal_frame_add(&journal->frame, record, 0);
    assert(packed == 0);
}

/* Votes that hold old files, and marks: so many that at least half the frame is left. */
static void pack_votes_and_marks(struct journal *journal)
{
    struct journal_record record;
    size_t most = journal->frame.limit / 2;
    pthread_mutex_lock(&journal->groups_lock);
    uint64_t entry = journal_groups_oldest_entry(journal->groups);
    uint64_t limit = entry < journal->ring.generation ? entry : journal->ring.generation;
    while (journal->frame.length < most
        && journal_groups_old_vote(journal->groups, limit, &record)) {
        pack_own(journal, &record);
    }
    while (journal->frame.length < most && journal_groups_take_mark(journal->groups, &record)) {
        pack_own(journal, &record);
    }
    pthread_mutex_unlock(&journal->groups_lock);
}

/* Packs records of one operation until it or the frame ends; whether the operation is whole. */
static bool pack_operation(struct journal *journal, const struct journal_op *op)
{
    while (journal->record_at < op->record_count) {
        const struct journal_record *record = &op->records[journal->record_at];
        if (!journal_frame_has_room(&journal->frame)) {
            return false;
        }
        if (journal->payload_at == 0) {
            pthread_mutex_lock(&journal->groups_lock);
            journal_groups_note(journal->groups, record, journal->ring.generation);
            pthread_mutex_unlock(&journal->groups_lock);
        }
        journal->payload_at = journal_frame_add(&journal->frame, record, journal->payload_at);
        if (journal->payload_at < record->payload.length) {
            return false;
        }
        journal->payload_at = 0;
        journal->record_at++;
    }
    return true;
}

static void pack_operations(struct journal *journal)
{
    struct list_link *link;
    while ((link = list_first(&journal->taken)) != NULL) {
        struct journal_op *op = container_of(link, struct journal_op, link);
        if (!pack_operation(journal, op)) {
            return;
        }
        journal->record_at = 0;
        list_remove(link);
        list_push_back(&journal->packed, link);
    }
}

static void end_operation(struct journal_op *op, enum status status)
{
    for (size_t i = 0; i < op->record_count; i++) {
        block_unref(op->records[i].payload.block);
    }
    op->done(op, status);
}

static void end_list(struct list *list, enum status status)
{
    struct list_link *link;
    while ((link = list_pop_front(list)) != NULL) {
        end_operation(container_of(link, struct journal_op, link), status);
    }
}

void journal_end_all(struct journal *journal, enum status status)
{
    assert(status != STATUS_OK);
    end_list(&journal->packed, status);
    end_list(&journal->taken, status);
    journal->record_at = 0;
    journal->payload_at = 0;
}

void journal_fail(struct journal *journal, enum status status)
{
    assert(status != STATUS_OK);
    pthread_mutex_lock(&journal->lock);
    bool first = journal->status == STATUS_OK;
    if (first) {
        journal->status = status;
    }
    pthread_mutex_unlock(&journal->lock);
    if (first) {
        log_error("journal", "%s: nothing is written any more; free the cause, then restart",
            status_text(status));
        if (journal->handler.failed != NULL) {
            journal->handler.failed(journal->handler.context, status);
        }
    }
    journal_end_all(journal, status);
}

/* The oldest generation needed, by what is written so far. */
static uint64_t oldest_needed(struct journal *journal)
{
    pthread_mutex_lock(&journal->groups_lock);
    uint64_t entry = journal_groups_oldest_entry(journal->groups);
    uint64_t vote = journal_groups_oldest_vote(journal->groups);
    pthread_mutex_unlock(&journal->groups_lock);
    uint64_t oldest = entry < vote ? entry : vote;
    oldest = oldest < journal->ring.generation ? oldest : journal->ring.generation;
    return oldest > journal->ring.oldest ? oldest : journal->ring.oldest;
}

static void count_frame(struct journal *journal, size_t padded, uint64_t took_ns)
{
    struct journal_stats *stats = &journal->stats;
    pthread_mutex_lock(&journal->lock);
    stats->frames++;
    stats->records += journal->frame.piece_count;
    stats->written_bytes += padded;
    stats->payload_bytes += journal->frame.length;
    stats->write_ns += took_ns;
    stats->longest_write_ns = took_ns > stats->longest_write_ns ? took_ns : stats->longest_write_ns;
    stats->capacity_bytes = journal->ring.file_count * journal->ring.file_bytes;
    stats->used_bytes = (journal->ring.generation - journal->ring.oldest + 1)
        * journal->ring.file_bytes;
    stats->direct = journal->ring.direct;
    pthread_mutex_unlock(&journal->lock);
}

/* What a written frame means. */
static void frame_written(struct journal *journal)
{
    journal->sequence = journal->frame.sequence;
    journal->written_oldest = journal->frame_oldest;
    journal->opened = true;
    journal->last_write_ms = journal->now_ms;
    if (journal->settings.flush == JOURNAL_FLUSH_DURABLE) {
        journal->synced = journal->sequence;
        journal->ring.durable_oldest = journal->written_oldest;
    }
}

enum status journal_write_frame(struct journal *journal, size_t limit_bytes, bool with_operations)
{
    assert(list_is_empty(&journal->packed));
    journal->frame_oldest = oldest_needed(journal);
    journal->ring.oldest = journal->frame_oldest;
    journal->frame.takes_apart = journal_ring_takes_sectors(&journal->ring);
    journal_frame_begin(&journal->frame, journal->sequence + 1, limit_bytes);
    pack_votes_and_marks(journal);
    if (with_operations) {
        pack_operations(journal);
    }
    /* A frame without records needs nobody to vouch for it. */
    journal->sealed = journal->frame.piece_count == 0;
    size_t padded = journal_frame_finish(&journal->frame, (struct journal_frame_header){
        .generation = journal->ring.generation, .oldest = journal->frame_oldest,
        .synced = journal->synced, .file_count = journal->ring.file_count,
        .flags = journal->opened ? 0 : JOURNAL_FRAME_OPENED});
    uint64_t started = clock_monotonic_ns();
    enum status status = journal_ring_write(&journal->ring, journal->frame.parts,
        journal->frame.part_count, padded);
    if (status != STATUS_OK) {
        journal_fail(journal, status);
        return status;
    }
    count_frame(journal, padded, clock_monotonic_ns() - started);
    frame_written(journal);
    end_list(&journal->packed, STATUS_OK);
    return STATUS_OK;
}

enum status journal_sync(struct journal *journal)
{
    if (journal->settings.flush == JOURNAL_FLUSH_DURABLE || journal->synced == journal->sequence) {
        return STATUS_OK;
    }
    enum status status = journal_ring_sync(&journal->ring);
    journal->last_sync_ms = journal->now_ms;
    if (status != STATUS_OK) {
        journal_fail(journal, status);
        return status;
    }
    journal->synced = journal->sequence;
    journal->ring.durable_oldest = journal->written_oldest;
    return STATUS_OK;
}
