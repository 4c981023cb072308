/* What the metadata says of this node's own configuration (KIP-226): values for all brokers and for
 * this one, which topics without a value of their own follow. Owns the image's configuration and
 * its shared defaults.
 *
 * Happy path: a record of such a value is noted; when the run of records ends, the configuration is
 * made anew from the one that the node started with, and every topic gets a picture with what that
 * makes of its settings. There are many topics, but such records are few. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/config/describe.h"
#include "broker/config/settings.h"
#include "broker/config/value.h"
#include "broker/controller/image_state.h"

/* Whether it is about this node; *origin says how it counts. */
static bool is_of_this(const struct image *image, struct view resource, enum config_origin *origin)
{
    int64_t id = -1;
    *origin = resource.length == 0 ? CONFIG_ORIGIN_ALL_BROKERS : CONFIG_ORIGIN_ONE_BROKER;
    return resource.length == 0 || (config_number_parse(resource, &id) &&
                                    id == config_int(image->own, CONFIG_NODE_ID));
}

/* Whether the configuration says something of this node; *setting is what. */
static bool read_setting(const struct image *image, const struct image_config *from,
                         struct config_setting *setting)
{
    setting->value = from->value;
    return from->resource_type == CONFIG_RESOURCE_BROKER &&
           is_of_this(image, from->resource, &setting->origin) &&
           config_key_find(CONFIG_SCOPE_BROKER, from->name, &setting->key) &&
           setting_is_key(setting->key);
}

void image_settings_note(struct image *image, const struct config_record *record)
{
    struct image_config config = {record->resource_type, record->resource_name, record->name,
                                  record->value};
    struct config_setting setting;
    if (read_setting(image, &config, &setting)) {
        image->settings_changed = true;
        image->topics_changed |= setting_is_for_topics(setting.key);
    }
}

static void make_config(struct image *image)
{
    struct config_setting *settings = memory_new_zero(image->config_count + 1, sizeof *settings);
    struct image_config config;
    size_t count = 0;
    size_t cursor = 0;
    while (image_next_config(image, &cursor, &config)) {
        count += read_setting(image, &config, &settings[count]) ? 1 : 0;
    }
    config_free(image->config);
    image->config = config_with(image->own, settings, count);
    free(settings);
}

struct settings_share *image_settings_share(struct image *image,
                                            const struct topic_override *overrides, uint32_t count)
{
    return count == 0 ? settings_share_ref(image->defaults)
                      : settings_share_new(image->config, overrides, count);
}

static void renew_topic(struct image *image, struct topic_image *topic,
                        struct image_changes *changes)
{
    struct topic_parts parts = topic_image_parts(topic);
    struct settings_share *share =
        image_settings_share(image, topic->overrides, topic->override_count);
    image_replace_topic(image, topic, topic_image_new(&parts, share), changes);
}

/* The index changes meanwhile, so that the topics are listed first. */
static void renew_topics(struct image *image, struct image_changes *changes)
{
    uint32_t count = 0;
    uint32_t cursor = 0;
    struct topic_image *topic;
    struct topic_image **topics = memory_new_zero(image_topic_count(image) + 1, sizeof(void *));
    while ((topic = image_next_topic(image, &cursor)) != NULL) {
        topics[count++] = topic;
    }
    assert(count == image_topic_count(image));
    settings_share_unref(image->defaults);
    image->defaults = settings_share_new(image->config, NULL, 0);
    for (uint32_t i = 0; i < count; i++) {
        renew_topic(image, topics[i], changes);
    }
    free(topics);
}

void image_settings_finish(struct image *image, struct image_changes *changes)
{
    assert(!image->draft.is_active);
    if (image->settings_changed) {
        make_config(image);
    }
    if (image->topics_changed) {
        renew_topics(image, changes);
    }
    image->settings_changed = false;
    image->topics_changed = false;
}
