/* Producers by id in a hash table, in order of their last activity in a list: expiry and the bound
 * take from its front. Each keeps its last five committed batches and, on a leader, the proposed
 * ones in order. Memory only. Snapshots are bytes in and out; a broken one is a status. */
#include "storage/producer_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#define HASH_FUNCTION HASH_FNV /* the usual one falls through cases without saying so */
#include <uthash.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/memory.h"
#include "protocol/crc32c.h"

struct kept_batch {
    int32_t base_sequence; /* -1: known only by its last sequence, from a snapshot */
    int32_t last_sequence;
    int16_t epoch;
    int64_t base_offset;
    int64_t last_offset;
    int64_t timestamp_ms;
};

struct producer {
    int64_t id;
    int16_t epoch;
    uint16_t kept_count;
    uint16_t proposed_count;
    uint16_t proposed_capacity;
    int32_t coordinator_epoch;
    int64_t transaction_first_offset; /* -1: none open */
    int64_t last_timestamp_ms;
    struct kept_batch kept[PRODUCER_BATCHES_KEPT]; /* oldest first */
    struct kept_batch *proposed;                   /* oldest first */
    struct list_link by_use;
    UT_hash_handle hh;
};

struct producer_state {
    struct producer *by_id;
    struct list by_use; /* longest silent first */
    size_t limit;
    size_t proposed_count;
    size_t open_transactions;
};

enum { PROPOSED_MAX = UINT16_MAX - 1 };

struct producer_state *producer_state_new(size_t entry_limit)
{
    assert(entry_limit > 0);
    struct producer_state *state = memory_new_zero(1, sizeof *state);
    list_init(&state->by_use);
    state->limit = entry_limit;
    return state;
}

static struct producer *find(const struct producer_state *state, int64_t id)
{
    struct producer *producer;
    HASH_FIND(hh, state->by_id, &id, sizeof id, producer);
    return producer;
}

static void set_transaction(struct producer_state *state, struct producer *producer, int64_t first)
{
    state->open_transactions -= producer->transaction_first_offset >= 0 ? 1 : 0;
    producer->transaction_first_offset = first;
    state->open_transactions += first >= 0 ? 1 : 0;
}

static void remove_producer(struct producer_state *state, struct producer *producer)
{
    set_transaction(state, producer, -1);
    state->proposed_count -= producer->proposed_count;
    list_remove(&producer->by_use);
    HASH_DEL(state->by_id, producer);
    free(producer->proposed);
    free(producer);
}

static void remove_all(struct producer_state *state)
{
    struct producer *producer;
    struct producer *next;
    HASH_ITER(hh, state->by_id, producer, next) {
        remove_producer(state, producer);
    }
    assert(state->proposed_count == 0 && state->open_transactions == 0);
}

void producer_state_free(struct producer_state *state)
{
    if (state != NULL) {
        remove_all(state);
        free(state);
    }
}

static bool is_busy(const struct producer *producer)
{
    return producer->proposed_count > 0 || producer->transaction_first_offset >= 0;
}

/* Keeps the bound: the longest silent producer without open business goes. */
static void make_room(struct producer_state *state)
{
    struct list_link *link = list_first(&state->by_use);
    while (link != NULL && HASH_COUNT(state->by_id) >= state->limit) {
        struct producer *producer = container_of(link, struct producer, by_use);
        link = list_next(&state->by_use, link);
        if (!is_busy(producer)) {
            remove_producer(state, producer);
        }
    }
}

/* The producer's entry, made when there is none, moved to the end of the list of use. */
static struct producer *use(struct producer_state *state, int64_t id)
{
    assert(id >= 0);
    struct producer *producer = find(state, id);
    if (producer != NULL) {
        list_remove(&producer->by_use);
    } else {
        make_room(state);
        producer = memory_new_zero(1, sizeof *producer);
        producer->id = id;
        producer->epoch = -1;
        producer->coordinator_epoch = -1;
        producer->transaction_first_offset = -1;
        producer->last_timestamp_ms = -1;
        HASH_ADD(hh, state->by_id, id, sizeof producer->id, producer);
    }
    list_push_back(&state->by_use, &producer->by_use);
    return producer;
}

/* Sequence `count` records behind; 2147483647 is followed by 0. */
static int32_t sequence_add(int32_t sequence, int32_t count)
{
    return (int32_t)(((int64_t)sequence + count) & INT32_MAX);
}

bool sequence_is_later(int32_t sequence, int32_t than)
{
    uint32_t ahead = ((uint32_t)sequence - (uint32_t)than) & INT32_MAX;
    return ahead != 0 && ahead < (uint32_t)INT32_MAX / 2;
}

static struct kept_batch kept_of(const struct producer_batch *batch)
{
    assert(batch->record_count > 0 && batch->base_sequence >= 0);
    return (struct kept_batch){
        .base_sequence = batch->base_sequence,
        .last_sequence = sequence_add(batch->base_sequence, batch->record_count - 1),
        .epoch = batch->epoch, .base_offset = batch->base_offset,
        .last_offset = batch->last_offset, .timestamp_ms = batch->timestamp_ms};
}

/* The same batch among those given, or null. */
static const struct kept_batch *find_same(const struct kept_batch *kept, size_t count,
    const struct kept_batch *wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (kept[i].epoch == wanted->epoch && kept[i].last_sequence == wanted->last_sequence
            && kept[i].base_sequence == wanted->base_sequence) {
            return &kept[i];
        }
    }
    return NULL;
}

static struct producer_answer verdict(enum producer_verdict verdict, const struct kept_batch *same)
{
    return (struct producer_answer){verdict, same == NULL ? -1 : same->base_offset,
        same == NULL ? -1 : same->timestamp_ms, -1, -1};
}

/* Behind the last batch of its epoch, or too far behind it. */
static struct producer_answer follows(const struct kept_batch *last, int32_t base_sequence)
{
    int32_t expected = sequence_add(last->last_sequence, 1);
    struct producer_answer answer =
        verdict(expected == base_sequence ? PRODUCER_ACCEPT : PRODUCER_OUT_OF_ORDER, NULL);
    if (sequence_is_later(base_sequence, expected)) {
        answer.missing_sequence = expected;
        answer.last_offset = last->last_offset;
    }
    return answer;
}

/* The batch that the next one must follow: the last proposed, else the last committed. */
static const struct kept_batch *last_batch(const struct producer *producer)
{
    if (producer->proposed_count > 0) {
        return &producer->proposed[producer->proposed_count - 1];
    }
    return producer->kept_count == 0 ? NULL : &producer->kept[producer->kept_count - 1];
}

struct producer_answer producer_state_check(const struct producer_state *state,
    const struct producer_batch *batch)
{
    struct producer *producer = find(state, batch->producer_id);
    if (producer == NULL) {
        return verdict(PRODUCER_ACCEPT, NULL);
    }
    struct kept_batch wanted = kept_of(batch);
    const struct kept_batch *last = last_batch(producer);
    int16_t epoch = last != NULL && last->epoch > producer->epoch ? last->epoch : producer->epoch;
    if (batch->epoch < epoch) {
        return verdict(PRODUCER_FENCED, NULL);
    }
    const struct kept_batch *same = find_same(producer->proposed, producer->proposed_count,
        &wanted);
    if (same != NULL) {
        return verdict(PRODUCER_DUPLICATE_PROPOSED, same);
    }
    same = find_same(producer->kept, producer->kept_count, &wanted);
    if (same != NULL) {
        return verdict(PRODUCER_DUPLICATE, same);
    }
    if (batch->epoch == epoch && last != NULL && last->epoch == epoch) {
        return follows(last, batch->base_sequence);
    }
    /* A new epoch starts at 0; or only a marker is known of this one. */
    bool begins = batch->base_sequence == 0 || epoch < 0;
    return verdict(begins ? PRODUCER_ACCEPT : PRODUCER_OUT_OF_ORDER, NULL);
}

void producer_state_propose(struct producer_state *state, const struct producer_batch *batch)
{
    struct producer *producer = use(state, batch->producer_id);
    assert(producer->proposed_count < PROPOSED_MAX);
    if (producer->proposed_count == producer->proposed_capacity) {
        uint16_t more = (uint16_t)(producer->proposed_capacity == 0
                ? PRODUCER_BATCHES_KEPT : producer->proposed_capacity * 2 + 1);
        more = more < producer->proposed_capacity ? PROPOSED_MAX : more;
        producer->proposed = memory_resize(producer->proposed, more, sizeof *producer->proposed);
        producer->proposed_capacity = more;
    }
    const struct kept_batch *last = last_batch(producer);
    assert(last == NULL || last->base_offset < batch->base_offset);
    producer->proposed[producer->proposed_count++] = kept_of(batch);
    state->proposed_count++;
}

/* A producer that has nothing but dropped proposals was never there. */
static void forget_if_empty(struct producer_state *state, struct producer *producer)
{
    if (producer->kept_count == 0 && producer->epoch < 0 && !is_busy(producer)) {
        remove_producer(state, producer);
    }
}

void producer_state_drop_proposed(struct producer_state *state, int64_t offset)
{
    struct producer *producer;
    struct producer *next;
    if (state->proposed_count == 0) {
        return;
    }
    HASH_ITER(hh, state->by_id, producer, next) {
        while (producer->proposed_count > 0
            && producer->proposed[producer->proposed_count - 1].base_offset >= offset) {
            producer->proposed_count--;
            state->proposed_count--;
        }
        forget_if_empty(state, producer);
    }
}

/* Ends proposals that lie at or below a committed batch. */
static void drop_proposed_until(struct producer_state *state, struct producer *producer,
    int64_t last_offset)
{
    uint16_t done = 0;
    while (done < producer->proposed_count && producer->proposed[done].last_offset <= last_offset) {
        done++;
    }
    if (done > 0) {
        producer->proposed_count = (uint16_t)(producer->proposed_count - done);
        state->proposed_count -= done;
        memmove(producer->proposed, producer->proposed + done,
            producer->proposed_count * sizeof *producer->proposed);
    }
    if (producer->proposed_count == 0) {
        free(producer->proposed);
        producer->proposed = NULL;
        producer->proposed_capacity = 0;
    }
}

static void keep(struct producer *producer, const struct kept_batch *batch)
{
    if (producer->kept_count == PRODUCER_BATCHES_KEPT) {
        producer->kept_count--;
        memmove(producer->kept, producer->kept + 1, producer->kept_count * sizeof *batch);
    }
    producer->kept[producer->kept_count++] = *batch;
}

void producer_state_update(struct producer_state *state, const struct producer_batch *batch)
{
    struct producer *producer = use(state, batch->producer_id);
    if (batch->epoch != producer->epoch) {
        producer->kept_count = 0;
        producer->epoch = batch->epoch;
    }
    struct kept_batch kept = kept_of(batch);
    keep(producer, &kept);
    producer->last_timestamp_ms = batch->timestamp_ms;
    if (batch->is_transactional && producer->transaction_first_offset < 0) {
        set_transaction(state, producer, batch->base_offset);
    }
    drop_proposed_until(state, producer, batch->last_offset);
}

void producer_state_end_transaction(struct producer_state *state, int64_t producer_id,
    int16_t epoch, int32_t coordinator_epoch, int64_t offset, int64_t timestamp_ms)
{
    struct producer *producer = use(state, producer_id);
    if (epoch != producer->epoch) {
        producer->kept_count = 0;
        producer->epoch = epoch;
    }
    set_transaction(state, producer, -1);
    producer->coordinator_epoch = coordinator_epoch;
    producer->last_timestamp_ms = timestamp_ms;
    drop_proposed_until(state, producer, offset);
}

int64_t producer_state_first_open_offset(const struct producer_state *state)
{
    int64_t first = -1;
    struct producer *producer;
    struct producer *next;
    if (state->open_transactions == 0) {
        return -1;
    }
    HASH_ITER(hh, state->by_id, producer, next) {
        int64_t open = producer->transaction_first_offset;
        if (open >= 0 && (first < 0 || open < first)) {
            first = open;
        }
    }
    assert(first >= 0);
    return first;
}

size_t producer_state_expire(struct producer_state *state, int64_t now_ms, int64_t expire_ms)
{
    size_t count = 0;
    struct producer *producer;
    struct producer *next;
    HASH_ITER(hh, state->by_id, producer, next) {
        int64_t last = producer->last_timestamp_ms > 0 ? producer->last_timestamp_ms : 0;
        if (!is_busy(producer) && now_ms - last >= expire_ms) {
            remove_producer(state, producer);
            count++;
        }
    }
    return count;
}

size_t producer_state_count(const struct producer_state *state)
{
    return HASH_COUNT(state->by_id);
}

/* How many of the kept batches lie below the offset; they are the oldest ones. */
static uint16_t kept_below(const struct producer *producer, int64_t offset)
{
    uint16_t count = producer->kept_count;
    while (count > 0 && producer->kept[count - 1].last_offset >= offset) {
        count--;
    }
    return count;
}

void producer_state_forget_from(struct producer_state *state, int64_t offset)
{
    for (struct producer *each = state->by_id; each != NULL; each = each->hh.next) {
        each->kept_count = kept_below(each, offset);
    }
}

static struct producer_info info_of(const struct producer *producer, int64_t below)
{
    uint16_t count = kept_below(producer, below);
    const struct kept_batch *last = count == 0 ? NULL : &producer->kept[count - 1];
    return (struct producer_info){
        .producer_id = producer->id, .epoch = producer->epoch,
        .last_sequence = last == NULL ? -1 : last->last_sequence,
        .last_offset = last == NULL ? -1 : last->last_offset,
        .offset_delta = last == NULL ? 0 : (int32_t)(last->last_offset - last->base_offset),
        .timestamp_ms = producer->last_timestamp_ms,
        .coordinator_epoch = producer->coordinator_epoch,
        .transaction_first_offset = producer->transaction_first_offset};
}

static int compare_ids(const void *a, const void *b)
{
    const struct producer *left = *(const struct producer *const *)a;
    const struct producer *right = *(const struct producer *const *)b;
    return left->id < right->id ? -1 : left->id > right->id;
}

static void each_below(const struct producer_state *state, int64_t below,
    void (*each)(void *context, const struct producer_info *info), void *context)
{
    size_t count = 0;
    struct producer **sorted = memory_new(producer_state_count(state) * sizeof *sorted);
    struct producer *producer;
    struct producer *next;
    HASH_ITER(hh, state->by_id, producer, next) {
        bool is_later = producer->kept_count > 0 && kept_below(producer, below) == 0;
        if (producer->epoch >= 0 && !is_later) { /* epoch -1: proposals only */
            sorted[count++] = producer;
        }
    }
    qsort(sorted, count, sizeof *sorted, compare_ids);
    for (size_t i = 0; i < count; i++) {
        struct producer_info info = info_of(sorted[i], below);
        each(context, &info);
    }
    free(sorted);
}

void producer_state_each(const struct producer_state *state,
    void (*each)(void *context, const struct producer_info *info), void *context)
{
    each_below(state, INT64_MAX, each, context);
}

void producer_state_put(struct producer_state *state, const struct producer_info *info)
{
    struct producer *producer = use(state, info->producer_id);
    producer->epoch = info->epoch;
    producer->kept_count = 0;
    producer->coordinator_epoch = info->coordinator_epoch;
    producer->last_timestamp_ms = info->timestamp_ms;
    set_transaction(state, producer, info->transaction_first_offset);
    if (info->last_sequence >= 0) {
        struct kept_batch kept = {
            .base_sequence = sequence_add(info->last_sequence, -info->offset_delta),
            .last_sequence = info->last_sequence, .epoch = info->epoch,
            .base_offset = info->last_offset - info->offset_delta,
            .last_offset = info->last_offset, .timestamp_ms = info->timestamp_ms};
        keep(producer, &kept);
    }
}

/* Snapshots: int16 version 1, uint32 CRC-32C of what follows it, int32 count, entries as Kafka has
 * them: a producer with its last batch. Behind them, where Kafka's reader has stopped, and under
 * the same CRC: the batches before the last one, so that a restart does not make a batch that is
 * sent again look like a gap. They stand in the order of the entries, oldest first. */
enum {
    SNAPSHOT_VERSION = 1,
    SNAPSHOT_PREFIX_BYTES = 6,
    SNAPSHOT_ENTRY_BYTES = 46,
    SNAPSHOT_EARLIER_BYTES = 42
};

static void save_entry(void *context, const struct producer_info *info)
{
    struct buffer *out = context;
    buffer_append_be64(out, (uint64_t)info->producer_id);
    buffer_append_be16(out, (uint16_t)info->epoch);
    buffer_append_be32(out, (uint32_t)info->last_sequence);
    buffer_append_be64(out, (uint64_t)info->last_offset);
    buffer_append_be32(out, (uint32_t)info->offset_delta);
    buffer_append_be64(out, (uint64_t)info->timestamp_ms);
    buffer_append_be32(out, (uint32_t)info->coordinator_epoch);
    buffer_append_be64(out, (uint64_t)info->transaction_first_offset);
}

static void save_earlier(const struct producer *producer, int64_t below, struct buffer *out)
{
    uint16_t count = kept_below(producer, below);
    for (uint16_t i = 0; i + 1 < count; i++) {
        const struct kept_batch *kept = &producer->kept[i];
        buffer_append_be64(out, (uint64_t)producer->id);
        buffer_append_be16(out, (uint16_t)kept->epoch);
        buffer_append_be32(out, (uint32_t)kept->base_sequence);
        buffer_append_be32(out, (uint32_t)kept->last_sequence);
        buffer_append_be64(out, (uint64_t)kept->base_offset);
        buffer_append_be64(out, (uint64_t)kept->last_offset);
        buffer_append_be64(out, (uint64_t)kept->timestamp_ms);
    }
}

void producer_state_save(const struct producer_state *state, int64_t below, struct buffer *out)
{
    size_t start = out->length;
    buffer_append_be16(out, SNAPSHOT_VERSION);
    buffer_append_be32(out, 0);
    size_t count_at = out->length;
    buffer_append_be32(out, 0);
    each_below(state, below, save_entry, out);
    size_t entries = out->length - count_at - 4;
    assert(entries % SNAPSHOT_ENTRY_BYTES == 0);
    store_be32(out->data + count_at, (uint32_t)(entries / SNAPSHOT_ENTRY_BYTES));
    for (const struct producer *each = state->by_id; each != NULL; each = each->hh.next) {
        save_earlier(each, below, out);
    }
    struct view checked = {out->data + count_at, out->length - count_at};
    store_be32(out->data + start + 2, crc32c(checked));
}

static struct producer_info load_entry(const uint8_t *at)
{
    return (struct producer_info){
        .producer_id = (int64_t)load_be64(at), .epoch = (int16_t)load_be16(at + 8),
        .last_sequence = (int32_t)load_be32(at + 10), .last_offset = (int64_t)load_be64(at + 14),
        .offset_delta = (int32_t)load_be32(at + 22), .timestamp_ms = (int64_t)load_be64(at + 26),
        .coordinator_epoch = (int32_t)load_be32(at + 34),
        .transaction_first_offset = (int64_t)load_be64(at + 38)};
}

/* Whether an entry can be what it says. */
static bool entry_is_sane(const struct producer_info *info)
{
    return info->producer_id >= 0 && info->epoch >= 0 && info->last_sequence >= -1
        && info->offset_delta >= 0 && info->transaction_first_offset >= -1;
}

/* Puts the batch before the last one of its producer; false when it cannot stand there. */
static bool load_earlier(struct producer_state *state, const uint8_t *at)
{
    struct producer *producer = find(state, (int64_t)load_be64(at));
    if (producer == NULL || producer->kept_count == 0 ||
        producer->kept_count == PRODUCER_BATCHES_KEPT) {
        return false;
    }
    struct kept_batch kept = {.epoch = (int16_t)load_be16(at + 8),
                              .base_sequence = (int32_t)load_be32(at + 10),
                              .last_sequence = (int32_t)load_be32(at + 14),
                              .base_offset = (int64_t)load_be64(at + 18),
                              .last_offset = (int64_t)load_be64(at + 26),
                              .timestamp_ms = (int64_t)load_be64(at + 34)};
    struct kept_batch *last = &producer->kept[producer->kept_count - 1];
    if (kept.last_offset >= last->base_offset || kept.base_offset > kept.last_offset) {
        return false;
    }
    last[1] = last[0];
    last[0] = kept;
    producer->kept_count++;
    return true;
}

static bool load_all_earlier(struct producer_state *state, struct view bytes)
{
    for (size_t at = 0; at < bytes.length; at += SNAPSHOT_EARLIER_BYTES) {
        if (!load_earlier(state, bytes.data + at)) {
            return false;
        }
    }
    return true;
}

/* Whether the bytes behind the count can hold that many entries and then earlier batches. */
static bool sizes_fit(size_t length, size_t count)
{
    return count <= length / SNAPSHOT_ENTRY_BYTES &&
           (length - count * SNAPSHOT_ENTRY_BYTES) % SNAPSHOT_EARLIER_BYTES == 0;
}

enum status producer_state_load(struct producer_state *state, struct view snapshot)
{
    remove_all(state);
    if (snapshot.length < SNAPSHOT_PREFIX_BYTES + 4) {
        return STATUS_CORRUPT;
    }
    if (load_be16(snapshot.data) != SNAPSHOT_VERSION) {
        return STATUS_UNSUPPORTED;
    }
    struct view checked = view_slice(snapshot, SNAPSHOT_PREFIX_BYTES,
        snapshot.length - SNAPSHOT_PREFIX_BYTES);
    size_t count = load_be32(checked.data);
    if (crc32c(checked) != load_be32(snapshot.data + 2)
        || !sizes_fit(checked.length - 4, count)) {
        return STATUS_CORRUPT;
    }
    for (size_t i = 0; i < count; i++) {
        struct producer_info info = load_entry(checked.data + 4 + i * SNAPSHOT_ENTRY_BYTES);
        if (!entry_is_sane(&info)) {
            remove_all(state);
            return STATUS_CORRUPT;
        }
        producer_state_put(state, &info);
    }
    size_t earlier_at = 4 + count * SNAPSHOT_ENTRY_BYTES;
    if (!load_all_earlier(state, view_slice(checked, earlier_at, checked.length - earlier_at))) {
        remove_all(state);
        return STATUS_CORRUPT;
    }
    return STATUS_OK;
}
