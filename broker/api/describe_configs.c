/* DescribeConfigs: broker/config/describe.c makes the answer; here is what the metadata says. */
#include <assert.h>

#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/config/describe.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"

static bool find_topic(void *context, struct view name, const struct topic_override **overrides,
                       uint32_t *count)
{
    struct topic_image *topic = replicas_topic(context, name);
    if (topic == NULL) {
        return false;
    }
    *overrides = topic->overrides;
    *count = topic->override_count;
    return true;
}

static struct view find_setting(void *context, struct view broker, enum config_key key)
{
    const struct replicas *replicas = context;
    return cluster_image_setting(replicas->cluster, broker, key);
}

void describe_configs_handle(struct request *request)
{
    struct describe_configs_response response = describe_configs_response_default;
    struct describe_sources sources = {.find_topic = find_topic,
                                       .find_setting = find_setting,
                                       .context = request->home->replicas};
    assert(request->message != NULL);
    enum status status = describe_configs(request->home->broker->config, &sources, request->message,
                                          &request->arena, &response);
    assert(status == STATUS_OK);
    (void)status;
    request_answer(request, request->home, &response);
}
