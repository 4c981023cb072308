/* ApiVersions: what this broker serves (KIP-35, KIP-511, KIP-584).
 *
 * A version that is not known is answered in version 0 with error 35 and the one line a client
 * needs to try again; the connection stays.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "broker/api/features.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/api/service.h"
#include "broker/config/listeners.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/api_versions.h"
#include "messages/errors.h"
#include "protocol/api_table.h"

/* [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])? as Kafka has it. */
static bool is_software_name(struct view name)
{
    if (name.length == 0 || !isalnum(name.data[0]) || !isalnum(name.data[name.length - 1])) {
        return false;
    }
    for (size_t i = 0; i < name.length; i++) {
        if (!isalnum(name.data[i]) && name.data[i] != '-' && name.data[i] != '.') {
            return false;
        }
    }
    return true;
}

static void fill_range(struct api_versions_response_api_version *range, const struct api *api)
{
    range->api_key = api->key;
    bool is_listed = api->first_advertised_version >= 0;
    range->min_version = is_listed ? api->first_advertised_version : api->first_version;
    range->max_version = service_last_version(api);
}

static void list_services(struct request *request, struct api_versions_response *response)
{
    size_t count;
    const struct service *services = service_table(&count);
    response->api_keys = request_take(request, count, sizeof *response->api_keys);
    bool for_controllers = request->connection->listener->is_controller;
    for (size_t i = 0; i < count && !api_is_private(services[i].key); i++) {
        if (for_controllers ? service_for_controllers(services[i].key)
                            : service_for_brokers(services[i].key)) {
            fill_range(&response->api_keys[response->api_keys_count++],
                       api_find(services[i].key));
        }
    }
}

/* A feature that is off is not among those in force; clients up to version 3 take none whose lowest
 * level is 0 (KAFKA-17011). */
static void list_features(struct request *request, struct api_versions_response *response)
{
    const struct broker *broker = request->home->broker;
    struct feature features[FEATURE_COUNT];
    features_list(broker, features);
    response->supported_features =
        request_take(request, FEATURE_COUNT, sizeof *response->supported_features);
    response->finalized_features =
        request_take(request, FEATURE_COUNT, sizeof *response->finalized_features);
    response->finalized_features_epoch = metadata_delivered(broker);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        const struct feature *feature = &features[i];
        if (feature->lowest > 0 || request->api_version > 3) {
            response->supported_features[response->supported_features_count++] =
                (struct api_versions_response_supported_feature_key){
                    feature->name, feature->lowest, feature->highest};
        }
        if (feature->level > 0) {
            response->finalized_features[response->finalized_features_count++] =
                (struct api_versions_response_finalized_feature_key){
                    feature->name, feature->level, feature->level};
        }
    }
    assert(response->supported_features_count <= FEATURE_COUNT);
}

static void answer_future_version(struct request *request)
{
    struct api_versions_response response;
    message_init(&api_versions_response_type, &response);
    response.error_code = KAFKA_UNSUPPORTED_VERSION;
    response.api_keys = request_take(request, 1, sizeof *response.api_keys);
    fill_range(&response.api_keys[0], request->api);
    response.api_keys_count = 1;
    request_answer(request, request->home, &response);
}

/* A client that says which cluster and node it means is told when it reached another. */
static bool is_other_node(const struct request *request, const struct api_versions_request *message)
{
    const struct broker *broker = request->home->broker;
    if (message->cluster_id.data != NULL && !view_is(message->cluster_id, broker->cluster_id)) {
        return true;
    }
    return message->node_id >= 0 && message->node_id != broker->node_id;
}

void api_versions_handle(struct request *request)
{
    if (request->message == NULL) {
        answer_future_version(request);
        return;
    }
    const struct api_versions_request *message = request->message;
    struct api_versions_response response;
    message_init(&api_versions_response_type, &response);
    if (request->api_version >= 3 && (!is_software_name(message->client_software_name) ||
                                      !is_software_name(message->client_software_version))) {
        response.error_code = KAFKA_INVALID_REQUEST;
    } else if (is_other_node(request, message)) {
        response.error_code = KAFKA_REBOOTSTRAP_REQUIRED;
    } else {
        struct connection *connection = request->connection;
        snprintf(connection->software_name, sizeof connection->software_name, "%.*s",
                 VIEW_PRINT(message->client_software_name));
        snprintf(connection->software_version, sizeof connection->software_version, "%.*s",
                 VIEW_PRINT(message->client_software_version));
        list_services(request, &response);
        list_features(request, &response);
    }
    request_answer(request, request->home, &response);
}
