/* The journal as its users see it: open with replay, submit, marks, and the writer's loop.
 *
 * The happy path: journal_submit puts an operation on a list and wakes the writer; the writer takes
 * the whole list, packs what fits into a frame, writes it, calls `done` for what is on the disk,
 * and looks at the list again. A failure ends all operations with its status, now and later. When
 * the ring is full the writer waits for journal_mark.
 */
#include "storage/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/clock.h"
#include "storage/journal_scan.h"
#include "storage/journal_state.h"

enum { DEFAULT_FLUSH_INTERVAL_MS = 1000, DEFAULT_SEAL_AFTER_MS = 100, STALL_LOOK_MS = 1000 };

/* Moves what was submitted to the writer's own list. */
static void take_pending(struct journal *journal)
{
    struct list_link *link;
    pthread_mutex_lock(&journal->lock);
    while ((link = list_pop_front(&journal->pending)) != NULL) {
        list_push_back(&journal->taken, link);
    }
    journal->nudged = false;
    pthread_mutex_unlock(&journal->lock);
}

/* The next frame of waiting operations. False when there are none or there is no room. */
static bool write_waiting(struct journal *journal)
{
    if (list_is_empty(&journal->taken)) {
        return false;
    }
    size_t limit = 0;
    if (!journal_make_room(journal, &limit)) {
        return false;
    }
    enum status status = journal_write_frame(journal, limit, true);
    (void)status; /* a failure has already ended everything that waits */
    return true;
}

/* Vouches for the last frame when nothing came after it for a while. */
static bool seal(struct journal *journal, bool at_once)
{
    pthread_mutex_lock(&journal->groups_lock);
    bool marks = journal_groups_have_marks(journal->groups);
    pthread_mutex_unlock(&journal->groups_lock);
    bool due = journal->now_ms >= journal->last_write_ms + journal->settings.seal_after_ms;
    if ((journal->sealed && !marks) || !(due || at_once) || journal->stalled) {
        return false;
    }
    size_t limit = 0;
    if (journal_sync(journal) != STATUS_OK || !journal_make_room(journal, &limit)) {
        return false;
    }
    /* Marks in this frame need not be vouched for: losing them costs only a longer replay. */
    enum status status = journal_write_frame(journal, limit, false);
    journal->sealed = status == STATUS_OK;
    return true;
}

static bool sync_by_interval(struct journal *journal)
{
    bool due = journal->now_ms >= journal->last_sync_ms + journal->settings.flush_interval_ms;
    if (!due || journal->synced == journal->sequence
        || journal->settings.flush != JOURNAL_FLUSH_INTERVAL) {
        return false;
    }
    enum status status = journal_sync(journal);
    (void)status; /* a failure has already stopped the journal */
    return true;
}

/* One turn of the writer; whether it did anything. */
static bool turn(struct journal *journal, uint64_t now_ms)
{
    journal->now_ms = now_ms;
    take_pending(journal);
    enum status status = journal_status(journal);
    if (status != STATUS_OK) {
        bool any = !list_is_empty(&journal->taken);
        journal_end_all(journal, status);
        return any;
    }
    if (sync_by_interval(journal) || write_waiting(journal)) {
        return true;
    }
    return journal_status(journal) == STATUS_OK
        && (journal_tend_ring(journal) || seal(journal, false));
}

/* When the writer must look again though nobody wakes it; 0 for never. */
static uint64_t next_deadline_ms(const struct journal *journal)
{
    uint64_t deadline = 0;
    if (journal->stalled) {
        return journal->now_ms + STALL_LOOK_MS;
    }
    if (!journal->sealed) {
        deadline = journal->last_write_ms + journal->settings.seal_after_ms;
    }
    if (journal->settings.flush == JOURNAL_FLUSH_INTERVAL && journal->synced != journal->sequence) {
        uint64_t sync = journal->last_sync_ms + journal->settings.flush_interval_ms;
        deadline = deadline == 0 || sync < deadline ? sync : deadline;
    }
    return deadline;
}

/* Waits for work; false when the journal is to stop and nothing is left to do. */
static bool wait_for_work(struct journal *journal)
{
    bool failed = journal_status(journal) != STATUS_OK;
    uint64_t deadline = failed ? 0 : next_deadline_ms(journal);
    struct timespec until = {(time_t)(deadline / 1000), (long)(deadline % 1000) * 1000000};
    pthread_mutex_lock(&journal->lock);
    int error = 0;
    while (list_is_empty(&journal->pending) && !journal->nudged && !journal->stopping
        && error != ETIMEDOUT) {
        error = deadline == 0 ? pthread_cond_wait(&journal->wake, &journal->lock)
                              : pthread_cond_timedwait(&journal->wake, &journal->lock, &until);
        assert(error == 0 || error == ETIMEDOUT);
    }
    bool go_on = !journal->stopping || !list_is_empty(&journal->pending);
    pthread_mutex_unlock(&journal->lock);
    return go_on;
}

static void *writer_main(void *context)
{
    struct journal *journal = context;
    bool go_on = true;
    while (go_on) {
        if (!turn(journal, clock_monotonic_ms())) {
            go_on = wait_for_work(journal);
        }
    }
    return NULL;
}

static void init_locks(struct journal *journal)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    error += pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    error += pthread_cond_init(&journal->wake, &attributes);
    error += pthread_mutex_init(&journal->lock, NULL);
    error += pthread_mutex_init(&journal->groups_lock, NULL);
    assert(error == 0);
    pthread_condattr_destroy(&attributes);
}

static struct journal *new_journal(const struct journal_settings *settings,
    const struct journal_handler *handler)
{
    struct journal *journal = memory_new_zero(1, sizeof *journal);
    init_locks(journal);
    list_init(&journal->pending);
    list_init(&journal->taken);
    list_init(&journal->packed);
    journal->groups = journal_groups_new();
    journal->handler = *handler;
    journal->settings = *settings;
    journal->settings.directory = NULL; /* the ring has a copy */
    if (settings->flush_interval_ms == 0) {
        journal->settings.flush_interval_ms = DEFAULT_FLUSH_INTERVAL_MS;
    }
    if (settings->seal_after_ms == 0) {
        journal->settings.seal_after_ms = DEFAULT_SEAL_AFTER_MS;
    }
    journal_frame_init(&journal->frame);
    return journal;
}

static void free_journal(struct journal *journal)
{
    assert(list_is_empty(&journal->pending) && list_is_empty(&journal->taken));
    journal_ring_close(&journal->ring);
    journal_groups_free(journal->groups);
    journal_frame_free(&journal->frame);
    pthread_cond_destroy(&journal->wake);
    pthread_mutex_destroy(&journal->lock);
    pthread_mutex_destroy(&journal->groups_lock);
    free(journal);
}

enum status journal_open(const struct journal_settings *settings,
    const struct journal_handler *handler, struct journal **result)
{
    assert(handler->replay != NULL && handler->damage != NULL);
    *result = NULL;
    struct journal *journal = new_journal(settings, handler);
    enum status status = journal_ring_open(&journal->ring, settings);
    if (status == STATUS_OK) {
        status = journal_scan(&journal->ring, journal->groups, handler, &journal->sequence);
    }
    if (status != STATUS_OK) {
        log_error("journal", "cannot open %s: %s", settings->directory, status_text(status));
        free_journal(journal);
        return status;
    }
    journal->synced = journal->sequence;
    journal->written_oldest = journal->ring.oldest;
    journal->sealed = journal->sequence == 0;
    journal->now_ms = clock_monotonic_ms();
    journal->last_write_ms = journal->now_ms;
    if (settings->threaded) {
        int error = pthread_create(&journal->thread, NULL, writer_main, journal);
        assert(error == 0);
    }
    *result = journal;
    return STATUS_OK;
}

static void stop_thread(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    journal->stopping = true;
    pthread_cond_signal(&journal->wake);
    pthread_mutex_unlock(&journal->lock);
    if (journal->settings.threaded) {
        int error = pthread_join(journal->thread, NULL);
        assert(error == 0);
    }
}

void journal_close(struct journal *journal)
{
    stop_thread(journal);
    take_pending(journal);
    while (journal_status(journal) == STATUS_OK && write_waiting(journal)) {
        take_pending(journal);
    }
    if (journal_status(journal) == STATUS_OK) {
        seal(journal, true);
    }
    if (journal_status(journal) == STATUS_OK) {
        enum status status = journal_sync(journal);
        (void)status; /* logged; there is nobody left to tell */
    }
    journal_end_all(journal, STATUS_CLOSED);
    free_journal(journal);
}

void journal_abandon(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    if (journal->status == STATUS_OK) {
        journal->status = STATUS_CLOSED;
    }
    pthread_mutex_unlock(&journal->lock);
    stop_thread(journal);
    take_pending(journal);
    journal_end_all(journal, STATUS_CLOSED);
    free_journal(journal);
}

void journal_submit(struct journal *journal, struct journal_op *op)
{
    assert(op->done != NULL && op->record_count > 0);
    for (size_t i = 0; i < op->record_count; i++) {
        assert(op->records[i].payload.length <= JOURNAL_PAYLOAD_MAX);
        if (op->records[i].payload.block != NULL) {
            block_ref(op->records[i].payload.block);
        }
    }
    pthread_mutex_lock(&journal->lock);
    assert(!journal->stopping);
    list_push_back(&journal->pending, &op->link);
    pthread_cond_signal(&journal->wake);
    pthread_mutex_unlock(&journal->lock);
}

static void nudge(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    journal->nudged = true;
    pthread_cond_signal(&journal->wake);
    pthread_mutex_unlock(&journal->lock);
}

void journal_running(struct journal *journal)
{
    atomic_store(&journal->running, true);
}

void journal_mark(struct journal *journal, uint64_t group, uint64_t index)
{
    pthread_mutex_lock(&journal->groups_lock);
    journal_groups_mark(journal->groups, group, index, true);
    pthread_mutex_unlock(&journal->groups_lock);
    nudge(journal);
}

/* The record that a group is gone, on its way into the journal. */
struct forgotten {
    struct journal_op op;
    struct journal_record record;
};

static void forgotten_done(struct journal_op *op, enum status status)
{
    (void)status; /* the owner says it again at the next start */
    free(container_of(op, struct forgotten, op));
}

void journal_forget(struct journal *journal, uint64_t group)
{
    pthread_mutex_lock(&journal->groups_lock);
    journal_groups_forget(journal->groups, group);
    pthread_mutex_unlock(&journal->groups_lock);
    struct forgotten *forgotten = memory_new_zero(1, sizeof *forgotten);
    forgotten->record = (struct journal_record){.kind = JOURNAL_FORGET, .group = group};
    forgotten->op = (struct journal_op){
        .records = &forgotten->record, .record_count = 1, .done = forgotten_done};
    journal_submit(journal, &forgotten->op);
}

bool journal_run_once(struct journal *journal, uint64_t now_ms)
{
    assert(!journal->settings.threaded);
    return turn(journal, now_ms);
}

enum status journal_status(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    enum status status = journal->status;
    pthread_mutex_unlock(&journal->lock);
    return status;
}

void journal_read_stats(struct journal *journal, struct journal_stats *stats)
{
    pthread_mutex_lock(&journal->lock);
    *stats = journal->stats;
    pthread_mutex_unlock(&journal->lock);
}
