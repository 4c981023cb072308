/* Where the next frame goes: switching files, freeing the oldest ones, growing, and calling for
 * checkpoints when the ring fills up.
 *
 * While no free file waits, a reserve at the end of the current file is left alone: freeing the
 * oldest file needs frames of its own (votes that lie in it move on, then one that says that it is
 * not needed), and those must find room when nothing else does. Growth that fails is tried again
 * when it is needed; only when freeing can never help does the journal give up.
 */
#include "storage/journal_state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"

enum { PRESSURE_INTERVAL_MS = 1000, PRESSURE_GROUPS_MAX = 4096, RESERVE_PAGES = 4 };

/* Room that only the freeing of files may use. */
static uint64_t reserve_bytes(struct journal *journal)
{
    pthread_mutex_lock(&journal->groups_lock);
    uint64_t votes = journal_groups_vote_count(journal->groups);
    pthread_mutex_unlock(&journal->groups_lock);
    uint64_t reserve = RESERVE_PAGES * JOURNAL_PAGE
        + journal_page_align(2 * votes * sizeof(struct journal_piece_header));
    uint64_t most = journal_ring_current(&journal->ring)->size_bytes / 2;
    return reserve < most ? reserve : most;
}

static size_t whole_pages(uint64_t room)
{
    room -= room % JOURNAL_PAGE;
    return room < JOURNAL_FRAME_MAX ? (size_t)room : JOURNAL_FRAME_MAX;
}

/* Whether some file older than the current one could be freed: no entry in it is needed. */
static bool can_free(struct journal *journal)
{
    pthread_mutex_lock(&journal->groups_lock);
    uint64_t oldest = journal_groups_oldest_entry(journal->groups);
    pthread_mutex_unlock(&journal->groups_lock);
    return journal->ring.durable_oldest < journal->ring.generation
        && oldest > journal->ring.durable_oldest;
}

/* Whether a vote lies in a file that has nothing else to keep it. */
static bool votes_are_behind(struct journal *journal)
{
    pthread_mutex_lock(&journal->groups_lock);
    uint64_t entry = journal_groups_oldest_entry(journal->groups);
    uint64_t vote = journal_groups_oldest_vote(journal->groups);
    pthread_mutex_unlock(&journal->groups_lock);
    return vote < entry && vote < journal->ring.generation;
}

/* Free files to be left alone. Once the groups run, the last one is kept for the next start: groups
 * must write a vote and begin before they can checkpoint anything. */
static uint32_t spare_count(struct journal *journal)
{
    struct journal_ring *ring = &journal->ring;
    bool keep_one = atomic_load(&journal->running) && ring->oldest < ring->generation &&
                    (ring->growth_failed || !journal_ring_may_grow(ring));
    return keep_one ? 1 : 0;
}

/* Whether a free file waits that may be used. */
static bool has_usable(struct journal *journal)
{
    return journal_ring_free_count(&journal->ring) > spare_count(journal);
}

/* Whether the current file is the spare one: what is left of it is for the next start too. */
static bool spare_is_in_use(struct journal *journal)
{
    return journal_ring_free_count(&journal->ring) < spare_count(journal);
}

/* Begins the next file when the one before is durable. */
static enum status begin_file(struct journal *journal)
{
    enum status status = journal_sync(journal);
    if (status == STATUS_OK) {
        journal_ring_switch(&journal->ring);
    }
    return status;
}

/* Moves votes out of the oldest files and writes the frame that says they are free; in the spare
 * file when the current one has no page left. */
static enum status free_files(struct journal *journal)
{
    enum status status = STATUS_OK;
    size_t room = whole_pages(journal_ring_room(&journal->ring));
    if (room < JOURNAL_PAGE && journal_ring_free_count(&journal->ring) > 0) {
        status = begin_file(journal);
        room = whole_pages(journal_ring_room(&journal->ring));
    }
    while (status == STATUS_OK && votes_are_behind(journal) && room >= JOURNAL_PAGE) {
        status = journal_write_frame(journal, room, false);
        room = whole_pages(journal_ring_room(&journal->ring));
    }
    if (status == STATUS_OK && room >= JOURNAL_PAGE) {
        status = journal_write_frame(journal, room, false);
    }
    return status == STATUS_OK ? journal_sync(journal) : status;
}

/* Tells the owner which groups hold the oldest files. */
static void call_for_checkpoints(struct journal *journal)
{
    journal->last_pressure_ms = journal->now_ms;
    uint64_t *ids = memory_new(PRESSURE_GROUPS_MAX * sizeof *ids);
    uint64_t used = journal->ring.generation - journal->ring.oldest + 1;
    pthread_mutex_lock(&journal->groups_lock);
    size_t count = journal_groups_holding(journal->groups, journal->ring.oldest + used / 4, ids,
        PRESSURE_GROUPS_MAX);
    pthread_mutex_unlock(&journal->groups_lock);
    pthread_mutex_lock(&journal->lock);
    journal->stats.pressure_calls++;
    pthread_mutex_unlock(&journal->lock);
    log_debug("journal", "the ring is filling up: %zu groups hold its oldest files", count);
    if (journal->handler.pressure != NULL) {
        journal->handler.pressure(journal->handler.context, ids, count, journal->stalled);
    }
    free(ids);
}

static uint32_t file_limit(const struct journal *journal)
{
    return journal->ring.growth_failed ? journal->ring.file_count : journal->ring.file_limit;
}

/* Begins the next file; early warning when most of the ring is in use. */
static enum status switch_file(struct journal *journal)
{
    enum status status = begin_file(journal);
    uint64_t used = journal->ring.generation - journal->ring.oldest + 1;
    if (status == STATUS_OK && used * 4 >= (uint64_t)file_limit(journal) * 3) {
        call_for_checkpoints(journal);
    }
    return status;
}

static void stall(struct journal *journal)
{
    bool first = !journal->stalled;
    journal->stalled = true;
    if (first) {
        log_warn("journal", "full: waiting for checkpoints");
        pthread_mutex_lock(&journal->lock);
        journal->stats.stalls++;
        pthread_mutex_unlock(&journal->lock);
    }
    if (first || journal->now_ms >= journal->last_pressure_ms + PRESSURE_INTERVAL_MS) {
        call_for_checkpoints(journal);
    }
}

/* A free file, by freeing or growing. STATUS_BUSY when checkpoints must come first. */
static enum status get_free_file(struct journal *journal)
{
    enum status status = STATUS_OK;
    if (can_free(journal)) {
        status = free_files(journal);
    }
    if (status != STATUS_OK || has_usable(journal)) {
        return status;
    }
    enum status grown = journal_ring_grow(&journal->ring);
    if (grown == STATUS_OK) {
        return has_usable(journal) ? STATUS_OK : STATUS_BUSY;
    }
    bool hopeless = journal->ring.oldest == journal->ring.generation && grown != STATUS_LIMIT;
    return hopeless ? grown : STATUS_BUSY;
}

/* Room for the next frame in the current file; while no free file waits, without the reserve. */
static size_t usable_room(struct journal *journal)
{
    uint64_t room = journal_ring_room(&journal->ring);
    if (spare_is_in_use(journal)) {
        return 0;
    }
    if (!has_usable(journal)) {
        uint64_t reserve = reserve_bytes(journal);
        room = room > reserve ? room - reserve : 0;
    }
    return whole_pages(room);
}

bool journal_make_room(struct journal *journal, size_t *limit_bytes)
{
    enum status status = STATUS_OK;
    if (spare_is_in_use(journal) && can_free(journal)) {
        status = free_files(journal);
    }
    *limit_bytes = usable_room(journal);
    if (status == STATUS_OK && *limit_bytes < JOURNAL_PAGE && !has_usable(journal)) {
        status = get_free_file(journal);
        *limit_bytes = usable_room(journal);
    }
    if (status == STATUS_OK && *limit_bytes < JOURNAL_PAGE) {
        status = switch_file(journal);
        *limit_bytes = usable_room(journal);
        status = status == STATUS_OK && *limit_bytes < JOURNAL_PAGE ? STATUS_BUSY : status;
    }
    if (status == STATUS_BUSY) {
        stall(journal);
        return false;
    }
    if (status != STATUS_OK) {
        journal_fail(journal, status);
        return false;
    }
    journal->stalled = false;
    assert(*limit_bytes >= JOURNAL_PAGE);
    return true;
}

bool journal_tend_ring(struct journal *journal)
{
    struct journal_ring *ring = &journal->ring;
    bool late = ring->position > journal_ring_current(ring)->size_bytes / 2;
    bool worked = false;
    enum status status = STATUS_OK;
    if (late && !has_usable(journal)) {
        if (can_free(journal)) {
            status = free_files(journal);
            worked = has_usable(journal) || status != STATUS_OK;
        } else if (!ring->growth_failed && journal_ring_may_grow(ring)) {
            /* A failure here is no harm yet: it is tried again when the file is needed. */
            worked = journal_ring_grow(ring) == STATUS_OK;
        }
    }
    if (status == STATUS_OK && !worked) {
        status = journal_ring_fill(ring, &worked);
    }
    if (status != STATUS_OK) {
        journal_fail(journal, status);
    }
    return worked || status != STATUS_OK;
}
