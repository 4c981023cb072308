/* CreateTopics, DeleteTopics, CreatePartitions: commands of the controller, see
 * broker/api/controller_request.h. */
#include "broker/api/controller_request.h"
#include "broker/api/handlers.h"
#include "messages/errors.h"

static enum status make_created(const struct controller *controller, struct request *request,
                                struct record_list *records, void *response)
{
    return controller_create_topics(controller, request->message, request->api_version,
                                    &request->arena, records, response);
}

static void fail_created(void *response, int16_t error)
{
    struct create_topics_response *out = response;
    for (int32_t i = 0; i < out->topics_count; i++) {
        if (out->topics[i].error_code == KAFKA_NONE) {
            out->topics[i].error_code = error;
        }
    }
}

void create_topics_refuse(struct request *request, int16_t error)
{
    const struct create_topics_request *message = request->message;
    struct create_topics_response response = create_topics_response_default;
    size_t count = message->topics_count < 0 ? 0 : (size_t)message->topics_count;
    response.topics = request_elements(request, count,
                                       &create_topics_response_creatable_topic_result_default,
                                       sizeof *response.topics);
    for (size_t i = 0; i < count; i++) {
        response.topics[i].name = message->topics[i].name;
        response.topics[i].error_code = error;
        response.topics[i].error_message = VIEW_NULL;
    }
    response.topics_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void create_topics_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct create_topics_response), make_created, fail_created};
    controller_request_start(request, &kind);
}

static enum status make_deleted(const struct controller *controller, struct request *request,
                                struct record_list *records, void *response)
{
    return controller_delete_topics(controller, request->message, request->api_version,
                                    &request->arena, records, response);
}

static void fail_deleted(void *response, int16_t error)
{
    struct delete_topics_response *out = response;
    for (int32_t i = 0; i < out->responses_count; i++) {
        if (out->responses[i].error_code == KAFKA_NONE) {
            out->responses[i].error_code = error;
        }
    }
}

/* From version 6 on topics are told apart in a list of structs, before that by name. */
void delete_topics_refuse(struct request *request, int16_t error)
{
    const struct delete_topics_request *message = request->message;
    struct delete_topics_response response = delete_topics_response_default;
    bool by_name = request->api_version < 6;
    int32_t asked = by_name ? message->topic_names_count : message->topics_count;
    size_t count = asked < 0 ? 0 : (size_t)asked;
    response.responses = request_elements(
        request, count, &delete_topics_response_deletable_topic_result_default,
        sizeof *response.responses);
    for (size_t i = 0; i < count; i++) {
        response.responses[i].name =
            by_name ? message->topic_names[i] : message->topics[i].name;
        response.responses[i].topic_id =
            by_name ? (struct uuid){{0}} : message->topics[i].topic_id;
        response.responses[i].error_code = error;
        response.responses[i].error_message = VIEW_NULL;
    }
    response.responses_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void delete_topics_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct delete_topics_response), make_deleted, fail_deleted};
    controller_request_start(request, &kind);
}

static enum status make_grown(const struct controller *controller, struct request *request,
                              struct record_list *records, void *response)
{
    return controller_create_partitions(controller, request->message, &request->arena, records,
                                        response);
}

static void fail_grown(void *response, int16_t error)
{
    struct create_partitions_response *out = response;
    for (int32_t i = 0; i < out->results_count; i++) {
        if (out->results[i].error_code == KAFKA_NONE) {
            out->results[i].error_code = error;
        }
    }
}

void create_partitions_refuse(struct request *request, int16_t error)
{
    const struct create_partitions_request *message = request->message;
    struct create_partitions_response response = create_partitions_response_default;
    size_t count = message->topics_count < 0 ? 0 : (size_t)message->topics_count;
    response.results = request_elements(
        request, count, &create_partitions_response_create_partitions_topic_result_default,
        sizeof *response.results);
    for (size_t i = 0; i < count; i++) {
        response.results[i].name = message->topics[i].name;
        response.results[i].error_code = error;
        response.results[i].error_message = VIEW_NULL;
    }
    response.results_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void create_partitions_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct create_partitions_response), make_grown, fail_grown};
    controller_request_start(request, &kind);
}
