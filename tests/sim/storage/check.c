/* Opening after a stop or crash, and comparing what came back with the model. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/clock.h"
#include "protocol/records.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"
#include "tests/sim/storage/world.h"

enum { DATA_READ_MAX = 1 << 20 };

/* Replay ------------------------------------------------------------------------------------ */

/* The next serial of the same group behind `serial` that is an entry or truncation and not lost. */
static uint64_t next_of_group(const struct world *world, unsigned group, uint64_t serial)
{
    for (serial++; serial < world->record_count; serial++) {
        const struct model_record *record = &world->records[serial];
        if (record->group == group && record->kind != JOURNAL_VOTE && !record->lost) {
            return serial;
        }
    }
    return 0;
}

static bool payload_is_right(uint64_t serial, struct slice payload)
{
    for (size_t i = 0; i < payload.length; i++) {
        if (payload.data[i] != (uint8_t)(serial * 131 + i * 7 + (i >> 8))) {
            return false;
        }
    }
    return true;
}

static void replay_vote(struct world *world, unsigned group, const struct journal_record *record)
{
    world_require(world, record->term >= world->replayed_vote[group],
        "an older vote came after a newer one");
    world_require(world, record->voted_for == (int32_t)(record->term % 1000) - 1
        && record->tag == record->term % 5 && record->index == record->term % 11,
        "a vote has changed");
    world->replayed_vote[group] = record->term;
}

static void replay(void *context, const struct journal_record *record)
{
    struct world *world = context;
    unsigned group = (unsigned)record->group - 1;
    world_require(world, group < GROUPS, "a record of group %u", group);
    if (record->kind == JOURNAL_MARK) {
        return;
    }
    uint64_t serial = record->term;
    world_require(world, serial > 0 && serial < world->record_count,
        "record %llu was never submitted", (unsigned long long)serial);
    struct model_record *known = &world->records[serial];
    world_require(world, !known->lost, "record %llu was lost and is back",
        (unsigned long long)serial);
    world_require(world, known->kind == record->kind && known->group == group
        && (record->kind == JOURNAL_VOTE
            || (known->index == record->index && known->tag == record->tag))
        && known->payload_bytes == record->payload.length, "record %llu has changed",
        (unsigned long long)serial);
    world_require(world, payload_is_right(serial, record->payload), "payload %llu has changed",
        (unsigned long long)serial);
    if (record->kind == JOURNAL_VOTE) {
        replay_vote(world, group, record);
        return; /* it may be a copy that was written later */
    }
    world->highest_replayed = serial > world->highest_replayed ? serial : world->highest_replayed;
    uint64_t before = world->replayed_entry[group];
    world_require(world, before == 0 || next_of_group(world, group, before) == serial
        || world->damages > 0, "group %u: record %llu does not follow %llu", group,
        (unsigned long long)serial, (unsigned long long)before);
    world->replayed_entry[group] = serial;
    known->replayed = true;
}

static void damage(void *context, const struct journal_damage *damage)
{
    struct world *world = context;
    world_require(world, world->tampered, "damage reported in an honest journal: %s at %llu",
        damage->file, (unsigned long long)damage->position);
    world->damages++;
    if (damage->group_known) {
        world->groups[damage->group - 1].damaged = true;
    } else {
        world->anything_damaged = true;
    }
}

static void failed(void *context, enum status status)
{
    struct world *world = context;
    (void)status;
    world->failed = true;
}

static void writer_failed(void *context, enum status status)
{
    (void)context;
    (void)status;
}

/* Whether the group was reported to have lost something in the journal. */
static bool is_damaged(const struct world *world, unsigned group)
{
    return world->anything_damaged || world->groups[group].damaged;
}

/* Whether a changed bit may have made the record's frame look like a torn write: it was the last
 * one. (Or the one before: an operation can end in a frame that was whole and never counted.) */
static bool looks_torn(const struct world *world, const struct model_record *record)
{
    return world->tampered && record->frame + 1 >= world->last_frame;
}

/* Everything acknowledged and needed must have come back. */
static void check_needed(struct world *world, unsigned number)
{
    struct model_group *group = &world->groups[number];
    if (is_damaged(world, number)) {
        return;
    }
    for (uint64_t index = group->marked + 1; index <= group->live_count; index++) {
        uint64_t serial = group->live[index - 1];
        const struct model_record *record = &world->records[serial];
        bool must = record->acked || serial <= world->highest_replayed;
        if (looks_torn(world, record)) {
            continue;
        }
        world_require(world, record->replayed || !must,
            "group %u: entry %llu (record %llu, %s) is gone", number, (unsigned long long)index,
            (unsigned long long)serial, record->acked ? "acknowledged" : "before others");
    }
    world_require(world, world->replayed_vote[number] >= group->acked_vote
        || looks_torn(world, &world->records[group->acked_vote]),
        "group %u: its vote is gone", number);
}

/* What did not come back was never there: the group's live entries as the journal now has them. */
static void rebuild_live(struct world *world, unsigned number)
{
    struct model_group *group = &world->groups[number];
    group->live_count = 0;
    for (uint64_t serial = 1; serial < world->record_count; serial++) {
        struct model_record *record = &world->records[serial];
        if (record->group != number || record->kind == JOURNAL_VOTE || record->lost) {
            continue;
        }
        if (!record->replayed && !record->acked && serial > world->replayed_entry[number]
            && !(record->kind == JOURNAL_ENTRY && record->index <= group->marked)) {
            record->lost = true;
            continue;
        }
        if (!record->acked) {
            record->acked = true;
            record->frame = world->last_frame;
        }
        if (record->kind == JOURNAL_TRUNCATE) {
            group->live_count = record->index - 1;
        } else {
            assert(record->index == group->live_count + 1);
            group->live[group->live_count++] = serial;
        }
    }
    group->acked_index = group->live_count;
    group->last_vote = world->replayed_vote[number];
    group->acked_vote = world->replayed_vote[number];
    struct model_record *vote = &world->records[group->acked_vote];
    vote->frame = vote->frame == 0 ? world->last_frame : vote->frame;
}

static bool open_journal(struct world *world)
{
    struct journal_handler handler = {.context = world, .replay = replay, .damage = damage,
        .failed = failed};
    for (uint64_t serial = 1; serial < world->record_count; serial++) {
        world->records[serial].replayed = false;
    }
    world->highest_replayed = 0;
    world->damages = 0;
    memset(world->replayed_vote, 0, sizeof world->replayed_vote);
    memset(world->replayed_entry, 0, sizeof world->replayed_entry);
    world->journal_settings.directory = log_dir_journal_path(world->dir);
    enum status status = journal_open(&world->journal_settings, &handler, &world->journal);
    world_require(world, status == STATUS_OK || sim_disk_crashed(), "journal_open: %s",
        status_text(status));
    if (status != STATUS_OK) {
        world->journal = NULL;
        return false;
    }
    for (unsigned group = 0; group < GROUPS; group++) {
        check_needed(world, group);
    }
    for (uint64_t serial = 1; serial < world->record_count; serial++) {
        if (world->records[serial].replayed && !world->records[serial].acked) {
            world->last_frame = ++world->frames_before; /* a torn write that was whole after all */
            break;
        }
    }
    return true;
}

/* Logs -------------------------------------------------------------------------------------- */

/* Whether the batch is what was committed at its offset. */
static void check_batch(struct world *world, const struct model_partition *partition,
    struct view batch, struct batch_header *header)
{
    struct buffer scratch = {0};
    struct view bytes;
    struct record record;
    bool whole = batch_validate(batch, header) == STATUS_OK;
    world_require(world, whole || world->tampered, "offset %lld: a batch fails its check",
        (long long)header->base_offset);
    if (!whole) {
        return; /* a reader notices */
    }
    enum status status = batch_unpack(batch, header, DATA_READ_MAX, &scratch, &bytes);
    assert(status == STATUS_OK);
    struct record_iterator iterator = record_iterator_start(header, bytes);
    status = record_next(&iterator, &record);
    assert(status == STATUS_OK);
    uint64_t serial;
    memcpy(&serial, record.key.data, sizeof serial);
    /* No checksum covers the base offset of a batch. */
    bool right = record.offset >= 0 && (uint64_t)record.offset < partition->count
        && partition->serials[record.offset] == serial;
    world_require(world, right || world->tampered, "offset %lld holds record %llu",
        (long long)record.offset, (unsigned long long)serial);
    buffer_free(&scratch);
}

/* Checks the batches of a read; the offset behind them. */
static int64_t check_read(struct world *world, const struct model_partition *partition,
    int64_t offset, const struct log_read *read)
{
    struct buffer bytes = {0};
    for (size_t i = 0; i < read->part_count; i++) {
        const struct log_part *part = &read->parts[i];
        uint8_t *at = buffer_extend(&bytes, part->length_bytes);
        size_t got = part->length_bytes;
        if (part->slice.block != NULL) {
            memcpy(at, part->slice.data, part->length_bytes);
        } else if (file_read(part->file, part->position, at, part->length_bytes, &got)
            != STATUS_OK) {
            buffer_free(&bytes);
            return -1;
        }
        world_require(world, got == part->length_bytes, "a range behind the end of a file");
    }
    struct view left = buffer_view(&bytes);
    struct view batch;
    struct batch_header header;
    while (batch_next(&left, &batch, &header) == STATUS_OK) {
        world_require(world, header.base_offset == offset || world->tampered,
            "offset %lld follows %lld", (long long)header.base_offset, (long long)offset);
        check_batch(world, partition, batch, &header);
        offset = batch_last_offset(&header) + 1;
    }
    world_require(world, left.length == 0 || world->tampered, "a read ends inside a batch");
    buffer_free(&bytes);
    return offset;
}

static void check_log(struct world *world, const struct model_partition *partition)
{
    int64_t offset = partition_log_start(partition->log);
    int64_t end = partition_log_end(partition->log);
    size_t max_bytes = 1 + world_random(world, 30000);
    while (offset < end) {
        struct log_read read;
        enum status status = partition_log_read(partition->log, offset, max_bytes, true, &read);
        if (status != STATUS_OK) {
            world_require(world, sim_disk_crashed() || world->tampered, "read at %lld: %s",
                (long long)offset, status_text(status));
            return;
        }
        int64_t next = check_read(world, partition, offset, &read);
        world_require(world, next > offset || next < 0 || world->tampered,
            "a read at %lld found nothing", (long long)offset);
        log_read_release(&read);
        if (next <= offset) {
            return;
        }
        offset = next;
    }
}

void world_check_logs(struct world *world)
{
    for (unsigned group = 0; group < GROUPS; group++) {
        for (unsigned i = 0; i < PARTITIONS; i++) {
            check_log(world, &world->groups[group].partitions[i]);
        }
    }
}

/* The last committed batch is a duplicate, the next one is not. */
static void check_producer(struct world *world, unsigned group,
    const struct model_partition *partition)
{
    if (partition->count == 0) {
        return;
    }
    struct producer_batch batch = {.producer_id = FIRST_PRODUCER + group, .record_count = 1,
        .base_sequence = (int32_t)partition->count - 1};
    struct producer_state *producers = partition_log_producers(partition->log);
    struct producer_answer answer = producer_state_check(producers, &batch);
    world_require(world, answer.verdict == PRODUCER_DUPLICATE
        && answer.base_offset == (int64_t)partition->count - 1,
        "group %u: a batch sent again is judged %d at %lld, not a duplicate at %zu", group,
        (int)answer.verdict, (long long)answer.base_offset, partition->count - 1);
    batch.base_sequence++;
    answer = producer_state_check(producers, &batch);
    world_require(world, answer.verdict == PRODUCER_ACCEPT, "the next batch is refused");
}

/* Whether the journal brought every committed entry of the partition from this offset on. */
static bool journal_has_from(const struct world *world, const struct model_partition *partition,
    int64_t offset)
{
    for (size_t i = (size_t)offset; i < partition->count; i++) {
        if (!world->records[partition->serials[i]].replayed) {
            return false;
        }
    }
    return true;
}

/* What a broker does about damage: what the journal has can be given up and appended again. */
static bool mend(struct world *world, struct model_partition *partition,
    const struct log_damage *damage)
{
    partition->damaged = damage->file[0] != '\0';
    if (partition->damaged && journal_has_from(world, partition, damage->offset)) {
        if (partition_log_cut_damage(partition->log) != STATUS_OK) {
            return false;
        }
        partition->damaged = false;
    }
    world_require(world, !partition->damaged || world->tampered,
        "damage in an honest log: %s at %llu, offset %lld: %s", damage->file,
        (unsigned long long)damage->position, (long long)damage->offset, damage->reason);
    return true;
}

static bool open_log(struct world *world, unsigned number, unsigned i,
    const struct checkpoint *checkpoint)
{
    struct model_partition *partition = &world->groups[number].partitions[i];
    static const char *const topics[GROUPS] = {"alpha", "beta", "gamma"};
    struct log_identity identity = {log_dir_path(world->dir), topics[number], (int32_t)i,
        {{(uint8_t)(number + 1)}}};
    struct log_recovery recovery = {-1, -1};
    const struct checkpoint_partition *found = checkpoint_find(checkpoint, identity.topic_id,
        (int32_t)i);
    struct log_damage damage;
    if (found != NULL) {
        recovery = (struct log_recovery){found->next_offset, found->log_start};
    }
    enum status status = partition_log_open(world->shard, &identity, &world->log_settings,
        &recovery, &partition->log, &damage);
    world_require(world, status == STATUS_OK || sim_disk_crashed()
        || (world->tampered && status == STATUS_INVALID), "partition_log_open: %s",
        status_text(status));
    if (status != STATUS_OK) {
        partition->log = NULL;
        return false;
    }
    world_require(world, damage.file[0] == '\0' || found == NULL || world->tampered
        || damage.offset >= found->next_offset, "what the checkpoint vouches for is gone: %s, "
        "offset %lld: %s", damage.file, (long long)damage.offset, damage.reason);
    if (!mend(world, partition, &damage)) {
        world_require(world, sim_disk_crashed(), "cut_damage failed");
        return false;
    }
    if (partition->damaged) {
        return true;
    }
    int64_t end = partition_log_end(partition->log);
    world_require(world, found == NULL || end >= found->next_offset || world->tampered,
        "the log ends at %lld, before its checkpoint at %lld", (long long)end,
        found == NULL ? -1 : (long long)found->next_offset);
    world_require(world, end <= (int64_t)partition->count,
        "%s-%u ends at %lld, behind the %zu batches that were appended", topics[number], i,
        (long long)end, partition->count);
    world_require(world, partition_log_start(partition->log) <= partition->start
        || world->tampered, "the log starts behind what was deleted");
    partition->start = partition_log_start(partition->log);
    return true;
}

/* Committed entries that the log lacks are appended again, from what the journal brought. */
static void reapply(struct world *world, unsigned number, uint64_t checkpoint_index)
{
    struct model_group *group = &world->groups[number];
    uint64_t offsets[PARTITIONS] = {0};
    for (uint64_t index = 1; index <= group->committed; index++) {
        uint64_t serial = group->live[index - 1];
        struct model_partition *partition = &group->partitions[world->records[serial].tag];
        uint64_t offset = offsets[world->records[serial].tag]++;
        if (partition->damaged || offset < (uint64_t)partition_log_end(partition->log)) {
            continue;
        }
        if (!world->records[serial].replayed) {
            world_require(world, is_damaged(world, number) || sim_disk_crashed()
                || looks_torn(world, &world->records[serial]),
                "group %u: offset %llu (index %llu, record %llu, checkpoint %llu) is in neither"
                " journal nor log", number, (unsigned long long)offset, (unsigned long long)index,
                (unsigned long long)serial, (unsigned long long)checkpoint_index);
            partition->damaged = true;
            continue;
        }
        world_apply(world, number, serial, offset);
    }
}

static bool open_group(struct world *world, unsigned number)
{
    struct model_group *group = &world->groups[number];
    struct checkpoint checkpoint;
    enum status status = checkpoint_read(log_dir_groups_path(world->dir), number + 1, &checkpoint);
    if (status == STATUS_IO) {
        return false;
    }
    world_require(world, status == STATUS_OK || world->tampered
        || (status == STATUS_NOT_FOUND && group->marked == 0), "checkpoint of group %u: %s", number,
        status_text(status));
    world_require(world, checkpoint.index >= group->marked || world->tampered,
        "group %u: checkpoint %llu is below its mark %llu", number,
        (unsigned long long)checkpoint.index, (unsigned long long)group->marked);
    bool good = true;
    for (unsigned i = 0; i < PARTITIONS && good; i++) {
        good = open_log(world, number, i, &checkpoint);
    }
    if (good) {
        reapply(world, number, checkpoint.index);
    }
    for (unsigned i = 0; i < PARTITIONS && good && !world->tampered; i++) {
        check_producer(world, number, &group->partitions[i]);
    }
    checkpoint_free(&checkpoint);
    return good;
}

/* Open and close ---------------------------------------------------------------------------- */

static void open_shard(struct world *world)
{
    struct log_writer_settings writer = {.failed = writer_failed,
        .group_min = 1 + (int)world_random(world, 6)};
    struct log_shard_settings shard = {.tail_budget_bytes = 20000 + world_random(world, 100000),
        .open_file_limit = 4 + world_random(world, 20), .write_after_ms = 50,
        .write_after_bytes = 4000, .sync_after_bytes = 20000, .idle_tail_ms = 300,
        .direct_from_bytes = 3000, .read_lately_ms = 1};
    world->writer = log_writer_new(&writer);
    world->shard = log_shard_new(world->writer, &shard);
}

bool world_open(struct world *world)
{
    struct log_dir_settings settings = {.path = "/data", .node_id = 1};
    world->failed = false;
    world->restarts++;
    open_shard(world);
    world->open = true;
    for (unsigned group = 0; group < GROUPS; group++) {
        world->groups[group].damaged = false;
    }
    world->anything_damaged = false;
    enum status status = log_dir_open(&settings, &world->dir);
    world_require(world, status == STATUS_OK || sim_disk_crashed()
        || (world->tampered && status == STATUS_INVALID), "log_dir_open: %s", status_text(status));
    if (status != STATUS_OK) {
        world->dir = NULL;
        return false;
    }
    if (!open_journal(world)) {
        return false;
    }
    for (unsigned group = 0; group < GROUPS; group++) {
        rebuild_live(world, group);
        if (!open_group(world, group)) {
            return false;
        }
    }
    world_check_logs(world);
    return !sim_disk_crashed();
}

void world_close(struct world *world, bool clean)
{
    if (world->journal != NULL) {
        sim_clock_pass(clean ? 1000 : 0);
        while (clean && journal_run_once(world->journal, clock_monotonic_ms())) {
            /* until it is sealed, or full */
        }
        world->frames_before = world_frames(world);
        world->last_frame = world->frames_before;
        if (clean) {
            journal_close(world->journal);
        } else {
            journal_abandon(world->journal);
        }
    }
    world->journal = NULL;
    world->open = false;
    log_writer_stop(world->writer);
    log_shard_drain(world->shard);
    for (unsigned group = 0; group < GROUPS; group++) {
        for (unsigned i = 0; i < PARTITIONS; i++) {
            if (world->groups[group].partitions[i].log != NULL) {
                partition_log_close(world->groups[group].partitions[i].log);
                world->groups[group].partitions[i].log = NULL;
            }
        }
    }
    log_shard_free(world->shard);
    log_writer_free(world->writer);
    if (world->dir != NULL) {
        log_dir_close(world->dir);
        world->dir = NULL;
    }
}

void world_start(struct world *world, uint64_t seed)
{
    *world = (struct world){.seed = seed, .random = seed, .record_count = 1};
    world->records = calloc(64, sizeof *world->records);
    world->record_capacity = 64;
    sim_disk_reset(seed + 1);
    sim_clock_reset(seed + 2);
    world->log_settings = log_settings_default();
    world->log_settings.segment_bytes = 3000 + (int64_t)world_random(world, 30000);
    world->log_settings.index_interval_bytes = 200 + (int64_t)world_random(world, 2000);
    world->log_settings.file_delete_delay_ms = (int64_t)world_random(world, 2000);
    world->journal_settings = (struct journal_settings){.file_bytes = 128 * 1024,
        .size_bytes = 128 * 1024 * (3 + world_random(world, 12)),
        .flush = world_random(world, 5) == 0 ? JOURNAL_FLUSH_INTERVAL : JOURNAL_FLUSH_DURABLE,
        .flush_interval_ms = 500, .seal_after_ms = 100};
}

void world_finish(struct world *world)
{
    for (unsigned group = 0; group < GROUPS; group++) {
        free(world->groups[group].live);
        for (unsigned i = 0; i < PARTITIONS; i++) {
            free(world->groups[group].partitions[i].serials);
        }
    }
    free(world->records);
}
