/* UpdateFeatures (KIP-584): levels are fixed, so that who asks for those in force succeeds and
 * everything else is refused, with Kafka's sentences. Any node can say so. */
#include <assert.h>

#include "broker/api/features.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/server/broker.h"
#include "messages/errors.h"
#include "messages/update_features.h"

#define UPDATE update_features_request_feature_update_key

enum upgrade_type { UPGRADE = 1, SAFE_DOWNGRADE = 2, UNSAFE_DOWNGRADE = 3 };

static int8_t type_of(const struct UPDATE *update, int16_t version)
{
    int8_t type = update->allow_downgrade ? SAFE_DOWNGRADE : UPGRADE;
    return version == 0 ? type : update->upgrade_type;
}

static const struct feature *find(const struct feature features[FEATURE_COUNT], struct view name)
{
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (view_equal(features[i].name, name)) {
            return &features[i];
        }
    }
    return NULL;
}

/* Why not; the null view when the level is in force. */
static struct view judge(struct request *request, const struct UPDATE *update,
                         const struct feature *feature)
{
    struct arena *arena = &request->arena;
    int node = request->home->broker->node_id;
    assert(update != NULL);
    int8_t type = type_of(update, request->api_version);
    int16_t level = update->max_version_level;
    if (type < UPGRADE || type > UNSAFE_DOWNGRADE) {
        return VIEW_LITERAL("The controller does not support the given upgrade type.");
    }
    if (level < 0) {
        return VIEW_LITERAL("A feature version cannot be less than 0.");
    }
    if (feature == NULL && level > 0) {
        return arena_format(arena, "Local controller %d does not support this feature.", node);
    }
    if (feature == NULL || level == feature->level) {
        return VIEW_NULL;
    }
    if (level < feature->lowest || level > feature->highest) {
        return feature->lowest == feature->highest
                   ? arena_format(arena, "Local controller %d only supports versions %d", node,
                                  feature->lowest)
                   : arena_format(arena, "Local controller %d only supports versions %d-%d", node,
                                  feature->lowest, feature->highest);
    }
    if (level < feature->level && type == UPGRADE) {
        return VIEW_LITERAL("Can't downgrade the version of this feature without setting the "
                            "upgrade type to either safe or unsafe downgrade.");
    }
    if (level > feature->level && type != UPGRADE) {
        return VIEW_LITERAL("Can't downgrade to a newer version.");
    }
    return VIEW_LITERAL("It follows from the configuration (controller.quorum.voters).");
}

static void refuse(struct request *request, const struct UPDATE *update, struct view why,
                   struct update_features_response *response)
{
    assert(why.data != NULL);
    response->error_code = KAFKA_INVALID_UPDATE_VERSION;
    response->error_message = arena_format(
        &request->arena,
        "The update failed for all features since the following feature had an error: Invalid "
        "update version %d for feature %.*s. %.*s",
        update->max_version_level, VIEW_PRINT(update->feature), VIEW_PRINT(why));
}

/* Until version 1 each feature is told for itself when all went well. */
static void tell_each(struct request *request, const struct update_features_request *message,
                      struct update_features_response *response)
{
    int32_t count = message->feature_updates_count < 0 ? 0 : message->feature_updates_count;
    response->results =
        request_elements(request, (size_t)count,
                         &update_features_response_updatable_feature_result_default,
                         sizeof *response->results);
    response->results_count = count;
    assert(response->error_code == KAFKA_NONE);
    for (int32_t i = 0; i < count; i++) {
        response->results[i].feature = message->feature_updates[i].feature;
        response->results[i].error_message = VIEW_NULL;
    }
}

void update_features_handle(struct request *request)
{
    const struct update_features_request *message = request->message;
    struct update_features_response response = update_features_response_default;
    struct feature features[FEATURE_COUNT];
    response.error_message = VIEW_NULL;
    features_list(request->home->broker, features);
    for (int32_t i = 0; i < message->feature_updates_count; i++) {
        const struct UPDATE *update = &message->feature_updates[i];
        struct view why = judge(request, update, find(features, update->feature));
        if (why.data != NULL) {
            refuse(request, update, why, &response);
            break;
        }
    }
    if (request->api_version <= 1 && response.error_code == KAFKA_NONE) {
        tell_each(request, message, &response);
    }
    request_answer(request, request->home, &response);
}
