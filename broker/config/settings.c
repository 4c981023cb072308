/* Rules about keys alone: the table says of most what they are. Owns nothing. */
#include "broker/config/settings.h"

#include <assert.h>

bool setting_is_key(enum config_key key)
{
    assert(key < CONFIG_KEY_COUNT);
    switch (key) {
    case CONFIG_CORDONED_LOG_DIRS:
        return true;
    case CONFIG_MAX_CONNECTIONS:
    case CONFIG_MAX_CONNECTIONS_PER_IP:
        return false;
    default:
        return config_keys[key].scope == CONFIG_SCOPE_BROKER &&
               config_keys[key].update == CONFIG_UPDATE_CLUSTER_WIDE;
    }
}

bool setting_is_for_one(enum config_key key)
{
    assert(setting_is_key(key));
    return key != CONFIG_MIN_INSYNC_REPLICAS;
}

bool setting_is_for_all(enum config_key key)
{
    assert(setting_is_key(key));
    return config_keys[key].update != CONFIG_UPDATE_PER_BROKER;
}

bool setting_is_for_topics(enum config_key key)
{
    bool found = key == CONFIG_PRODUCER_ID_EXPIRATION_MS;
    for (int i = TOPIC_CONFIG_FIRST; i < TOPIC_CONFIG_FIRST + TOPIC_CONFIG_COUNT; i++) {
        for (int j = 0; j < config_keys[i].synonym_count; j++) {
            found = found || config_keys[i].synonyms[j].key == key;
        }
    }
    return found;
}
