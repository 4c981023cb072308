/* ListConfigResources (KIP-1142; version 0 is ListClientMetricsResources of KIP-714): the names of
 * what has a configuration. Topics and brokers all have one. Groups and subscriptions to clients'
 * metrics are listed when they have one of their own, which none can have here. */
#include <assert.h>

#include "broker/api/handlers.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/config/describe.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "messages/errors.h"
#include "messages/list_config_resources.h"

#define RESOURCE list_config_resources_response_config_resource

struct lister {
    struct request *request;
    struct list_config_resources_response response;
    size_t capacity;
};

static void count_topic(void *context, struct topic_image *topic)
{
    struct lister *lister = context;
    assert(topic != NULL);
    lister->capacity++;
}

static void add(struct lister *lister, struct view name, enum config_resource type)
{
    struct list_config_resources_response *response = &lister->response;
    assert((size_t)response->config_resources_count < lister->capacity);
    response->config_resources[response->config_resources_count++] =
        (struct RESOURCE){.resource_name = name, .resource_type = (int8_t)type};
}

static void add_topic(void *context, struct topic_image *topic)
{
    struct lister *lister = context;
    add(lister, arena_copy(&lister->request->arena, topic->name), CONFIG_RESOURCE_TOPIC);
}

static void add_brokers(struct lister *lister, enum config_resource type)
{
    int32_t count;
    struct request *request = lister->request;
    const struct node_endpoint *nodes = node_endpoint_all(request, false, &count);
    for (int32_t i = 0; i < count; i++) {
        add(lister, arena_format(&request->arena, "%d", nodes[i].node_id), type);
    }
}

/* False when there are no resources of that type. */
static bool add_type(struct lister *lister, int8_t type)
{
    switch (type) {
    case CONFIG_RESOURCE_TOPIC:
        replicas_each_topic(lister->request->home->replicas, add_topic, lister);
        return true;
    case CONFIG_RESOURCE_BROKER:
    case CONFIG_RESOURCE_BROKER_LOGGER:
        add_brokers(lister, (enum config_resource)type);
        return true;
    default:
        return type == CONFIG_RESOURCE_CLIENT_METRICS || type == CONFIG_RESOURCE_GROUP;
    }
}

/* Room for every type once: one that is named again adds nothing. */
static void make_room(struct lister *lister)
{
    struct request *request = lister->request;
    int32_t brokers;
    (void)node_endpoint_all(request, false, &brokers);
    lister->capacity = 2 * (size_t)brokers;
    replicas_each_topic(request->home->replicas, count_topic, lister);
    lister->response.config_resources = request_take(
        request, lister->capacity + 1, sizeof *lister->response.config_resources);
}

/* The types are bits. False when one of them is none. */
static bool add_types(struct lister *lister, const int8_t *types, int32_t count)
{
    int8_t seen = 0;
    bool is_known = true;
    for (int32_t i = 0; i < count && is_known; i++) {
        int8_t type = types[i];
        bool is_one = type > 0 && (type & (type - 1)) == 0;
        bool is_new = is_one && (seen & type) == 0;
        is_known = is_one && (!is_new || add_type(lister, type));
        seen = (int8_t)(seen | (is_one ? type : 0));
    }
    return is_known;
}

void list_config_resources_handle(struct request *request)
{
    static const int8_t all[] = {CONFIG_RESOURCE_TOPIC, CONFIG_RESOURCE_BROKER,
                                 CONFIG_RESOURCE_BROKER_LOGGER, CONFIG_RESOURCE_CLIENT_METRICS,
                                 CONFIG_RESOURCE_GROUP};
    const struct list_config_resources_request *message = request->message;
    struct lister lister = {.request = request,
                            .response = list_config_resources_response_default};
    bool asks_all = message->resource_types_count <= 0;
    const int8_t *types = asks_all ? all : message->resource_types;
    int32_t count = asks_all ? (int32_t)sizeof all : message->resource_types_count;
    make_room(&lister);
    if (request->api_version > 0 && !add_types(&lister, types, count)) {
        lister.response = list_config_resources_response_default;
        lister.response.error_code = KAFKA_UNSUPPORTED_VERSION;
    }
    request_answer(request, request->home, &lister.response);
}
