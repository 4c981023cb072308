/* OffsetFetch. Happy path: for each asked partition the committed offset, or -1 where there is
 * none: an unknown group, topic or partition is no error. A null topic list asks for all the group
 * has. With requireStable a partition that an open transaction holds answers
 * UNSTABLE_OFFSET_COMMIT. Only committed records are seen. */
#include <assert.h>
#include <stddef.h>

#include "broker/coordinator/answers.h"
#include "broker/coordinator/machine.h"
#include "messages/offset_fetch.h"

enum { GROUPS_VERSION = 8, TOPIC_ID_VERSION = 10 };

#define IN_TOPIC offset_fetch_request_offset_fetch_request_topics
#define OLD_IN_TOPIC offset_fetch_request_offset_fetch_request_topic
#define OUT_TOPIC offset_fetch_response_offset_fetch_response_topics
#define OUT_PARTITION offset_fetch_response_offset_fetch_response_partitions
#define OUT_GROUP offset_fetch_response_offset_fetch_response_group
#define OLD_OUT_TOPIC offset_fetch_response_offset_fetch_response_topic
#define OLD_OUT_PARTITION offset_fetch_response_offset_fetch_response_partition

/* Versions 1-7 have the same partitions under another name. */
#define SAME_PLACE(field)                                                                         \
    _Static_assert(offsetof(struct OUT_PARTITION, field) ==                                       \
                       offsetof(struct OLD_OUT_PARTITION, field),                                 \
                   "the same layout")
_Static_assert(sizeof(struct OUT_PARTITION) == sizeof(struct OLD_OUT_PARTITION),
               "the same layout");
SAME_PLACE(partition_index);
SAME_PLACE(committed_offset);
SAME_PLACE(committed_leader_epoch);
SAME_PLACE(metadata);
SAME_PLACE(error_code);

/* One group of a fetch in work. */
struct fetching {
    const struct request_context *request;
    struct view group_id;
    const struct stored_group *stored; /* null: nothing is committed */
    bool require_stable;
};

static enum kafka_error find_topic(const struct fetching *fetching, struct view name,
                                   struct uuid id, struct coordinator_topic *topic)
{
    struct coordinator *coordinator = fetching->request->coordinator;
    coordinator->in_host = true;
    enum kafka_error error =
        coordinator->host.find_topic(coordinator->host.owner, fetching->request->context->token,
                                     API_OFFSET_FETCH, name, id, topic);
    coordinator->in_host = false;
    return error;
}

static void fill_none(struct OUT_PARTITION *out, int32_t partition, enum kafka_error error)
{
    *out = (struct OUT_PARTITION){
        .partition_index = partition,
        .committed_offset = -1,
        .committed_leader_epoch = -1,
        .metadata = VIEW_EMPTY,
        .error_code = (int16_t)error,
    };
}

static void fill_partition(const struct fetching *fetching, struct view topic, int32_t partition,
                           struct OUT_PARTITION *out)
{
    const struct coordinator *coordinator = fetching->request->coordinator;
    assert(topic.data != NULL);
    const struct stored_offset *stored = offset_store_find(fetching->stored, topic, partition);
    if (fetching->require_stable &&
        offset_store_is_open(&coordinator->store, fetching->group_id, topic, partition)) {
        fill_none(out, partition, KAFKA_UNSTABLE_OFFSET_COMMIT);
    } else if (stored == NULL) {
        fill_none(out, partition, KAFKA_NONE);
    } else {
        *out = (struct OUT_PARTITION){
            .partition_index = partition,
            .committed_offset = stored->value.offset,
            .committed_leader_epoch = stored->value.leader_epoch,
            .metadata = coordinator_answer_text(fetching->request->context->arena,
                                                stored->value.metadata),
        };
    }
}

/* The asked partitions of one topic. */
static void fetch_topic(const struct fetching *fetching, struct view name, struct uuid id,
                        const int32_t *partitions, int32_t count, struct OUT_TOPIC *out)
{
    struct coordinator_topic topic = {0};
    bool by_id = fetching->request->context->version >= TOPIC_ID_VERSION;
    enum kafka_error error = find_topic(fetching, by_id ? VIEW_NULL : name, id, &topic);
    if (!by_id && error != KAFKA_TOPIC_AUTHORIZATION_FAILED) {
        topic.name = name; /* offsets of topics that are gone are still there */
        error = KAFKA_NONE;
    }
    out->name = name;
    out->topic_id = id;
    out->partitions = coordinator_answer_list(
        fetching->request->context->arena, (size_t)count,
        &offset_fetch_response_offset_fetch_response_partitions_default,
        sizeof(*out->partitions), &out->partitions_count);
    for (int32_t i = 0; i < out->partitions_count; i++) {
        if (error == KAFKA_NONE) {
            fill_partition(fetching, topic.name, partitions[i], &out->partitions[i]);
        } else {
            fill_none(&out->partitions[i], partitions[i], error);
        }
    }
}

/* All the group has of one topic. */
static void fetch_whole_topic(const struct fetching *fetching, const struct stored_topic *stored,
                              struct uuid id, struct OUT_TOPIC *out)
{
    struct arena *arena = fetching->request->context->arena;
    bool by_id = fetching->request->context->version >= TOPIC_ID_VERSION;
    out->name = by_id ? VIEW_EMPTY : coordinator_answer_text(arena, stored->name);
    out->topic_id = by_id ? id : (struct uuid){{0}};
    out->partitions = coordinator_answer_list(
        arena, stored->count, &offset_fetch_response_offset_fetch_response_partitions_default,
        sizeof(*out->partitions), &out->partitions_count);
    for (int32_t i = 0; i < out->partitions_count; i++) {
        fill_partition(fetching, stored->name, stored->offsets[i].partition, &out->partitions[i]);
    }
}

/* Topics that the client may not see are left out, and so are, in versions that speak in ids, those
 * that have none any more. */
static void fetch_all(const struct fetching *fetching, struct OUT_GROUP *out)
{
    bool by_id = fetching->request->context->version >= TOPIC_ID_VERSION;
    int32_t room;
    size_t count = fetching->stored == NULL ? 0 : HASH_COUNT(fetching->stored->topics);
    out->topics = coordinator_answer_list(
        fetching->request->context->arena, count,
        &offset_fetch_response_offset_fetch_response_topics_default, sizeof(*out->topics), &room);
    out->topics_count = 0;
    assert(room == 0 || fetching->stored != NULL);
    const struct stored_topic *stored = room == 0 ? NULL : fetching->stored->topics;
    for (; stored != NULL; stored = stored->hh.next) {
        struct coordinator_topic topic = {0};
        struct uuid none = {{0}};
        enum kafka_error error = find_topic(fetching, stored->name, none, &topic);
        if (error != KAFKA_TOPIC_AUTHORIZATION_FAILED && (error == KAFKA_NONE || !by_id)) {
            fetch_whole_topic(fetching, stored, topic.id, &out->topics[out->topics_count++]);
        }
    }
    assert(out->topics_count <= room);
}

static struct fetching start(const struct request_context *request, struct view group_id,
                             bool require_stable)
{
    return (struct fetching){
        .request = request,
        .group_id = group_id,
        .stored = offset_store_group(&request->coordinator->store, group_id),
        .require_stable = require_stable,
    };
}

static void fetch_groups(const struct request_context *request,
                         const struct offset_fetch_request *message,
                         struct offset_fetch_response *response)
{
    struct arena *arena = request->context->arena;
    response->groups = coordinator_answer_list(
        arena, (size_t)message->groups_count,
        &offset_fetch_response_offset_fetch_response_group_default, sizeof(*response->groups),
        &response->groups_count);
    for (int32_t i = 0; i < response->groups_count; i++) {
        const struct offset_fetch_request_offset_fetch_request_group *in = &message->groups[i];
        struct OUT_GROUP *out = &response->groups[i];
        struct fetching fetching = start(request, in->group_id, message->require_stable);
        out->group_id = in->group_id;
        if (in->topics_count < 0) {
            fetch_all(&fetching, out);
            continue;
        }
        out->topics = coordinator_answer_list(
            arena, (size_t)in->topics_count,
            &offset_fetch_response_offset_fetch_response_topics_default, sizeof(*out->topics),
            &out->topics_count);
        for (int32_t k = 0; k < out->topics_count; k++) {
            const struct IN_TOPIC *topic = &in->topics[k];
            fetch_topic(&fetching, topic->name, topic->topic_id, topic->partition_indexes,
                        topic->partition_indexes_count, &out->topics[k]);
        }
    }
}

static void use_old_shape(struct OLD_OUT_TOPIC *old, const struct OUT_TOPIC *topic)
{
    old->name = topic->name;
    old->partitions = (struct OLD_OUT_PARTITION *)(void *)topic->partitions;
    old->partitions_count = topic->partitions_count;
}

static void fetch_old(const struct request_context *request,
                      const struct offset_fetch_request *message,
                      struct offset_fetch_response *response)
{
    struct fetching fetching = start(request, message->group_id, message->require_stable);
    struct OUT_GROUP all = offset_fetch_response_offset_fetch_response_group_default;
    assert(message->groups_count <= 0);
    if (message->topics_count < 0) {
        fetch_all(&fetching, &all);
    }
    size_t count = (size_t)(message->topics_count < 0 ? all.topics_count : message->topics_count);
    response->topics = coordinator_answer_list(
        request->context->arena, count,
        &offset_fetch_response_offset_fetch_response_topic_default, sizeof(*response->topics),
        &response->topics_count);
    for (int32_t i = 0; i < response->topics_count; i++) {
        struct OUT_TOPIC topic = offset_fetch_response_offset_fetch_response_topics_default;
        if (message->topics_count >= 0) {
            const struct OLD_IN_TOPIC *in = &message->topics[i];
            fetch_topic(&fetching, in->name, (struct uuid){{0}}, in->partition_indexes,
                        in->partition_indexes_count, &topic);
        }
        use_old_shape(&response->topics[i], message->topics_count < 0 ? &all.topics[i] : &topic);
    }
}

void coordinator_handle_fetch(const struct request_context *request, const void *message)
{
    const struct offset_fetch_request *in = message;
    struct offset_fetch_response response = offset_fetch_response_default;
    if (request->context->version >= GROUPS_VERSION) {
        fetch_groups(request, in, &response);
    } else {
        fetch_old(request, in, &response);
    }
    coordinator_answer(request->coordinator, request->context->token, API_OFFSET_FETCH, &response);
}
