/* The join of coordinators (pure machines) with their partitions: appending, loading, timers. */
#include "broker/group/offsets_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/topic_image.h"
#include "broker/group/log_reader.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/group/unread.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "io/random.h"
#include "protocol/api_table.h"
#include "protocol/records.h"

enum { LOAD_STEP_BYTES = 256 * 1024, LONGEST_WAIT_MS = 1000, CLOCK_JUMP_MS = 500 };

enum coordinator_state { COORDINATOR_IDLE, COORDINATOR_LOADING, COORDINATOR_READY };

/* One partition's coordinator. */
struct offsets_partition {
    struct shard *shard;
    struct partition *partition;
    struct coordinator *coordinator;
    struct log_reader reader;        /* while loading */
    struct shard_task load;
    struct shard_timer again;        /* while it could not be read */
    enum coordinator_state state;
    unsigned appends;                /* that will come back */
    bool closed;                     /* freed when the last one has */
};

/* The machine state of a group. */
struct offsets_group {
    struct list_link link;           /* in the shard's offsets groups */
    struct shard *shard;
    struct offsets_partition **partitions; /* as the group's, once it has led */
    int32_t count;
};

/* A batch of the coordinator's on its way into the log. */
struct coordinator_append {
    struct append append;
    struct mail mail;                /* when it ends inside the coordinator's own call */
    struct offsets_partition *owner;
    uint64_t batch_id;
    bool inside;                     /* still inside host_append */
};

int32_t offsets_partition_for(struct view group_id, int32_t partition_count)
{
    assert(partition_count > 0);
    uint32_t hash = 0;
    size_t i = 0;
    while (i < group_id.length) {
        /* Java hashes UTF-16 units. */
        uint32_t code = group_id.data[i];
        size_t extra = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : code >= 0xc0 ? 1 : 0;
        code = extra == 0 ? code : code & (0x3fu >> extra);
        for (i++; extra > 0 && i < group_id.length; extra--, i++) {
            code = code << 6 | (group_id.data[i] & 0x3fu);
        }
        if (code >= 0x10000) {
            hash = hash * 31 + (0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        hash = hash * 31 + code;
    }
    return (int32_t)((hash & 0x7fffffff) % (uint32_t)partition_count);
}

/* The wall clock, as records carry it. When it was set, the deadlines of all coordinators move with
 * it: what has a minute left still has a minute left. */
static int64_t now_of(struct shard *shard)
{
    struct replicas *replicas = shard->replicas;
    int64_t wall_ms = clock_wall_ms();
    int64_t ahead_ms = wall_ms - (int64_t)clock_monotonic_ms();
    int64_t moved_ms = ahead_ms - replicas->wall_ahead_ms;
    if (moved_ms > -CLOCK_JUMP_MS && moved_ms < CLOCK_JUMP_MS) {
        return wall_ms;
    }
    replicas->wall_ahead_ms = ahead_ms;
    replicas->offsets_deadline_ms = INT64_MAX;
    struct list_link *link = list_first(&replicas->offsets_groups);
    for (; link != NULL; link = list_next(&replicas->offsets_groups, link)) {
        struct offsets_group *state = container_of(link, struct offsets_group, link);
        for (int32_t i = 0; i < state->count; i++) {
            if (state->partitions[i]->state == COORDINATOR_READY) {
                coordinator_clock_set(state->partitions[i]->coordinator, moved_ms);
            }
        }
    }
    return wall_ms;
}

/* The shard's timer goes off at the earliest deadline of all its coordinators. */
static void watch_deadline(struct offsets_partition *owner)
{
    struct replicas *replicas = owner->shard->replicas;
    if (owner->state != COORDINATOR_READY) {
        return;
    }
    int64_t deadline_ms = coordinator_next_deadline_ms(owner->coordinator);
    if (deadline_ms >= replicas->offsets_deadline_ms || deadline_ms == INT64_MAX) {
        return;
    }
    int64_t wait_ms = deadline_ms - clock_wall_ms();
    /* A far deadline is looked at again on the way: the wall clock may be set. */
    wait_ms = wait_ms < 0 ? 0 : wait_ms > LONGEST_WAIT_MS ? LONGEST_WAIT_MS : wait_ms;
    replicas->offsets_deadline_ms = deadline_ms;
    shard_timer_set(owner->shard, &replicas->offsets_timer, (uint64_t)wait_ms);
}

static void release(struct offsets_partition *owner)
{
    if (owner->closed && owner->appends == 0) {
        free(owner);
    }
}

static void tell_coordinator(struct coordinator_append *append)
{
    struct offsets_partition *owner = append->owner;
    if (owner->state == COORDINATOR_READY) {
        int64_t now_ms = now_of(owner->shard);
        if (append->append.error == KAFKA_NONE) {
            coordinator_committed(owner->coordinator, append->batch_id, now_ms);
        } else {
            coordinator_failed(owner->coordinator, append->batch_id,
                               (enum kafka_error)append->append.error, now_ms);
        }
        watch_deadline(owner);
    }
    block_unref(append->append.payload.block);
    free(append);
    assert(owner->appends > 0);
    owner->appends--;
    release(owner);
}

static void tell_later(struct shard *shard, struct mail *mail)
{
    (void)shard;
    tell_coordinator(container_of(mail, struct coordinator_append, mail));
}

static void append_done(struct append *base)
{
    struct coordinator_append *append = container_of(base, struct coordinator_append, append);
    if (append->inside) {
        append->mail.run = tell_later;
        shard_post(append->owner->shard, &append->mail);
    } else {
        tell_coordinator(append);
    }
}

static struct slice build_payload(const struct coordinator_batch *batch)
{
    struct batch_builder builder;
    struct buffer bytes = {0};
    int64_t now_ms = clock_wall_ms();
    batch_builder_start(&builder);
    for (size_t i = 0; i < batch->count; i++) {
        batch_builder_add(&builder, now_ms, batch->records[i].key, batch->records[i].value, NULL,
                          0);
    }
    buffer_extend(&bytes, GROUP_PAYLOAD_PREFIX);
    batch_builder_finish(&builder, 0, &bytes);
    struct block *block = block_copy(buffer_view(&bytes));
    buffer_free(&bytes);
    return slice_of(block, 0, block->capacity);
}

static void host_append(void *context, const struct coordinator_batch *batch)
{
    struct offsets_partition *owner = context;
    struct coordinator_append *append = memory_new_zero(1, sizeof *append);
    assert(owner->state == COORDINATOR_READY);
    append->owner = owner;
    owner->appends++;
    append->batch_id = batch->id;
    append->append.payload = build_payload(batch);
    append->append.done = append_done;
    append->inside = true;
    partition_append(owner->partition, &append->append);
    append->inside = false;
}

static void host_answer(void *context, void *token, enum api_key api, const void *response)
{
    (void)context;
    struct coordinator_call *call = token;
    call->answered(call, api, response);
}

static enum kafka_error host_find_topic(void *context, void *token, enum api_key api,
                                        struct view name, struct uuid id,
                                        struct coordinator_topic *found)
{
    (void)api;
    struct offsets_partition *owner = context;
    struct coordinator_call *call = token;
    struct replicas *replicas = owner->shard->replicas;
    struct topic_image *topic = name.data != NULL ? replicas_topic(replicas, name)
                                                  : replicas_topic_by_id(replicas, id);
    if (topic == NULL) {
        return name.data != NULL ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION : KAFKA_UNKNOWN_TOPIC_ID;
    }
    found->name = arena_copy(call->arena, topic->name);
    found->id = topic->id;
    found->partition_count = topic->partition_count;
    return KAFKA_NONE;
}

static struct uuid host_new_uuid(void *context)
{
    (void)context;
    return random_uuid();
}

static struct coordinator_config read_config(const struct config *config)
{
    struct coordinator_config out;
    coordinator_config_init(&out);
    out.min_session_timeout_ms = config_int(config, CONFIG_GROUP_MIN_SESSION_TIMEOUT_MS);
    out.max_session_timeout_ms = config_int(config, CONFIG_GROUP_MAX_SESSION_TIMEOUT_MS);
    out.initial_rebalance_delay_ms = config_int(config, CONFIG_GROUP_INITIAL_REBALANCE_DELAY_MS);
    out.group_max_size = config_int(config, CONFIG_GROUP_MAX_SIZE);
    out.offset_metadata_max_bytes = config_int(config, CONFIG_OFFSET_METADATA_MAX_BYTES);
    out.offsets_retention_ms = config_long(config, CONFIG_OFFSETS_RETENTION_MINUTES) * 60000;
    out.offsets_retention_check_interval_ms =
        config_long(config, CONFIG_OFFSETS_RETENTION_CHECK_INTERVAL_MS);
    return out;
}

static void end(struct offsets_partition *owner);
static void begin(struct offsets_partition *owner);

static void load_again(struct shard_timer *timer)
{
    struct offsets_partition *owner = container_of(timer, struct offsets_partition, again);
    assert(owner->state == COORDINATOR_IDLE && owner->partition->group->leads);
    begin(owner);
}

/* Another replica shall lead, or it is tried again. */
static void not_loaded(struct offsets_partition *owner, enum status status)
{
    log_error("coordinator", "consumer offsets partition %d cannot be read: %s. Its groups are "
              "not served", owner->partition->number, status_text(status));
    assert(status != STATUS_OK && owner->state == COORDINATOR_LOADING);
    owner->state = COORDINATOR_IDLE;
    end(owner);
    assert(owner->coordinator == NULL);
    if (status == STATUS_IO && !planted(PLANT_UNREAD_STAYS)) {
        owner->again.run = load_again;
        shard_timer_set(owner->shard, &owner->again, UNREAD_EVERY_MS);
        unread_log(owner->partition->group, status);
    }
}

static void loaded(struct offsets_partition *owner, enum status status)
{
    log_reader_free(&owner->reader);
    if (status != STATUS_OK) {
        not_loaded(owner, status);
        return;
    }
    owner->state = COORDINATOR_READY;
    coordinator_loaded(owner->coordinator, now_of(owner->shard));
    watch_deadline(owner);
}

static void replay(void *context, const struct batch_header *header, const struct record *record)
{
    struct offsets_partition *owner = context;
    bool is_last = batch_last_offset(header) + 1 == partition_log_end(owner->partition->log);
    if (planted(PLANT_LOAD_LACKS_LAST) && is_last) {
        return;
    }
    coordinator_replay(owner->coordinator, record->key, record->value);
}

static void load_step(struct shard_task *task)
{
    struct offsets_partition *owner = container_of(task, struct offsets_partition, load);
    enum status status = log_reader_step(&owner->reader, LOAD_STEP_BYTES);
    if (status == STATUS_OK) {
        shard_background(owner->shard, &owner->load); /* others have their turn in between */
    } else {
        loaded(owner, status == STATUS_NOT_FOUND ? STATUS_OK : status);
    }
}

static void begin(struct offsets_partition *owner)
{
    const struct coordinator_host host = {
        .owner = owner,
        .append = host_append,
        .answer = host_answer,
        .find_topic = host_find_topic,
        .new_uuid = host_new_uuid,
    };
    struct coordinator_config config = read_config(owner->shard->broker->config);
    owner->coordinator = coordinator_new(&config, &host);
    assert(owner->state == COORDINATOR_IDLE);
    owner->state = COORDINATOR_LOADING;
    log_reader_start(&owner->reader, owner->partition->log, replay, owner);
    owner->load.run = load_step;
    shard_background(owner->shard, &owner->load);
}

static void end(struct offsets_partition *owner)
{
    if (owner->again.set) {
        shard_timer_stop(&owner->again);
    }
    if (owner->state == COORDINATOR_LOADING) {
        log_reader_free(&owner->reader);
        list_remove(&owner->load.link);
    }
    if (owner->coordinator != NULL) {
        coordinator_resign(owner->coordinator);
        coordinator_free(owner->coordinator);
        owner->coordinator = NULL;
    }
    owner->state = COORDINATOR_IDLE;
}

/* Coordinators for the partitions that have none: all of them, or those that are new. */
static void begin_all(struct group *group)
{
    struct offsets_group *state = group->machine_state;
    if (state->count < group->partition_count) {
        state->partitions = memory_resize(state->partitions, (size_t)group->partition_count,
                                          sizeof *state->partitions);
    }
    while (state->count < group->partition_count) {
        struct offsets_partition *owner = memory_new_zero(1, sizeof *owner);
        owner->shard = group->shard;
        owner->partition = group->partitions[state->count];
        state->partitions[state->count++] = owner;
    }
    for (int32_t i = 0; i < state->count; i++) {
        if (state->partitions[i]->state == COORDINATOR_IDLE && !state->partitions[i]->again.set) {
            begin(state->partitions[i]);
        }
    }
}

static void group_led(struct group *group, bool leads)
{
    struct offsets_group *state = group->machine_state;
    if (leads) {
        begin_all(group);
        return;
    }
    for (int32_t i = 0; i < state->count && !planted(PLANT_COORDINATOR_KEPT); i++) {
        end(state->partitions[i]);
    }
}

static void group_grown(struct group *group)
{
    if (group->leads) {
        begin_all(group);
    }
}

static void group_applied(struct group *group, struct partition *partition, struct view batch)
{
    /* The leader's coordinator hears of its own batches by their appends; one that does not lead
     * has no coordinator: it reads the log when it begins to lead. */
    (void)group;
    (void)partition;
    (void)batch;
}

static void group_closed(struct group *group)
{
    struct offsets_group *state = group->machine_state;
    for (int32_t i = 0; i < state->count; i++) {
        end(state->partitions[i]);
        state->partitions[i]->closed = true;
        release(state->partitions[i]);
    }
    list_remove(&state->link);
    free(state->partitions);
    free(state);
    group->machine_state = NULL;
}

static const struct group_machine offsets_machine = {
    .applied = group_applied,
    .led = group_led,
    .grown = group_grown,
    .close = group_closed,
};

void offsets_group_prepare(struct shard *shard, struct group_start *start)
{
    struct offsets_group *state = memory_new_zero(1, sizeof *state);
    state->shard = shard;
    list_push_back(&shard->replicas->offsets_groups, &state->link);
    start->machine = &offsets_machine;
    start->machine_state = state;
}

static struct offsets_partition *find(struct shard *shard, uint64_t group_id, int32_t partition)
{
    struct group *group = replicas_group(shard->replicas, group_id);
    if (group == NULL || group->machine != &offsets_machine) {
        return NULL;
    }
    struct offsets_group *state = group->machine_state;
    for (int32_t i = 0; i < state->count; i++) {
        if (state->partitions[i]->partition->number == partition) {
            return state->partitions[i];
        }
    }
    return NULL;
}

static void refuse(struct coordinator_call *call, enum kafka_error error)
{
    void *response = arena_take(call->arena, 1, api_find(call->api)->response->body->size_bytes);
    coordinator_refuse(call->api, call->context.version, call->request, error, call->arena,
                       response);
    call->answered(call, call->api, response);
}

static void run_call(struct coordinator_call *call)
{
    struct shard *shard = call->shard;
    struct offsets_partition *owner = find(shard, call->group_id, call->partition);
    struct coordinator_context full = call->context;
    full.token = call;
    full.arena = call->arena;
    full.now_ms = now_of(shard);
    if (owner != NULL && owner->state == COORDINATOR_READY) {
        if (coordinator_next_deadline_ms(owner->coordinator) <= full.now_ms) {
            /* What is due comes before what was asked later, however late the timer is. */
            coordinator_tick(owner->coordinator, full.now_ms);
        }
        coordinator_request(owner->coordinator, &full, call->api, call->request);
        watch_deadline(owner);
        return;
    }
    bool loading = owner != NULL && owner->state == COORDINATOR_LOADING;
    refuse(call, loading ? KAFKA_COORDINATOR_LOAD_IN_PROGRESS : KAFKA_NOT_COORDINATOR);
}

static void still_leads(struct confirm *confirm, bool leads)
{
    struct coordinator_call *call = container_of(confirm, struct coordinator_call, confirm);
    if (leads) {
        run_call(call);
    } else {
        refuse(call, KAFKA_NOT_COORDINATOR);
    }
}

void offsets_group_call(struct shard *shard, uint64_t group_id, int32_t partition,
                        const struct coordinator_context *context, enum api_key api,
                        const void *request, struct coordinator_call *call)
{
    struct group *group = replicas_group(shard->replicas, group_id);
    call->shard = shard;
    call->group_id = group_id;
    call->partition = partition;
    call->context = *context;
    call->request = request;
    call->api = api;
    if (api == API_OFFSET_FETCH && group != NULL) {
        /* Offsets that another coordinator has raised since must not be read back as they were. */
        call->confirm.done = still_leads;
        group_confirm(group, &call->confirm);
    } else {
        run_call(call);
    }
}

static void run_due(struct shard *shard, int64_t now_ms)
{
    struct list *groups = &shard->replicas->offsets_groups;
    struct list_link *link;
    for (link = list_first(groups); link != NULL; link = list_next(groups, link)) {
        struct offsets_group *state = container_of(link, struct offsets_group, link);
        for (int32_t i = 0; i < state->count; i++) {
            struct offsets_partition *owner = state->partitions[i];
            if (owner->state == COORDINATOR_READY &&
                coordinator_next_deadline_ms(owner->coordinator) <= now_ms) {
                coordinator_tick(owner->coordinator, now_ms);
            }
            watch_deadline(owner);
        }
    }
}

static void deadline_due(struct shard_timer *timer)
{
    struct shard *shard = timer->shard;
    shard->replicas->offsets_deadline_ms = INT64_MAX;
    run_due(shard, now_of(shard));
}

void offsets_groups_open(struct shard *shard)
{
    shard->replicas->offsets_timer.run = deadline_due;
    shard->replicas->offsets_deadline_ms = INT64_MAX;
    shard->replicas->wall_ahead_ms = clock_wall_ms() - (int64_t)clock_monotonic_ms();
}

void offsets_groups_close(struct shard *shard)
{
    shard_timer_stop(&shard->replicas->offsets_timer);
}

void offsets_groups_topic_deleted(struct shard *shard, const struct topic_image *topic)
{
    int64_t now_ms = now_of(shard);
    struct list *groups = &shard->replicas->offsets_groups;
    struct list_link *link;
    for (link = list_first(groups); link != NULL; link = list_next(groups, link)) {
        struct offsets_group *state = container_of(link, struct offsets_group, link);
        for (int32_t i = 0; i < state->count; i++) {
            if (state->partitions[i]->state == COORDINATOR_READY) {
                coordinator_topic_deleted(state->partitions[i]->coordinator, topic->name, topic->id,
                                          now_ms);
            }
        }
    }
}
