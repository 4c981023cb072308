/* Metadata: the node, the topics, who leads each partition; topics that are asked for and are not
 * there may be made (auto.create.topics.enable).
 *
 * An unknown topic that may be made is made first, and the answer given when it can be used, so
 * that a client's first produce finds it.
 */
#include <assert.h>

#include "broker/api/authorized.h"
#include "broker/api/auto_create.h"
#include "broker/api/handlers.h"
#include "broker/api/name_set.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/config/topic_name.h"
#include "broker/controller/topic_image.h"
#include "broker/group/directory.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/errors.h"
#include "messages/metadata.h"

enum { VERSION_NULL_MEANS_ALL = 1, VERSION_AUTO_CREATE_FLAG = 4, VERSION_IDS = 12 };

struct metadata_state {
    struct auto_create create;
    struct metadata_response response;
    int32_t capacity;
};

static void fill_partitions(struct request *request, struct topic_image *topic,
                            struct metadata_response_metadata_response_topic *out)
{
    struct broker *broker = request->home->broker;
    int32_t count = topic->partition_count;
    int32_t *self = request_take(request, 1, sizeof *self);
    *self = broker->node_id;
    out->partitions = request_elements(
        request, (size_t)count, &metadata_response_metadata_response_partition_default,
        sizeof *out->partitions);
    out->partitions_count = count;
    for (int32_t i = 0; i < count; i++) {
        struct metadata_response_metadata_response_partition *partition = &out->partitions[i];
        struct group_leader leader =
            directory_get(&broker->directory, topic_image_group(topic, i)->id);
        partition->partition_index = i;
        partition->leader_id = leader.leader;
        partition->leader_epoch = leader.epoch;
        partition->error_code = leader.leader >= 0 ? KAFKA_NONE : KAFKA_LEADER_NOT_AVAILABLE;
        partition->replica_nodes = self;
        partition->replica_nodes_count = 1;
        partition->isr_nodes = self;
        partition->isr_nodes_count = 1;
    }
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

static void answer(struct request *request)
{
    const struct metadata_request *message = request->message;
    struct metadata_state *state = request->state;
    struct metadata_response *response = &state->response;
    struct node_endpoint self = node_endpoint_for(request);
    struct metadata_response_metadata_response_broker node = {
        .node_id = self.node_id, .host = self.host, .port = self.port, .rack = self.rack};
    *response = metadata_response_default;
    response->brokers = &node;
    response->brokers_count = 1;
    response->cluster_id = view_text(request->home->broker->cluster_id);
    response->controller_id = self.node_id;
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

static void created(struct auto_create *create)
{
    struct metadata_state *state = container_of(create, struct metadata_state, create);
    (void)state;
    answer(create->request);
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
