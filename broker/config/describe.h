/* Answers to DescribeConfigs (KIP-133, KIP-226, KIP-569): every key of a topic, broker or group
 * with value, type and the sources that it could come from, as admin tools and consoles read it. */
#ifndef OTTLA_BROKER_CONFIG_DESCRIBE_H
#define OTTLA_BROKER_CONFIG_DESCRIBE_H

#include "base/arena.h"
#include "base/status.h"
#include "broker/config/config.h"
#include "broker/config/topic_config.h"
#include "messages/describe_configs.h"

/* ConfigResource types. */
enum config_resource {
    CONFIG_RESOURCE_TOPIC = 2,
    CONFIG_RESOURCE_BROKER = 4,
    CONFIG_RESOURCE_BROKER_LOGGER = 8,
    CONFIG_RESOURCE_CLIENT_METRICS = 16,
    CONFIG_RESOURCE_GROUP = 32
};

/* Where is looked up what the configuration does not say. Alive as long as the answer. */
struct describe_sources {
    /* Returns false when there is no topic of that name, else sets its overrides. */
    bool (*find_topic)(void *context, struct view name, const struct topic_override **overrides,
                       uint32_t *count);
    /* What was set while the brokers run for the one whose id is that text (empty: for all); null
     * when nothing was. */
    struct view (*find_setting)(void *context, struct view broker, enum config_key key);
    void *context;
};

/* Fills the answer to a request in any version; whatever it points to lives in the arena, the
 * configuration, the sources or the request. Mistakes of the client are error codes in the
 * answer. STATUS_LIMIT when the arena is full. */
MUST_USE enum status describe_configs(const struct config *config,
                                      const struct describe_sources *sources,
                                      const struct describe_configs_request *request,
                                      struct arena *arena,
                                      struct describe_configs_response *response);

#endif
