/* Metadata: the nodes, the topics, who leads each partition; topics that are asked for and are not
 * there may be made (auto.create.topics.enable).
 *
 * An unknown topic that may be made is made first, and the answer given when it can be used, so
 * that a client's first produce finds it.
 */
#include <assert.h>
#include <string.h>

#include "broker/api/authorized.h"
#include "broker/api/auto_create.h"
#include "broker/api/handlers.h"
#include "broker/api/leader_wait.h"
#include "broker/api/name_set.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/config/topic_name.h"
#include "broker/controller/topic_image.h"
#include "broker/group/directory.h"
#include "broker/group/in_sync.h"
#include "broker/group/lag.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/errors.h"
#include "messages/metadata.h"

#define PARTITION metadata_response_metadata_response_partition

enum {
    VERSION_ALL_REPLICAS = 1, /* also those that are not there; before, they are an error */
    VERSION_NULL_MEANS_ALL = 1,
    VERSION_AUTO_CREATE_FLAG = 4,
    VERSION_IDS = 12
};

struct metadata_state {
    struct auto_create create;
    struct leader_wait wait;
    struct metadata_response response;
    int32_t capacity;
};

enum standing { IN_SYNC, BEHIND, OFFLINE };

/* How the replica at that place of the list stands. The leader is in sync in any case. */
static enum standing standing_of(const struct request *request,
                                 const struct partition_group *group, int32_t place,
                                 int32_t leader)
{
    const struct directory *directory = &request->home->broker->directory;
    int32_t replica = group->replicas[place];
    if (replica == leader) {
        return IN_SYNC;
    }
    if (!in_sync_is_online(request->home, replica)) {
        return OFFLINE;
    }
    uint64_t lag = lag_of(directory_lag(directory, group->id), group);
    return lag_has(lag, place) ? BEHIND : IN_SYNC;
}

/* In one array those in sync, those that are behind, those that are offline. While all are in sync,
 * which is the rule, the group's own array serves. Returns how many are online. */
static int32_t split_replicas(struct request *request, const struct partition_group *group,
                              struct PARTITION *partition)
{
    int32_t leader = partition->leader_id;
    int32_t count = group->replica_count;
    int32_t good = 0;
    int32_t behind = 0;
    int32_t lost = count;
    while (good < count && standing_of(request, group, good, leader) == IN_SYNC) {
        good++;
    }
    partition->isr_nodes = partition->replica_nodes;
    partition->isr_nodes_count = good;
    if (good == count) {
        return count;
    }
    int32_t *split = request_take(request, 2 * (size_t)count, sizeof *split);
    int32_t *middle = split + count;
    good = 0;
    for (int32_t i = 0; i < count; i++) {
        enum standing standing = standing_of(request, group, i, leader);
        int32_t *to = standing == IN_SYNC  ? &split[good++]
                      : standing == BEHIND ? &middle[behind++]
                                           : &split[--lost];
        *to = group->replicas[i];
    }
    assert(good + behind == lost);
    memcpy(split + good, middle, (size_t)behind * sizeof *split);
    partition->isr_nodes = split;
    partition->isr_nodes_count = good;
    partition->offline_replicas = split + lost;
    partition->offline_replicas_count = count - lost;
    return lost;
}

/* All that is told of a partition but its number. */
static void fill_partition(struct request *request, const struct partition_group *group,
                           struct PARTITION *partition)
{
    struct told_leader leader = told_leader_of(request, group->id);
    *partition = metadata_response_metadata_response_partition_default;
    partition->leader_id = leader.id;
    partition->leader_epoch = leader.epoch;
    partition->error_code = leader.error;
    /* The codec takes what it encodes as not const; it only reads. */
    partition->replica_nodes = (int32_t *)(uintptr_t)group->replicas;
    partition->replica_nodes_count = group->replica_count;
    int32_t online = split_replicas(request, group, partition);
    if (request->api_version < VERSION_ALL_REPLICAS && online < group->replica_count) {
        partition->replica_nodes = partition->isr_nodes;
        partition->replica_nodes_count = online;
        partition->error_code =
            leader.error != KAFKA_NONE ? leader.error : KAFKA_REPLICA_NOT_AVAILABLE;
    }
}

/* Partitions of one group are told the same, so only the first of them is worked out. */
static void fill_partitions(struct request *request, struct topic_image *topic,
                            struct metadata_response_metadata_response_topic *out)
{
    size_t count = (size_t)topic->partition_count;
    struct PARTITION *partitions = request_take(request, count, sizeof *partitions);
    const struct PARTITION **of_group = request_take(request, topic->group_count,
                                                     sizeof(const struct PARTITION *));
    for (size_t i = 0; i < count; i++) {
        uint16_t slot = topic->slots[i];
        assert(slot < topic->group_count);
        if (of_group[slot] == NULL) {
            fill_partition(request, &topic->groups[slot], &partitions[i]);
            of_group[slot] = &partitions[i];
        } else {
            partitions[i] = *of_group[slot];
        }
        partitions[i].partition_index = (int32_t)i;
    }
    out->partitions = partitions;
    out->partitions_count = topic->partition_count;
}

static struct metadata_response_metadata_response_topic *next_topic(struct request *request)
{
    struct metadata_state *state = request->state;
    struct metadata_response *response = &state->response;
    if (response->topics_count == state->capacity) {
        int32_t capacity = state->capacity == 0 ? 16 : state->capacity * 2;
        struct metadata_response_metadata_response_topic *topics =
            request_take(request, (size_t)capacity, sizeof *topics);
        if (state->capacity > 0) {
            memcpy(topics, response->topics, (size_t)state->capacity * sizeof *topics);
        }
        response->topics = topics;
        state->capacity = capacity;
    }
    struct metadata_response_metadata_response_topic *topic =
        &response->topics[response->topics_count++];
    *topic = metadata_response_metadata_response_topic_default;
    return topic;
}

static void add_topic(void *context, struct topic_image *topic)
{
    struct request *request = context;
    const struct metadata_request *message = request->message;
    struct metadata_response_metadata_response_topic *out = next_topic(request);
    /* The image may be replaced before the answer is encoded only if this returned to the loop. */
    out->name = topic->name;
    out->topic_id = topic->id;
    out->is_internal = topic->is_internal;
    if (message->include_topic_authorized_operations) {
        out->topic_authorized_operations = AUTHORIZED_TOPIC;
    }
    fill_partitions(request, topic, out);
}

static void add_missing(struct request *request,
                        const struct metadata_request_metadata_request_topic *asked,
                        int16_t error)
{
    struct metadata_response_metadata_response_topic *out = next_topic(request);
    out->error_code = error;
    out->name = asked->name;
    out->topic_id = asked->topic_id;
    if (asked->name.data == NULL && request->api_version < VERSION_IDS) {
        out->name = VIEW_EMPTY;
    }
    out->is_internal = asked->name.data != NULL && topic_is_internal(asked->name);
}

static bool asks_for_all(const struct request *request)
{
    const struct metadata_request *message = request->message;
    return request->api_version < VERSION_NULL_MEANS_ALL ? message->topics_count <= 0
                                                         : message->topics_count < 0;
}

/* What identifies a topic in the request: its name, else its id. */
static struct view key_of(const struct metadata_request_metadata_request_topic *asked)
{
    return asked->name.data != NULL ? asked->name
                                    : (struct view){asked->topic_id.bytes, UUID_BYTES};
}

static void add_asked(struct request *request)
{
    const struct metadata_request *message = request->message;
    const struct metadata_state *state = request->state;
    struct replicas *replicas = request->home->replicas;
    struct name_set seen;
    name_set_init(&seen, (size_t)message->topics_count, &request->arena);
    for (int32_t i = 0; i < message->topics_count; i++) {
        const struct metadata_request_metadata_request_topic *asked = &message->topics[i];
        if (!name_set_add(&seen, key_of(asked))) {
            continue; /* asked twice, answered once */
        }
        bool by_name = asked->name.data != NULL;
        struct topic_image *topic = by_name ? replicas_topic(replicas, asked->name)
                                            : replicas_topic_by_id(replicas, asked->topic_id);
        if (topic != NULL) {
            add_topic(request, topic);
        } else {
            int16_t error = by_name ? auto_create_error(&state->create, asked->name)
                                    : KAFKA_UNKNOWN_TOPIC_ID;
            add_missing(request, asked, error);
        }
    }
}

static void add_brokers(struct request *request, struct metadata_response *response)
{
    int32_t count;
    const struct node_endpoint *nodes = node_endpoint_all(request, false, &count);
    response->brokers = request_take(request, (size_t)count, sizeof *response->brokers);
    response->brokers_count = count;
    for (int32_t i = 0; i < count; i++) {
        response->brokers[i] = (struct metadata_response_metadata_response_broker){
            .node_id = nodes[i].node_id,
            .host = nodes[i].host,
            .port = nodes[i].port,
            .rack = nodes[i].rack};
    }
}

static void answer(struct request *request)
{
    const struct metadata_request *message = request->message;
    struct metadata_state *state = request->state;
    struct metadata_response *response = &state->response;
    *response = metadata_response_default;
    add_brokers(request, response);
    response->cluster_id = view_text(request->home->broker->cluster_id);
    response->controller_id = node_endpoint_controller(request);
    if (message->include_cluster_authorized_operations) {
        response->cluster_authorized_operations = AUTHORIZED_CLUSTER;
    }
    if (asks_for_all(request)) {
        replicas_each_topic(request->home->replicas, add_topic, request);
    } else {
        add_asked(request);
    }
    request_answer(request, request->home, response);
}

/* Who asks for all topics does not look for one of them. */
static bool lacks_leader(struct request *request)
{
    const struct metadata_request *message = request->message;
    struct replicas *replicas = request->home->replicas;
    for (int32_t i = 0; i < message->topics_count; i++) {
        const struct metadata_request_metadata_request_topic *asked = &message->topics[i];
        struct topic_image *topic = asked->name.data != NULL
                                        ? replicas_topic(replicas, asked->name)
                                        : replicas_topic_by_id(replicas, asked->topic_id);
        for (uint32_t g = 0; topic != NULL && g < topic->group_count; g++) {
            if (leader_is_coming(request, &topic->groups[g])) {
                return true;
            }
        }
    }
    return false;
}

static void created(struct auto_create *create)
{
    struct metadata_state *state = container_of(create, struct metadata_state, create);
    state->wait.request = create->request;
    state->wait.lacks_leader = lacks_leader;
    state->wait.go = answer;
    leader_wait_begin(&state->wait);
}

static bool may_create(const struct request *request)
{
    const struct metadata_request *message = request->message;
    bool asked = request->api_version < VERSION_AUTO_CREATE_FLAG ||
                 message->allow_auto_topic_creation;
    return asked && config_bool(request->home->broker->config, CONFIG_AUTO_CREATE_TOPICS_ENABLE);
}

void metadata_handle(struct request *request)
{
    const struct metadata_request *message = request->message;
    struct metadata_state *state = request_take(request, 1, sizeof *state);
    assert(request->message != NULL);
    request->state = state;
    auto_create_begin(&state->create, request);
    if (!asks_for_all(request) && may_create(request)) {
        struct name_set seen;
        name_set_init(&seen, (size_t)message->topics_count, &request->arena);
        for (int32_t i = 0; i < message->topics_count; i++) {
            struct view name = message->topics[i].name;
            if (name.data != NULL && replicas_topic(request->home->replicas, name) == NULL &&
                name_set_add(&seen, name)) {
                auto_create_add(&state->create, name);
            }
        }
    }
    auto_create_go(&state->create, created);
}
