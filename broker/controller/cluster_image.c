/* The picture of the brokers: made whole each time, everything in its own arena, freed with the
 * last reference. There are few brokers and they change seldom. Cannot fail: a broker's texts were
 * bounded when its record was read. */
#include "broker/controller/cluster_image.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/config/describe.h"
#include "broker/config/settings.h"
#include "broker/config/value.h"

struct cluster_image *cluster_image_ref(struct cluster_image *image)
{
    assert(image != NULL);
    unsigned before = atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
    assert(before > 0);
    return image;
}

void cluster_image_unref(struct cluster_image *image)
{
    if (image == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        arena_free(&image->arena);
        free(image);
    }
}

static void *take(struct cluster_image *image, size_t count, size_t size)
{
    void *taken = arena_take(&image->arena, count + 1, size);
    assert(taken != NULL);
    return taken;
}

/* Everything that the broker points to, copied. */
static struct cluster_broker copy_broker(struct cluster_image *image,
                                         const struct cluster_broker *from)
{
    struct cluster_broker copy = *from;
    assert(from->endpoint_count >= 0);
    struct cluster_endpoint *endpoints =
        take(image, (size_t)from->endpoint_count, sizeof *endpoints);
    for (int32_t i = 0; i < from->endpoint_count; i++) {
        endpoints[i] = from->endpoints[i];
        endpoints[i].name = arena_copy(&image->arena, from->endpoints[i].name);
        endpoints[i].host = arena_copy(&image->arena, from->endpoints[i].host);
    }
    copy.rack = arena_copy(&image->arena, from->rack);
    copy.endpoints = endpoints;
    return copy;
}

/* The registration as a broker; its texts stay the record's. */
static struct cluster_broker broker_of(struct cluster_image *image, const struct image *metadata,
                                       const struct register_broker_record *record)
{
    int32_t count = record->end_points_count < 0 ? 0 : record->end_points_count;
    struct cluster_endpoint *endpoints = take(image, (size_t)count, sizeof *endpoints);
    for (int32_t i = 0; i < count; i++) {
        endpoints[i] = (struct cluster_endpoint){
            .name = record->end_points[i].name,
            .host = record->end_points[i].host,
            .port = record->end_points[i].port,
            .security_protocol = record->end_points[i].security_protocol};
    }
    return (struct cluster_broker){.id = record->broker_id,
                                   .incarnation = record->incarnation_id,
                                   .epoch = record->broker_epoch,
                                   .rack = record->rack,
                                   .is_fenced = record->fenced,
                                   .is_stopping = record->in_controlled_shutdown,
                                   .is_cordoned = image_broker_is_cordoned(metadata, record),
                                   .is_cordoned_itself = record->cordoned_log_dirs_count > 0,
                                   .endpoints = endpoints,
                                   .endpoint_count = count};
}

/* A broker's id as the name of a resource. */
static struct view id_text(struct cluster_image *image, int32_t id)
{
    struct view text = arena_format(&image->arena, "%d", id);
    assert(text.length > 0);
    return text;
}

/* Everything that is set for brokers, be they registered or not. */
static void copy_settings(struct cluster_image *image, const struct image *metadata)
{
    struct image_config config;
    size_t count = 0;
    size_t cursor = 0;
    while (image_next_config(metadata, &cursor, &config)) {
        count++;
    }
    struct cluster_setting *settings = take(image, count, sizeof *settings);
    cursor = 0;
    while (image_next_config(metadata, &cursor, &config)) {
        enum config_key key = CONFIG_KEY_COUNT;
        if (config.resource_type == CONFIG_RESOURCE_BROKER &&
            config_key_find(CONFIG_SCOPE_BROKER, config.name, &key) && setting_is_key(key)) {
            settings[image->setting_count++] =
                (struct cluster_setting){arena_copy(&image->arena, config.resource), key,
                                         arena_copy(&image->arena, config.value)};
        }
    }
    image->settings = settings;
}

/* A throttle's rate of the broker, or of all. */
static int64_t rate_of(const struct cluster_image *image, struct view broker, enum config_key key)
{
    int64_t rate = 0;
    struct view value = cluster_image_setting(image, broker, key);
    if (value.data == NULL) {
        value = cluster_image_setting(image, VIEW_EMPTY, key);
    }
    bool is_set = value.data != NULL && config_number_parse(config_trim(value), &rate);
    assert(!is_set || rate >= 0);
    return is_set ? rate : 0;
}

static void set_settings(struct cluster_image *image, const struct image *metadata,
                         struct cluster_broker *brokers)
{
    copy_settings(image, metadata);
    for (int32_t i = 0; i < image->broker_count; i++) {
        struct view id = id_text(image, brokers[i].id);
        brokers[i].leader_rate = rate_of(image, id, CONFIG_LEADER_REPLICATION_THROTTLED_RATE);
        brokers[i].follower_rate = rate_of(image, id, CONFIG_FOLLOWER_REPLICATION_THROTTLED_RATE);
    }
}

static void copy_voters(struct cluster_image *image, const struct image *metadata)
{
    const struct quorum_voter *voters = image_voters(metadata, &image->voter_count);
    struct quorum_voter *copies = take(image, (size_t)image->voter_count, sizeof *copies);
    for (int i = 0; i < image->voter_count; i++) {
        copies[i] = voters[i];
        copies[i].host = arena_copy(&image->arena, voters[i].host);
    }
    image->voters = copies;
}

struct cluster_image *cluster_image_new(const struct image *metadata,
                                        const struct cluster_broker *self)
{
    assert(self != NULL);
    struct cluster_image *image = memory_new_zero(1, sizeof *image);
    int registered = metadata == NULL ? 0 : image_broker_count(metadata);
    atomic_init(&image->references, 1);
    arena_init(&image->arena, SIZE_MAX / 2);
    struct cluster_broker *brokers = take(image, (size_t)registered + 1, sizeof *brokers);
    bool has_self = false;
    for (int i = 0; i < registered; i++) {
        struct cluster_broker broker = broker_of(image, metadata, image_broker(metadata, i));
        if (!has_self && broker.id >= self->id) {
            /* An earlier process of this node had other endpoints, maybe. */
            bool is_this = broker.id == self->id &&
                           uuid_equal(broker.incarnation, self->incarnation);
            brokers[image->broker_count++] = copy_broker(image, is_this ? &broker : self);
            image->is_registered = is_this;
            has_self = true;
        }
        if (broker.id != self->id) {
            brokers[image->broker_count++] = copy_broker(image, &broker);
        }
    }
    if (!has_self) {
        brokers[image->broker_count++] = copy_broker(image, self);
    }
    image->brokers = brokers;
    if (metadata != NULL) {
        set_settings(image, metadata, brokers);
        copy_voters(image, metadata);
    }
    return image;
}

const struct cluster_broker *cluster_image_find(const struct cluster_image *image, int32_t id)
{
    assert(image != NULL && image->broker_count > 0);
    for (int32_t i = 0; i < image->broker_count; i++) {
        if (image->brokers[i].id == id) {
            return &image->brokers[i];
        }
    }
    return NULL;
}

struct view cluster_image_setting(const struct cluster_image *image, struct view broker,
                                  enum config_key key)
{
    assert(image != NULL && key < CONFIG_KEY_COUNT);
    for (int i = 0; i < image->setting_count; i++) {
        const struct cluster_setting *setting = &image->settings[i];
        if (setting->key == key && view_equal(setting->broker, broker)) {
            return setting->value;
        }
    }
    return VIEW_NULL;
}

const struct cluster_endpoint *cluster_broker_endpoint(const struct cluster_broker *broker,
                                                       struct view listener)
{
    assert(broker != NULL);
    for (int32_t i = 0; i < broker->endpoint_count; i++) {
        if (view_equal(broker->endpoints[i].name, listener)) {
            return &broker->endpoints[i];
        }
    }
    return NULL;
}
