/* The classic consumer-group coordinator of one __consumer_offsets partition, as a step machine.
 *
 * It owns the groups, members, timers and committed offsets of its partition and knows no clock,
 * socket or file. In come decoded requests, ticks, and the fate of the records it emitted; out go
 * record batches for the partition's log and filled response structs, through `coordinator_host`.
 * The same inputs give the same outputs.
 *
 * State has two layers. The durable layer is a function of the committed records alone, so it is
 * equal on all replicas; a follower holds nothing else (coordinator_replay). The live layer
 * (rebalances, timers, parked answers) exists between coordinator_loaded and coordinator_resign,
 * is derived from the durable one and never decides what a record means.
 *
 * Happy path of a group: JoinGroup... -> all joined -> answers -> SyncGroup of the leader ->
 * append -> coordinator_committed -> SyncGroup answers. A failed append is answered with the error
 * and leaves the durable layer alone. Every request is answered exactly once, at once or later;
 * at coordinator_resign whatever is parked gets NOT_COORDINATOR.
 *
 * Behaviour follows Apache Kafka 4.4 (KIP-62 rebalance timeout, KIP-134 initial delay, KIP-345
 * static members, KIP-394 member ids, KIP-211 offset expiration, KIP-814 skipped assignments).
 */
#ifndef OTTLA_BROKER_COORDINATOR_COORDINATOR_H
#define OTTLA_BROKER_COORDINATOR_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/uuid.h"
#include "base/view.h"
#include "messages/api_keys.h"
#include "messages/errors.h"

struct coordinator;

/* The broker settings it obeys; names as in Kafka's configuration, given in milliseconds/bytes. */
struct coordinator_config {
    int32_t min_session_timeout_ms;           /* group.min.session.timeout.ms */
    int32_t max_session_timeout_ms;           /* group.max.session.timeout.ms */
    int32_t initial_rebalance_delay_ms;       /* group.initial.rebalance.delay.ms */
    int32_t group_max_size;                   /* group.max.size, members */
    int32_t offset_metadata_max_bytes;        /* offset.metadata.max.bytes */
    int64_t offsets_retention_ms;             /* offsets.retention.minutes */
    int64_t offsets_retention_check_interval_ms; /* offsets.retention.check.interval.ms */
};

/* Kafka's defaults. */
void coordinator_config_init(struct coordinator_config *config);

/* One record for __consumer_offsets. A null value (data == NULL) is a tombstone. */
struct coordinator_record {
    struct view key;
    struct view value;
};

/* Records that are appended together. Inside a transaction (TxnOffsetCommit) the batch carries the
 * producer and is transactional; else producer_id is -1. */
struct coordinator_batch {
    uint64_t id; /* counts up from 1 */
    const struct coordinator_record *records;
    size_t count; /* at least 1 */
    int64_t producer_id;
    int16_t producer_epoch;
};

/* What the caller's metadata knows of a topic. */
struct coordinator_topic {
    struct view name;
    struct uuid id;
    int32_t partition_count;
};

/* What the machine needs from its surroundings. None of these may call back into the machine. */
struct coordinator_host {
    void *owner; /* handed to each function */

    /* Append the batch to the partition as one atomic record batch, after all earlier ones. When it
     * is committed call coordinator_committed, when it never will be coordinator_failed, both
     * later, not from inside. The views live until then. */
    void (*append)(void *owner, const struct coordinator_batch *batch);

    /* The answer of the request that came with this token: the response struct of `api`. The struct
     * lives during the call; everything it points to lives as long as the request's arena. */
    void (*answer)(void *owner, void *token, enum api_key api, const void *response);

    /* Finds a topic by name, or by id when `name` is null, for the request with this token.
     * KAFKA_NONE and a filled `topic`; KAFKA_UNKNOWN_TOPIC_OR_PARTITION (by name) or
     * KAFKA_UNKNOWN_TOPIC_ID (by id); KAFKA_TOPIC_AUTHORIZATION_FAILED when the client may not.
     * The name must live as long as the request's arena. */
    enum kafka_error (*find_topic)(void *owner, void *token, enum api_key api, struct view name,
                                   struct uuid id, struct coordinator_topic *topic);

    /* A fresh random id, for member ids. */
    struct uuid (*new_uuid)(void *owner);
};

/* Who asks, when, and where the answer's memory comes from. */
struct coordinator_context {
    int64_t now_ms;
    int16_t version;         /* of the request */
    struct view client_id;
    struct view client_host; /* as Kafka stores it: "/127.0.0.1" */
    void *token;             /* opaque, given back with the answer */
    struct arena *arena;     /* the request's own; alive until the answer was given */
};

/* A follower's machine: it replays and answers nothing. `config` and `host` are copied. */
struct coordinator *coordinator_new(const struct coordinator_config *config,
                                    const struct coordinator_host *host);

/* Releases everything. The machine must not be active. Null is allowed. */
void coordinator_free(struct coordinator *coordinator);

/* Changes the settings; timers that run keep their deadlines. */
void coordinator_configure(struct coordinator *coordinator,
                           const struct coordinator_config *config);

/* Applies one committed record of the log, in log order, while not active. Records of types that
 * the classic protocol does not use, and records that cannot be decoded, are passed over. */
void coordinator_replay(struct coordinator *coordinator, struct view key, struct view value);

/* Replay of a record inside a transactional batch: it counts once the marker of the producer
 * commits it. */
void coordinator_replay_transactional(struct coordinator *coordinator, int64_t producer_id,
                                      struct view key, struct view value);

/* A transaction marker of this producer was committed to the partition, while active or not. */
void coordinator_replay_marker(struct coordinator *coordinator, int64_t producer_id, bool commit);

/* Everything committed was replayed and this replica leads: live groups are made, session
 * timers of their members start. From here on requests are served. */
void coordinator_loaded(struct coordinator *coordinator, int64_t now_ms);

/* This replica leads no more: every parked answer is given with NOT_COORDINATOR, batches whose
 * fate is open are forgotten (if they are committed after all they come as replays), the live
 * layer is dropped. No-op when not active. */
void coordinator_resign(struct coordinator *coordinator);

/* Whether the machine serves requests (between loaded and resign). */
bool coordinator_is_active(const struct coordinator *coordinator);

/* Whether this API is answered here: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit,
 * TxnOffsetCommit, OffsetFetch, OffsetDelete, ListGroups, DescribeGroups, DeleteGroups. */
bool coordinator_serves(enum api_key api);

/* One request; `request` is the decoded struct of `api` in context->version and is not needed
 * after the call. The machine must be active: a caller whose partition still loads answers 14,
 * one that does not lead 16, through coordinator_refuse. Requests that name groups of several
 * partitions are split by the caller. */
void coordinator_request(struct coordinator *coordinator, const struct coordinator_context *context,
                         enum api_key api, const void *request);

/* Fills `response`, the response struct of `api`, so that it refuses the whole request with
 * `error`, in the place each API and version has for it (per group, member or partition). Memory
 * comes from the arena. For 14, 15, 16, 29, 30 and the like. */
void coordinator_refuse(enum api_key api, int16_t version, const void *request,
                        enum kafka_error error, struct arena *arena, void *response);

/* The batch was committed; batches are committed in the order they were appended. */
void coordinator_committed(struct coordinator *coordinator, uint64_t batch_id, int64_t now_ms);

/* The batch was refused or lost, with the error the append got. */
void coordinator_failed(struct coordinator *coordinator, uint64_t batch_id, enum kafka_error error,
                        int64_t now_ms);

/* The topic was deleted: its committed offsets get tombstones, as in the reference, so that a later
 * topic of this name starts without them. Offsets that were committed for another topic id stay.
 * No-op when not active. */
void coordinator_topic_deleted(struct coordinator *coordinator, struct view name, struct uuid id,
                               int64_t now_ms);

/* Runs the timers that are due. */
void coordinator_tick(struct coordinator *coordinator, int64_t now_ms);

/* The wall clock was set by so many milliseconds, forward or back: deadlines and the machine's idea
 * of the time move with it, so that no session ends early or late. */
void coordinator_clock_set(struct coordinator *coordinator, int64_t by_ms);

/* When the next timer is due, INT64_MAX when none runs. */
int64_t coordinator_next_deadline_ms(const struct coordinator *coordinator);

/* Sizes for metrics. Group states are counted while active only. */
struct coordinator_counts {
    size_t groups;
    size_t empty, preparing_rebalance, completing_rebalance, stable;
    size_t members;
    size_t offsets;
    uint64_t rebalances;      /* completed since coordinator_new */
    uint64_t expired_offsets; /* tombstoned by retention since coordinator_new */
};

/* Fills the sizes. */
void coordinator_count(const struct coordinator *coordinator, struct coordinator_counts *counts);

/* Appends the durable layer as text, one line for each group and offset, sorted: equal on all
 * replicas that applied the same records. */
void coordinator_dump_durable(const struct coordinator *coordinator, struct buffer *text);

/* Appends the live groups in the same notation, so that at rest (every group Empty or Stable and
 * no batch open) both dumps are equal. A group in a rebalance is one line with its state. */
void coordinator_dump_live(const struct coordinator *coordinator, struct buffer *text);

#endif
