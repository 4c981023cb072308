/* Reads ConsumerProtocolSubscription blobs (int16 version, body; newer versions only add fields at
 * the end). Happy path: every member's blob is read and the topics are kept once each. One blob
 * that cannot be read makes the group's topics unknown. */
#include "broker/coordinator/subscriptions.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "broker/coordinator/texts.h"
#include "messages/consumer_protocol.h"
#include "protocol/codec.h"

enum { SUBSCRIPTION_LIMIT_BYTES = 64 * 1024 * 1024 };

struct subscribed_topic {
    UT_hash_handle hh;
    struct view name; /* owned */
};

void consumer_group_forget_subscriptions(struct consumer_group *group)
{
    while (group->subscribed != NULL) {
        struct subscribed_topic *topic = group->subscribed;
        HASH_DEL(group->subscribed, topic);
        coordinator_text_free(&topic->name);
        free(topic);
    }
    group->subscribed_known = false;
}

static bool is_listed(const struct consumer_group *group, struct view name)
{
    struct subscribed_topic *topic;
    HASH_FIND(hh, group->subscribed, name.data, name.length, topic);
    return topic != NULL;
}

static void list_topic(struct consumer_group *group, struct view name)
{
    if (!is_listed(group, name)) {
        struct subscribed_topic *topic = memory_new_zero(1, sizeof(*topic));
        topic->name = coordinator_text_copy(name);
        HASH_ADD_KEYPTR(hh, group->subscribed, topic->name.data, topic->name.length, topic);
    }
}

static bool read_subscription(struct consumer_group *group, struct view blob)
{
    if (blob.length < 2) {
        return false;
    }
    int16_t version = (int16_t)load_be16(blob.data);
    int16_t newest = consumer_protocol_subscription_type.last_version;
    if (version < consumer_protocol_subscription_type.first_version) {
        return false;
    }
    struct view body = view_slice(blob, 2, blob.length - 2);
    struct consumer_protocol_subscription subscription;
    struct arena arena;
    arena_init(&arena, SUBSCRIPTION_LIMIT_BYTES);
    bool read = message_decode(&consumer_protocol_subscription_type,
                               version > newest ? newest : version, &body, &arena,
                               &subscription) == STATUS_OK;
    for (int32_t i = 0; read && i < subscription.topics_count; i++) {
        list_topic(group, subscription.topics[i]);
    }
    arena_free(&arena);
    return read;
}

void consumer_group_read_subscriptions(struct consumer_group *group)
{
    consumer_group_forget_subscriptions(group);
    if (!consumer_group_is_consumer(group) ||
        (group->member_count > 0 && group->protocol_name.data == NULL)) {
        return;
    }
    group->subscribed_known = true;
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        if (!read_subscription(group, consumer_member_metadata(member, group->protocol_name))) {
            consumer_group_forget_subscriptions(group);
            return;
        }
    }
}

bool consumer_group_is_subscribed(const struct consumer_group *group, struct view topic)
{
    if (!group->subscribed_known) {
        return consumer_group_is_consumer(group);
    }
    return is_listed(group, topic);
}
