/* Brokers come, go, and are fenced while nobody hears them. Owns nothing: each command looks at the
 * registration in the image and records what differs. */
#include "broker/controller/controller.h"

#include <assert.h>

#include "protocol/codec.h"

static const struct register_broker_record *find_broker(const struct controller *controller,
                                                        int32_t id)
{
    for (int i = 0; i < image_broker_count(controller->image); i++) {
        const struct register_broker_record *broker = image_broker(controller->image, i);
        if (broker->broker_id == id) {
            return broker;
        }
    }
    return NULL;
}

enum status controller_register_broker(const struct controller *controller,
                                       const struct broker_registration_request *request,
                                       int64_t next_offset, struct arena *arena,
                                       struct record_list *records, int64_t *epoch)
{
    assert(request != NULL && records != NULL && epoch != NULL);
    const struct register_broker_record *known = find_broker(controller, request->broker_id);
    if (known != NULL && uuid_equal(known->incarnation_id, request->incarnation_id)) {
        *epoch = known->broker_epoch; /* asked again: the first answer was lost */
        return STATUS_OK;
    }
    size_t count = request->listeners_count < 0 ? 0 : (size_t)request->listeners_count;
    struct register_broker_record record = register_broker_record_default;
    record.end_points = message_elements(arena, count,
                                         &register_broker_record_broker_endpoint_default,
                                         sizeof *record.end_points);
    if (record.end_points == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        const struct broker_registration_request_listener *listener = &request->listeners[i];
        record.end_points[i] = (struct register_broker_record_broker_endpoint){
            .name = listener->name,
            .host = listener->host,
            .port = listener->port,
            .security_protocol = listener->security_protocol};
    }
    *epoch = next_offset;
    record.end_points_count = (int32_t)count;
    record.broker_id = request->broker_id;
    record.incarnation_id = request->incarnation_id;
    record.broker_epoch = next_offset;
    record.rack = request->rack;
    record.fenced = false; /* who asks is there */
    if (known != NULL && known->cordoned_log_dirs_count > 0) {
        /* Until it says otherwise: nothing new is placed there while it starts. */
        record.cordoned_log_dirs = known->cordoned_log_dirs;
        record.cordoned_log_dirs_count = known->cordoned_log_dirs_count;
    }
    record_list_add(records, &register_broker_record_type,
                    record.cordoned_log_dirs_count > 0 ? 4 : 1, &record);
    return STATUS_OK;
}

enum kafka_error controller_unregister_broker(const struct controller *controller, int32_t id,
                                              struct record_list *records)
{
    const struct register_broker_record *known = find_broker(controller, id);
    if (known == NULL) {
        return KAFKA_BROKER_ID_NOT_REGISTERED;
    }
    struct unregister_broker_record record = {.broker_id = id,
                                              .broker_epoch = known->broker_epoch};
    record_list_add(records, &unregister_broker_record_type, 0, &record);
    return KAFKA_NONE;
}

/* Whether the registration names just the directories that the request names. */
static bool has_cordoned(const struct register_broker_record *known,
                         const struct broker_heartbeat_request *request)
{
    int32_t count = known->cordoned_log_dirs_count < 0 ? 0 : known->cordoned_log_dirs_count;
    bool same = count == request->cordoned_log_dirs_count;
    for (int32_t i = 0; i < count && same; i++) {
        same = uuid_equal(known->cordoned_log_dirs[i], request->cordoned_log_dirs[i]);
    }
    return same;
}

enum kafka_error controller_broker_heartbeat(const struct controller *controller,
                                             const struct broker_heartbeat_request *request,
                                             struct record_list *records)
{
    assert(request != NULL && records != NULL);
    const struct register_broker_record *known = find_broker(controller, request->broker_id);
    if (known == NULL) {
        return KAFKA_BROKER_ID_NOT_REGISTERED;
    }
    if (known->broker_epoch != request->broker_epoch) {
        return KAFKA_STALE_BROKER_EPOCH;
    }
    bool stops = request->want_shut_down && !known->in_controlled_shutdown;
    bool fences = request->want_fence && !known->fenced;
    bool cordons = request->cordoned_log_dirs_count >= 0 && !has_cordoned(known, request);
    if (stops || fences || cordons) {
        struct broker_registration_change_record record =
            broker_registration_change_record_default;
        record.broker_id = known->broker_id;
        record.broker_epoch = known->broker_epoch;
        record.fenced = fences ? 1 : 0;
        record.in_controlled_shutdown = stops ? 1 : 0;
        if (cordons) {
            record.cordoned_log_dirs = request->cordoned_log_dirs;
            record.cordoned_log_dirs_count = request->cordoned_log_dirs_count;
        }
        record_list_add(records, &broker_registration_change_record_type, cordons ? 3 : 1,
                        &record);
    }
    return KAFKA_NONE;
}

void controller_fence_broker(const struct controller *controller, int32_t id, bool fenced,
                             struct record_list *records)
{
    const struct register_broker_record *known = find_broker(controller, id);
    if (known == NULL || known->fenced == fenced) {
        return;
    }
    struct broker_registration_change_record record = broker_registration_change_record_default;
    record.broker_id = id;
    record.broker_epoch = known->broker_epoch;
    record.fenced = fenced ? 1 : -1;
    record_list_add(records, &broker_registration_change_record_type, 1, &record);
}
