/* OffsetCommit and TxnOffsetCommit. Happy path: the member and its generation are right, every
 * partition becomes one record of one batch, and the answer waits for the batch. Topics that are
 * not known or not allowed are sorted out first and never reach the group; partitions whose
 * metadata is too long are refused one by one. */
#include <assert.h>
#include <stddef.h>

#include "broker/coordinator/answers.h"
#include "base/planted.h"
#include "broker/coordinator/machine.h"
#include "messages/offset_commit.h"
#include "messages/txn_offset_commit.h"

enum {
    GROUP_ID_NOT_FOUND_VERSION = 9,
    TOPIC_ID_VERSION = 10,
    TXN_GROUP_ID_NOT_FOUND_VERSION = 6,
    TXN_TOPIC_ID_VERSION = 6
};

/* Short names for the structs of the schema. */
#define IN_PARTITION offset_commit_request_offset_commit_request_partition
#define IN_TOPIC offset_commit_request_offset_commit_request_topic
#define OUT_PARTITION offset_commit_response_offset_commit_response_partition
#define OUT_TOPIC offset_commit_response_offset_commit_response_topic
#define TXN_IN_PARTITION txn_offset_commit_request_txn_offset_commit_request_partition
#define TXN_IN_TOPIC txn_offset_commit_request_txn_offset_commit_request_topic
#define TXN_OUT_PARTITION txn_offset_commit_response_txn_offset_commit_response_partition
#define TXN_OUT_TOPIC txn_offset_commit_response_txn_offset_commit_response_topic

/* Both APIs have the same topics and partitions, so one code serves both. */
#define SAME_SIZE(a, b) _Static_assert(sizeof(struct a) == sizeof(struct b), "the same layout")
#define SAME_PLACE(a, b, field) \
    _Static_assert(offsetof(struct a, field) == offsetof(struct b, field), "the same layout")
SAME_SIZE(IN_PARTITION, TXN_IN_PARTITION);
SAME_PLACE(IN_PARTITION, TXN_IN_PARTITION, partition_index);
SAME_PLACE(IN_PARTITION, TXN_IN_PARTITION, committed_offset);
SAME_PLACE(IN_PARTITION, TXN_IN_PARTITION, committed_leader_epoch);
SAME_PLACE(IN_PARTITION, TXN_IN_PARTITION, committed_metadata);
SAME_SIZE(IN_TOPIC, TXN_IN_TOPIC);
SAME_PLACE(IN_TOPIC, TXN_IN_TOPIC, name);
SAME_PLACE(IN_TOPIC, TXN_IN_TOPIC, topic_id);
SAME_PLACE(IN_TOPIC, TXN_IN_TOPIC, partitions);
SAME_PLACE(IN_TOPIC, TXN_IN_TOPIC, partitions_count);
SAME_SIZE(OUT_PARTITION, TXN_OUT_PARTITION);
SAME_PLACE(OUT_PARTITION, TXN_OUT_PARTITION, partition_index);
SAME_PLACE(OUT_PARTITION, TXN_OUT_PARTITION, error_code);
SAME_SIZE(OUT_TOPIC, TXN_OUT_TOPIC);
SAME_PLACE(OUT_TOPIC, TXN_OUT_TOPIC, name);
SAME_PLACE(OUT_TOPIC, TXN_OUT_TOPIC, topic_id);
SAME_PLACE(OUT_TOPIC, TXN_OUT_TOPIC, partitions);
SAME_PLACE(OUT_TOPIC, TXN_OUT_TOPIC, partitions_count);
SAME_SIZE(offset_commit_response, txn_offset_commit_response);
SAME_PLACE(offset_commit_response, txn_offset_commit_response, topics);
SAME_PLACE(offset_commit_response, txn_offset_commit_response, topics_count);

/* A topic of the request with what the metadata says, and its place in the response. */
struct found_topic {
    const struct IN_TOPIC *in;
    struct OUT_TOPIC *out;
    struct coordinator_topic topic;
    enum kafka_error error;
    bool has_error;
};

/* One commit in work. */
struct committing {
    const struct request_context *request;
    struct view group_id;
    int32_t generation;
    struct view member_id;
    struct view instance_id;
    int64_t expire_timestamp_ms; /* -1: none of its own */
    const struct IN_TOPIC *topics;
    size_t topic_count;
    int64_t producer_id; /* -1: not transactional */
    int16_t producer_epoch;
    struct found_topic *found;
    struct offset_commit_response *response;
};

static bool is_transactional(const struct committing *committing)
{
    return committing->request->api == API_TXN_OFFSET_COMMIT;
}

static enum kafka_error partition_error(const struct found_topic *found, int32_t partition)
{
    if (found->error != KAFKA_NONE) {
        return found->error;
    }
    bool exists = partition >= 0 && partition < found->topic.partition_count;
    return exists ? KAFKA_NONE : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
}

static void find_topic(const struct committing *committing, struct found_topic *found,
                       const struct IN_TOPIC *in)
{
    struct coordinator *coordinator = committing->request->coordinator;
    int16_t first_by_id = is_transactional(committing) ? TXN_TOPIC_ID_VERSION : TOPIC_ID_VERSION;
    bool by_id = committing->request->context->version >= first_by_id;
    found->in = in;
    coordinator->in_host = true;
    found->error = coordinator->host.find_topic(
        coordinator->host.owner, committing->request->context->token, committing->request->api,
        by_id ? VIEW_NULL : in->name, in->topic_id, &found->topic);
    coordinator->in_host = false;
    for (int32_t i = 0; i < in->partitions_count; i++) {
        if (partition_error(found, in->partitions[i].partition_index) != KAFKA_NONE) {
            found->has_error = true;
        }
    }
}

static void put_partition(struct OUT_TOPIC *out, int32_t partition, enum kafka_error error)
{
    assert(out->partitions != NULL && out->partitions_count >= 0);
    struct OUT_PARTITION *at = &out->partitions[out->partitions_count++];
    at->partition_index = partition;
    at->error_code = (int16_t)error;
}

/* Gives the topic its place in the response and fills in the partitions that are not to be
 * committed; they come first, as in the reference. False when the arena is full. */
static bool place_topic(const struct committing *committing, struct found_topic *found)
{
    struct offset_commit_response *response = committing->response;
    const struct IN_TOPIC *in = found->in;
    int32_t room;
    assert((size_t)response->topics_count < committing->topic_count && found->out == NULL);
    found->out = &response->topics[response->topics_count++];
    found->out->name = in->name;
    found->out->topic_id = in->topic_id;
    found->out->partitions = coordinator_answer_list(
        committing->request->context->arena, (size_t)in->partitions_count,
        &offset_commit_response_offset_commit_response_partition_default,
        sizeof(struct OUT_PARTITION), &room);
    if (room != in->partitions_count) {
        return false;
    }
    for (int32_t i = 0; i < in->partitions_count; i++) {
        int32_t partition = in->partitions[i].partition_index;
        enum kafka_error error = partition_error(found, partition);
        if (error != KAFKA_NONE) {
            put_partition(found->out, partition, error);
        }
    }
    return true;
}

/* Looks up all topics and lays the response out: topics with errors first. False when the arena is
 * full. */
static bool sort_out(struct committing *committing)
{
    struct arena *arena = committing->request->context->arena;
    struct offset_commit_response *response = committing->response;
    int32_t room;
    response->topics = coordinator_answer_list(
        arena, committing->topic_count,
        &offset_commit_response_offset_commit_response_topic_default, sizeof(struct OUT_TOPIC),
        &room);
    committing->found = arena_take(arena, committing->topic_count, sizeof(*committing->found));
    if ((size_t)room != committing->topic_count || committing->found == NULL) {
        return false;
    }
    for (size_t i = 0; i < committing->topic_count; i++) {
        find_topic(committing, &committing->found[i], &committing->topics[i]);
    }
    for (int errors = 1; errors >= 0; errors--) {
        for (size_t i = 0; i < committing->topic_count; i++) {
            struct found_topic *found = &committing->found[i];
            if (found->has_error == (errors == 1) && !place_topic(committing, found)) {
                return false;
            }
        }
    }
    return true;
}

static bool has_valid(const struct committing *committing)
{
    for (size_t i = 0; i < committing->topic_count; i++) {
        const struct found_topic *found = &committing->found[i];
        if (found->out->partitions_count < found->in->partitions_count) {
            return true;
        }
    }
    return false;
}

/* Who commits without a generation: outside of a group that is empty, or not at all. */
static enum kafka_error check_member(const struct committing *committing,
                                     const struct consumer_group *group)
{
    if (committing->generation < 0 && group->state == GROUP_EMPTY) {
        return KAFKA_NONE;
    }
    if (committing->generation >= 0 || committing->member_id.length > 0 ||
        committing->instance_id.data != NULL) {
        enum kafka_error error =
            consumer_group_check_member(group, committing->member_id, committing->instance_id);
        if (error != KAFKA_NONE) {
            return error;
        }
        if (committing->generation != group->generation &&
            !planted(PLANT_GENERATION_IGNORED)) {
            return KAFKA_ILLEGAL_GENERATION;
        }
    } else if (!is_transactional(committing) && group->state != GROUP_EMPTY) {
        return KAFKA_UNKNOWN_MEMBER_ID;
    }
    bool waits = group->state == GROUP_COMPLETING_REBALANCE && !is_transactional(committing);
    return waits ? KAFKA_REBALANCE_IN_PROGRESS : KAFKA_NONE;
}

/* The group, made when a client that is in none commits to it for the first time. */
static enum kafka_error find_group(const struct committing *committing,
                                   struct consumer_group **group)
{
    struct coordinator *coordinator = committing->request->coordinator;
    int16_t first_not_found = is_transactional(committing) ? TXN_GROUP_ID_NOT_FOUND_VERSION
                                                           : GROUP_ID_NOT_FOUND_VERSION;
    *group = coordinator_group(coordinator, committing->group_id);
    if (*group != NULL) {
        return check_member(committing, *group);
    }
    if (committing->generation >= 0) {
        return committing->request->context->version >= first_not_found ? KAFKA_GROUP_ID_NOT_FOUND
                                                                       : KAFKA_ILLEGAL_GENERATION;
    }
    *group = coordinator_group_make(coordinator, committing->group_id);
    assert((*group)->state == GROUP_EMPTY);
    return KAFKA_NONE;
}

/* Kafka counts UTF-16 units. */
static size_t text_length(struct view text)
{
    size_t units = 0;
    for (size_t i = 0; i < text.length; i++) {
        units += (text.data[i] & 0xc0) != 0x80;
        units += text.data[i] >= 0xf0;
    }
    return units;
}

static enum kafka_error commit_partition(const struct committing *committing,
                                         const struct found_topic *found,
                                         const struct IN_PARTITION *in, struct batch *batch)
{
    const struct coordinator *coordinator = committing->request->coordinator;
    if (text_length(in->committed_metadata) >
        (size_t)coordinator->config.offset_metadata_max_bytes) {
        return KAFKA_OFFSET_METADATA_TOO_LARGE;
    }
    struct coordinator_offset offset = {
        .offset = in->committed_offset,
        .commit_timestamp_ms = coordinator->now_ms,
        .expire_timestamp_ms = committing->expire_timestamp_ms,
        .leader_epoch = in->committed_leader_epoch < 0 ? -1 : in->committed_leader_epoch,
        .topic_id = found->topic.id,
        .metadata = in->committed_metadata.data == NULL ? VIEW_EMPTY : in->committed_metadata,
    };
    assert(batch != NULL && found->error == KAFKA_NONE);
    coordinator_batch_put_offset(batch, committing->group_id, found->topic.name,
                                 in->partition_index, &offset);
    return KAFKA_NONE;
}

/* Answers the remaining partitions: with the group's error, or by putting them into the batch. */
static void fill_valid(const struct committing *committing, enum kafka_error group_error,
                       struct batch *batch)
{
    for (size_t i = 0; i < committing->topic_count; i++) {
        struct found_topic *found = &committing->found[i];
        for (int32_t k = 0; k < found->in->partitions_count; k++) {
            const struct IN_PARTITION *in = &found->in->partitions[k];
            if (partition_error(found, in->partition_index) == KAFKA_NONE) {
                enum kafka_error error = group_error != KAFKA_NONE
                                             ? group_error
                                             : commit_partition(committing, found, in, batch);
                put_partition(found->out, in->partition_index, error);
            }
        }
        assert(found->out->partitions_count == found->in->partitions_count);
    }
}

/* A commit shows that its member is alive, unless it is awaited in the sync phase. */
static void touch_committer(const struct committing *committing, const struct consumer_group *group)
{
    struct consumer_member *member = consumer_group_member(group, committing->member_id);
    if (member != NULL && !is_transactional(committing) &&
        (group->state == GROUP_STABLE || group->state == GROUP_PREPARING_REBALANCE)) {
        coordinator_touch_member(committing->request->coordinator, member);
    }
}

/* Emits the records; the batch the answer waits for, or null when there is nothing to write. */
static struct batch *commit(const struct committing *committing)
{
    struct coordinator *coordinator = committing->request->coordinator;
    struct consumer_group *group;
    enum kafka_error error = find_group(committing, &group);
    if (error != KAFKA_NONE) {
        fill_valid(committing, error, NULL);
        return NULL;
    }
    touch_committer(committing, group);
    struct batch *batch = coordinator_batch_new(BATCH_OFFSETS, committing->group_id);
    batch->producer_id = committing->producer_id;
    batch->producer_epoch = committing->producer_epoch;
    fill_valid(committing, KAFKA_NONE, batch);
    if (batch->count > 0) {
        return coordinator_emit(coordinator, batch);
    }
    coordinator_batch_free(batch);
    coordinator_group_drop_if_void(coordinator, group);
    return NULL;
}

static void handle(struct committing *committing)
{
    const struct request_context *request = committing->request;
    struct offset_commit_response full = offset_commit_response_default;
    int32_t count;
    committing->response = coordinator_answer_list(
        request->context->arena, 1, &offset_commit_response_default, sizeof(full), &count);
    struct batch *batch = NULL;
    if (committing->response == NULL || !sort_out(committing)) {
        committing->response = &full;
    } else if (has_valid(committing)) {
        batch = commit(committing);
    }
    if (batch != NULL && !planted(PLANT_OFFSET_BEFORE_COMMIT)) {
        coordinator_answer_with(request, batch, committing->response);
    } else {
        coordinator_answer(request->coordinator, request->context->token, request->api,
                           committing->response);
    }
}

/* When a commit with a retention of its own (versions 2-4) expires; -1: as the broker says. */
static int64_t expiry_of(const struct coordinator *coordinator, int64_t retention_ms)
{
    int64_t expiry_ms;
    if (retention_ms == -1) {
        return -1;
    }
    return __builtin_add_overflow(coordinator->now_ms, retention_ms, &expiry_ms) ? INT64_MAX
                                                                                 : expiry_ms;
}

void coordinator_handle_commit(const struct request_context *request, const void *message)
{
    const struct offset_commit_request *in = message;
    struct committing committing = {
        .request = request,
        .group_id = in->group_id,
        .generation = in->generation_id_or_member_epoch,
        .member_id = in->member_id,
        .instance_id = in->group_instance_id,
        .expire_timestamp_ms = expiry_of(request->coordinator, in->retention_time_ms),
        .topics = in->topics,
        .topic_count = (size_t)in->topics_count,
        .producer_id = -1,
        .producer_epoch = -1,
    };
    handle(&committing);
}

void coordinator_handle_txn_commit(const struct request_context *request, const void *message)
{
    const struct txn_offset_commit_request *in = message;
    struct committing committing = {
        .request = request,
        .group_id = in->group_id,
        .generation = in->generation_id_or_member_epoch,
        .member_id = in->member_id,
        .instance_id = in->group_instance_id,
        .expire_timestamp_ms = -1,
        .topics = (const struct IN_TOPIC *)(const void *)in->topics,
        .topic_count = (size_t)in->topics_count,
        .producer_id = in->producer_id,
        .producer_epoch = in->producer_epoch,
    };
    handle(&committing);
}
