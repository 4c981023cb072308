/* Start and stop of the process.
 *
 * Start: the configuration is read, the ports are bound (so that a taken port is said at once), the
 * data directory is locked, the journal is replayed into memory, the shards run, the metadata log
 * brings the topics, and when every partition group leads, connections are taken. Stop: connections
 * close, what is dirty is checkpointed for at most a second and a half, the threads end.
 */
#include "broker/server/broker.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/api/controller_call.h"
#include "broker/api/group_moves.h"
#include "broker/api/parking.h"
#include "broker/api/fetch_session.h"
#include "broker/api/producer_ids.h"
#include "broker/config/cordon.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/cluster.h"
#include "broker/server/departure.h"
#include "broker/server/first_start.h"
#include "broker/server/guard.h"
#include "broker/server/metadata_log.h"
#include "broker/server/registration.h"
#include "broker/server/storage_watch.h"
#include "io/clock.h"
#include "io/random.h"

enum {
    ARENA_BYTES = 1024 * 1024,
    STOP_DEADLINE_MS = 1500,
    CHECKPOINTS_MS = 800,        /* of it, at least */
    RETURN_MS = 100,             /* clients may come back once */
    DEFAULT_QUEUED_BYTES = 512 * 1024 * 1024,
    HOST_NAME_BYTES = 256,
};

static void begin_stop(struct shard *shard)
{
    assert(!shard->stop_begun);
    atomic_store(&shard->broker->closing, true);
    if (shard->number == 0) {
        for (int i = 0; i < shard->broker->acceptor_count; i++) {
            acceptor_close(shard->broker->acceptors[i]);
        }
        shard->broker->acceptor_count = 0;
    }
    connections_close_all(shard);
    controller_calls_end(shard);
    if (shard->replicas != NULL) {
        replicas_checkpoint_all(shard->replicas);
    }
    shard->stop_begun = true;
}

static void stop_asked(struct shard *shard, struct mail *mail)
{
    (void)mail;
    shard->stop_asked = true;
    if (shard->broker->in_cluster && shard->replicas != NULL) {
        shard->handing_over = true;
        replicas_hand_over(shard->replicas);
        if (shard->number == 0) {
            departure_begin(shard->broker);
        }
    } else {
        begin_stop(shard);
    }
}

/* Clients look for the new leaders when their connection ends, if they have one to another node. If
 * not, they make one then, and come back here meanwhile: so connections end twice. Returns whether
 * all clients are gone for good. */
static bool send_away(struct shard *shard, uint64_t now_ms)
{
    assert(shard->stop_asked && !shard->stop_begun);
    if (shard->drain_ms == 0) {
        shard->drain_ms = now_ms;
        connections_drain(shard, false);
        return false;
    }
    return now_ms - shard->drain_ms >= RETURN_MS && connections_drain(shard, true);
}

/* In a cluster others lead first, so that clients find them and not a closed door. Connections are
 * kept until no shard has anything to hand over: the other nodes need all of them. Then those of
 * clients end, between two requests, while what still comes is passed on (produce_forward.h). */
static void hand_over_tick(struct shard *shard, uint64_t now_ms)
{
    struct broker *broker = shard->broker;
    bool is_late = now_ms + CHECKPOINTS_MS >= atomic_load(&broker->stop_deadline_ms);
    if (shard->handing_over && !replicas_may_hand_over(shard->replicas)) {
        shard->handing_over = false;
        atomic_fetch_sub(&broker->handing_over, 1);
    } else if (shard->handing_over) {
        replicas_hand_over(shard->replicas);
    }
    if (shard->number == 0) {
        departure_tick(broker);
    }
    bool is_led = atomic_load(&broker->handing_over) == 0;
    if (is_late || (is_led && send_away(shard, now_ms))) {
        begin_stop(shard);
    }
}

/* A stop under way takes its next step. */
static void stop_tick(struct shard *shard, uint64_t now_ms)
{
    if (shard->stop_asked && !shard->stop_begun) {
        hand_over_tick(shard, now_ms);
    }
    if (shard->stop_begun &&
        (shard->replicas->checkpoints_pending == 0 ||
         now_ms >= atomic_load(&shard->broker->stop_deadline_ms))) {
        shard_stop(shard);
    }
}

static void shard_tick(struct shard *shard)
{
    uint64_t now_ms = clock_monotonic_ms();
    connections_tick(shard, now_ms);
    replicas_tick(shard->replicas, now_ms);
    group_moves_tell(shard, now_ms);
    peers_tick(shard, now_ms);
    if (shard->number == 0) {
        metadata_log_tick(shard->broker, now_ms);
    }
    stop_tick(shard, now_ms);
}

static enum status resolve_listeners(struct broker *broker)
{
    char host_name[HOST_NAME_BYTES] = "localhost";
    gethostname(host_name, sizeof host_name - 1);
    struct view why = VIEW_NULL;
    enum status status =
        listeners_resolve(broker->config, host_name, &broker->arena, &broker->listeners, &why);
    if (status != STATUS_OK) {
        log_error("config", "%.*s", VIEW_PRINT(why));
    }
    return status;
}

static enum status open_acceptors(struct broker *broker)
{
    for (int i = 0; i < broker->listeners.count; i++) {
        struct listener *listener = &broker->listeners.items[i];
        if (listener->is_controller && !broker->in_cluster) {
            continue; /* a node that stands alone has nobody to meet there */
        }
        enum status status =
            acceptor_open(broker, listener, &broker->acceptors[broker->acceptor_count]);
        if (status != STATUS_OK) {
            return status;
        }
        broker->acceptor_count++;
    }
    return STATUS_OK;
}

/* What this node says of itself to the others and, standing alone, to itself. */
static void describe_self(struct broker *broker)
{
    const struct listeners *listeners = &broker->listeners;
    struct cluster_endpoint *endpoints =
        arena_take(&broker->arena, (size_t)listeners->count + 1, sizeof *endpoints);
    bool is_cordoned = cordon_is_configured(broker->config);
    assert(endpoints != NULL);
    broker->self = (struct cluster_broker){.id = broker->node_id,
                                           .incarnation = random_uuid(),
                                           .rack = view_text(broker->rack),
                                           .is_cordoned = is_cordoned,
                                           .is_cordoned_itself = is_cordoned,
                                           .endpoints = endpoints};
    for (int i = 0; i < listeners->count; i++) {
        const struct listener *listener = &listeners->items[i];
        if (!listener->is_controller) {
            endpoints[broker->self.endpoint_count++] = (struct cluster_endpoint){
                .name = listener->name,
                .host = listener->advertised_host,
                .port = listener->advertised_port != 0 ? listener->advertised_port : listener->port,
                .security_protocol = (int16_t)listener->protocol};
        }
    }
}

/* 0 where none is asked for: Kafka's own default is smaller than what the system gives. */
static int buffer_bytes(const struct config *config, enum config_key key)
{
    int bytes = config_int(config, key);
    return config_origin(config, key) == CONFIG_ORIGIN_DEFAULT || bytes < 0 ? 0 : bytes;
}

static void read_limits(struct broker *broker)
{
    const struct config *config = broker->config;
    int64_t queued = config_long(config, CONFIG_QUEUED_MAX_REQUEST_BYTES);
    broker->connection_limits = (struct connection_limits){
        .max_frame_bytes = (size_t)config_int(config, CONFIG_SOCKET_REQUEST_MAX_BYTES),
        .max_queued_bytes = queued > 0 ? (size_t)queued : DEFAULT_QUEUED_BYTES,
        .max_idle_ms = (uint64_t)config_long(config, CONFIG_CONNECTIONS_MAX_IDLE_MS),
        .receive_buffer_bytes = buffer_bytes(config, CONFIG_SOCKET_RECEIVE_BUFFER_BYTES),
        .send_buffer_bytes = buffer_bytes(config, CONFIG_SOCKET_SEND_BUFFER_BYTES),
    };
    connection_register_init(&broker->connection_register,
                             (uint32_t)config_int(config, CONFIG_MAX_CONNECTIONS),
                             (uint32_t)config_int(config, CONFIG_MAX_CONNECTIONS_PER_IP));
}

static enum status open_directory(struct broker *broker)
{
    uint32_t count;
    const struct view *paths = config_data_directories(broker->config, &count);
    if (count > 1) {
        log_warn("storage", "log.dirs names %u directories; the first one, %.*s, is used", count,
                 VIEW_PRINT(paths[0]));
    }
    char *path = view_copy_text(paths[0]);
    struct log_dir_settings settings = {
        .path = path,
        .node_id = broker->node_id,
        .cluster_id = config_string(broker->config, CONFIG_CLUSTER_ID),
        .has_peers = broker->in_cluster,
    };
    enum status status = cluster_check_id(broker, path);
    if (status == STATUS_OK) {
        status = log_dir_open(&settings, &broker->log_dir);
    }
    free(path);
    if (status == STATUS_OK) {
        broker->cluster_id = log_dir_identity(broker->log_dir)->cluster_id;
    }
    return status;
}

static enum status open_journal(struct broker *broker)
{
    const char *policy = config_string(broker->config, CONFIG_FLUSH_POLICY);
    bool durable = strcmp(policy, "durable") == 0;
    int64_t interval_ms = config_long(broker->config, CONFIG_LOG_FLUSH_SCHEDULER_INTERVAL_MS);
    struct journal_settings settings = {
        .directory = log_dir_journal_path(broker->log_dir),
        .file_bytes = (uint64_t)config_long(broker->config, CONFIG_JOURNAL_FILE_BYTES),
        .size_bytes = (uint64_t)config_long(broker->config, CONFIG_JOURNAL_SIZE_BYTES),
        .flush = durable ? JOURNAL_FLUSH_DURABLE : JOURNAL_FLUSH_INTERVAL,
        .flush_interval_ms =
            interval_ms > 0 && interval_ms < UINT32_MAX ? (uint32_t)interval_ms : 1000,
        .threaded = broker->threaded,
    };
    if (!durable) {
        log_warn("storage", "flush.policy=%s: records are acknowledged before they are on the "
                 "disk; a power loss may lose them", policy);
    }
    const struct journal_handler handler = storage_watch_handler(broker);
    return journal_open(&settings, &handler, &broker->journal);
}

static int count_shards(const struct config *config)
{
    int count = config_int(config, CONFIG_OTTLA_SHARDS);
    if (count == 0) {
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    }
    return count < 1 ? 1 : count > SHARDS_MAX ? SHARDS_MAX : count;
}

static enum status open_shards(struct broker *broker)
{
    unsigned session_slots =
        (unsigned)config_int(broker->config, CONFIG_MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS);
    for (int i = 0; i < broker->shard_count; i++) {
        struct shard *shard = &broker->shards[i];
        enum status status = shard_open(shard, i, broker, shard_tick);
        if (status != STATUS_OK) {
            log_error("net", "an event loop cannot be made: %s. Raise the limit of open files",
                      status_text(status));
            return status;
        }
        shard->connections = memory_new_zero(1, sizeof *shard->connections);
        connections_init(shard->connections);
        shard->producer_ids = memory_new_zero(1, sizeof *shard->producer_ids);
        producer_ids_init(shard->producer_ids);
        controller_calls_open(shard);
        shard->sessions = memory_new_zero(1, sizeof *shard->sessions);
        fetch_sessions_init(shard->sessions,
                            session_slots / (unsigned)broker->shard_count + 1);
    }
    return STATUS_OK;
}

static void open_replicas(struct broker *broker)
{
    struct log_writer_settings settings = storage_watch_writer(broker);
    settings.threaded = broker->threaded;
    broker->writer = log_writer_new(&settings);
    for (int i = 0; i < broker->shard_count; i++) {
        struct shard *shard = &broker->shards[i];
        shard->replicas = memory_new_zero(1, sizeof *shard->replicas);
        replicas_open(shard->replicas, shard, broker->writer, broker->journal);
    }
}

static enum status start_shards(struct broker *broker)
{
    for (int i = 0; i < broker->shard_count; i++) {
        enum status status = shard_start(&broker->shards[i]);
        if (status != STATUS_OK) {
            log_error("net", "a thread cannot be started: %s", status_text(status));
            return status;
        }
    }
    return STATUS_OK;
}

/* On shard 0, or before it runs. */
static void start_accepting(struct broker *broker)
{
    for (int i = 0; i < broker->acceptor_count && !broker->accepting; i++) {
        acceptor_start(broker->acceptors[i]);
    }
    broker->accepting = true;
}

static void serve_parked(struct shard *shard, struct mail *mail)
{
    free(mail);
    parking_end(shard);
}

/* On shard 0: clients may come, and those that came are served. */
void broker_ready(struct broker *broker)
{
    assert(!atomic_load(&broker->serving));
    atomic_store(&broker->serving, true);
    for (int i = 0; i < broker->shard_count && broker->in_cluster; i++) {
        struct mail *mail = memory_new_zero(1, sizeof *mail);
        mail->run = serve_parked;
        shard_post(&broker->shards[i], mail);
    }
    start_accepting(broker);
    for (int i = 0; i < broker->listeners.count; i++) {
        const struct listener *listener = &broker->listeners.items[i];
        if (!listener->is_controller) {
            log_info("server", "listening on port %u as %.*s, known to clients as %.*s:%u",
                     listener->port, VIEW_PRINT(listener->name),
                     VIEW_PRINT(listener->advertised_host),
                     listener->advertised_port != 0 ? listener->advertised_port : listener->port);
        }
    }
    log_info("server", "ready after %" PRIu64 " ms: node %d of cluster %s, data in %s",
             (clock_monotonic_ns() - broker->started_ns) / 1000000, broker->node_id,
             broker->cluster_id, log_dir_path(broker->log_dir));
}

void broker_opened(struct broker *broker)
{
    journal_running(broker->journal);
    if (broker->registration == NULL) {
        broker_ready(broker);
    }
}

/* Until nothing is left to be run: the last answers, the ends of operations. */
static void drain_shards(struct broker *broker)
{
    bool any = true;
    while (any) {
        any = false;
        for (int i = 0; i < broker->shard_count; i++) {
            any |= shard_run_pending(&broker->shards[i]);
        }
    }
}

void broker_stop(struct broker *broker)
{
    struct mail stops[SHARDS_MAX];
    assert(broker->shard_count <= SHARDS_MAX);
    atomic_store(&broker->stop_deadline_ms, clock_monotonic_ms() + STOP_DEADLINE_MS);
    atomic_store(&broker->handing_over, broker->shard_count + 1); /* and the departure */
    atomic_store(&broker->stopping, true);
    for (int i = 0; i < broker->shard_count; i++) {
        stops[i].run = stop_asked;
        shard_post(&broker->shards[i], &stops[i]);
    }
    for (int i = 0; i < broker->shard_count; i++) {
        shard_join(&broker->shards[i]);
    }
    atomic_store(&broker->closing, true);
    drain_shards(broker); /* shards that never ran still have their mail */
}

static void close_shards(struct broker *broker)
{
    for (int i = 0; i < broker->shard_count; i++) {
        if (broker->shards[i].controller_calls != NULL) {
            connections_close_all(&broker->shards[i]); /* requests that wait let go */
            controller_calls_end(&broker->shards[i]);
        }
    }
    drain_shards(broker);
    for (int i = 0; i < broker->shard_count; i++) {
        if (broker->shards[i].replicas != NULL) {
            replicas_close_groups(broker->shards[i].replicas);
        }
    }
    cluster_close_links(broker); /* groups that still live would send */
    drain_shards(broker);
    for (int i = 0; i < broker->shard_count; i++) {
        struct shard *shard = &broker->shards[i];
        if (shard->base == NULL) {
            continue;
        }
        if (shard->replicas != NULL) {
            replicas_close(shard->replicas);
        }
        fetch_sessions_free(shard->sessions);
        controller_calls_close(shard);
        producer_ids_free(shard->producer_ids);
        shard_close(shard);
        free(shard->replicas);
        free(shard->sessions);
        free(shard->producer_ids);
        connections_free(shard->connections);
    }
    free(broker->shards);
}

void broker_free(struct broker *broker)
{
    guard_end(broker->guard);
    for (int i = 0; i < broker->acceptor_count; i++) {
        acceptor_close(broker->acceptors[i]);
    }
    if (broker->journal != NULL && journal_status(broker->journal) == STATUS_OK) {
        journal_close(broker->journal);
    } else if (broker->journal != NULL) {
        journal_abandon(broker->journal);
    }
    for (int i = 0; i < broker->shard_count; i++) {
        if (broker->shards[i].replicas != NULL) {
            broker->shards[i].replicas->journal = NULL;
        }
    }
    if (broker->writer != NULL) {
        log_writer_stop(broker->writer);
    }
    close_shards(broker);
    metadata_log_free(broker->metadata);
    registration_free(broker->registration);
    departure_free(broker->departure);
    if (broker->writer != NULL) {
        log_writer_free(broker->writer);
    }
    if (broker->log_dir != NULL) {
        log_dir_close(broker->log_dir);
    }
    boot_free(&broker->boot);
    connection_register_free(&broker->connection_register);
    directory_free(&broker->directory);
    arena_free(&broker->arena);
    free(broker);
}

struct broker *broker_new(const struct config *config, bool threaded)
{
    struct broker *broker = memory_new_zero(1, sizeof *broker);
    broker->started_ns = clock_monotonic_ns();
    broker->config = config;
    broker->threaded = threaded;
    broker->node_id = config_int(config, CONFIG_NODE_ID);
    broker->rack = config_string(config, CONFIG_BROKER_RACK);
    arena_init(&broker->arena, ARENA_BYTES);
    liveness_init(&broker->liveness);
    broker->shard_count = count_shards(config);
    broker->shards = memory_new_zero((size_t)broker->shard_count, sizeof *broker->shards);
    assert(broker->shard_count >= 1 && broker->shard_count <= SHARDS_MAX);
    return broker;
}

/* Where nothing was served yet there is nothing to wait with: whoever starts it has to know. */
static void explain(const struct broker *broker, enum status status)
{
    uint32_t count;
    const struct view *paths = config_data_directories(broker->config, &count);
    assert(count > 0);
    if (status == STATUS_NO_SPACE || status == STATUS_READ_ONLY) {
        log_error("storage", "the broker cannot begin in %.*s: %s. %s and start it again",
                  VIEW_PRINT(paths[0]), status_text(status),
                  status == STATUS_NO_SPACE ? "Free some space (its journal alone takes up to "
                                              "journal.size.bytes)"
                                            : "Mount the file system writable");
    }
}

static enum status open_storage(struct broker *broker)
{
    enum status status = open_directory(broker);
    if (status == STATUS_OK) {
        status = cluster_find_voters(broker);
    }
    if (status == STATUS_OK) {
        status = open_journal(broker);
    }
    explain(broker, status);
    return status;
}

/* Others can lead while this process is stopped. */
static void start_guard(struct broker *broker)
{
    int32_t patience_ms = config_int(broker->config, CONFIG_OTTLA_STOPPED_DISCONNECT_MS);
    if (broker->threaded && broker->in_cluster && patience_ms > 0) {
        broker->guard = guard_start((uint32_t)patience_ms);
    }
}

enum status broker_open(struct broker *broker)
{
    enum status status = resolve_listeners(broker);
    if (status != STATUS_OK) {
        return status;
    }
    status = cluster_read_voters(broker);
    if (status != STATUS_OK) {
        return status;
    }
    start_guard(broker);
    read_limits(broker);
    status = open_shards(broker);
    if (status == STATUS_OK) {
        status = open_acceptors(broker);
    }
    if (status == STATUS_OK) {
        status = open_storage(broker);
    }
    if (status == STATUS_OK) {
        describe_self(broker);
        first_start_open(broker);
        open_replicas(broker);
        metadata_log_start(broker);
        cluster_open_links(broker);
        if (broker->in_cluster && config_has_role(broker->config, "broker")) {
            registration_start(broker);
        }
        if (broker->in_cluster) {
            start_accepting(broker); /* the others come in, before this node is ready for clients */
        }
        status = start_shards(broker);
    }
    return status;
}
