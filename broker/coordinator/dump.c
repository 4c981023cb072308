/* The machine's state as sorted text, for tests and for comparing replicas. The durable and the
 * live dump of a machine at rest are equal. Nothing here can fail. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/coordinator/machine.h"
#include "broker/coordinator/texts.h"

enum { GROUP_VALUE_LIMIT_BYTES = 256 * 1024 * 1024 };

static int by_id(const void *a, const void *b)
{
    const struct stored_group *const *left = a;
    const struct stored_group *const *right = b;
    return view_compare((*left)->id, (*right)->id);
}

static int by_name(const void *a, const void *b)
{
    const struct stored_topic *const *left = a;
    const struct stored_topic *const *right = b;
    return view_compare((*left)->name, (*right)->name);
}

static void dump_member(struct buffer *text, const struct consumer_group *group,
                        const struct consumer_member *member)
{
    coordinator_text_print(text, "  member ");
    coordinator_text_quote(text, member->id);
    coordinator_text_print(text, " instance ");
    coordinator_text_quote(text, member->instance_id);
    coordinator_text_print(text, " client ");
    coordinator_text_quote(text, member->client_id);
    coordinator_text_print(text, " host ");
    coordinator_text_quote(text, member->client_host);
    coordinator_text_print(text, " rebalance_ms %d session_ms %d metadata ",
                           member->rebalance_timeout_ms, member->session_timeout_ms);
    coordinator_text_quote(text, consumer_member_metadata(member, group->protocol_name));
    coordinator_text_print(text, " assignment ");
    coordinator_text_quote(text, member->assignment);
    coordinator_text_print(text, "\n");
}

static void dump_group(struct buffer *text, const struct consumer_group *group)
{
    coordinator_text_print(text, "group ");
    coordinator_text_quote(text, group->id);
    coordinator_text_print(text, " %s", consumer_group_state_text(group->state));
    bool moves = group->state != GROUP_EMPTY && group->state != GROUP_STABLE;
    if (moves || group->unsaved) {
        coordinator_text_print(text, "%s\n", group->unsaved ? " unsaved" : "");
        return;
    }
    coordinator_text_print(text, " generation %d type ", group->generation);
    coordinator_text_quote(text, group->protocol_type);
    coordinator_text_print(text, " protocol ");
    coordinator_text_quote(text, group->protocol_name);
    coordinator_text_print(text, " leader ");
    coordinator_text_quote(text, group->leader == NULL ? VIEW_NULL : group->leader->id);
    coordinator_text_print(text, " since_ms %" PRId64 "\n", group->state_timestamp_ms);
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        dump_member(text, group, member);
    }
}

/* The group as its stored value says. One that has only offsets has no line. */
static void dump_stored_group(struct buffer *text, const struct stored_group *stored)
{
    struct arena arena;
    arena_init(&arena, GROUP_VALUE_LIMIT_BYTES);
    struct group_metadata_value value;
    if (stored->value.data != NULL && coordinator_read_group_value(stored->value, &arena, &value)) {
        struct consumer_group *group = consumer_group_load(stored->id, &value);
        dump_group(text, group);
        consumer_group_free(group);
    }
    arena_free(&arena);
}

static void dump_offset(struct buffer *text, const struct stored_topic *topic,
                        const struct stored_offset *offset)
{
    char id[UUID_TEXT_LENGTH + 1];
    uuid_text(offset->value.topic_id, id);
    coordinator_text_print(text, "  offset ");
    coordinator_text_quote(text, topic->name);
    coordinator_text_print(text,
                           " %d = %" PRId64 " epoch %d committed_ms %" PRId64
                           " expires_ms %" PRId64 " id %s metadata ",
                           offset->partition, offset->value.offset, offset->value.leader_epoch,
                           offset->value.commit_timestamp_ms, offset->value.expire_timestamp_ms,
                           id);
    coordinator_text_quote(text, offset->value.metadata);
    coordinator_text_print(text, "\n");
}

static void dump_offsets(struct buffer *text, const struct stored_group *stored)
{
    size_t count = HASH_COUNT(stored->topics);
    const struct stored_topic **topics = memory_new_zero(count, sizeof(*topics));
    size_t at = 0;
    const struct stored_topic *topic;
    for (topic = stored->topics; topic != NULL; topic = topic->hh.next) {
        topics[at++] = topic;
    }
    assert(at == count);
    qsort(topics, count, sizeof(*topics), by_name);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < topics[i]->count; k++) {
            dump_offset(text, topics[i], &topics[i]->offsets[k]);
        }
    }
    free(topics);
}

/* The stored groups by id; to be released with free(). */
static const struct stored_group **sorted_groups(const struct offset_store *store, size_t *count)
{
    *count = HASH_COUNT(store->groups);
    const struct stored_group **groups = memory_new_zero(*count, sizeof(*groups));
    size_t at = 0;
    const struct stored_group *group;
    for (group = store->groups; group != NULL; group = group->hh.next) {
        groups[at++] = group;
    }
    assert(at == *count);
    qsort(groups, *count, sizeof(*groups), by_id);
    return groups;
}

void coordinator_dump_durable(const struct coordinator *coordinator, struct buffer *text)
{
    size_t count;
    const struct stored_group **groups = sorted_groups(&coordinator->store, &count);
    for (size_t i = 0; i < count; i++) {
        dump_stored_group(text, groups[i]);
        coordinator_text_print(text, "offsets of ");
        coordinator_text_quote(text, groups[i]->id);
        coordinator_text_print(text, "\n");
        dump_offsets(text, groups[i]);
    }
    free(groups);
}

void coordinator_dump_live(const struct coordinator *coordinator, struct buffer *text)
{
    size_t count;
    const struct stored_group **groups = sorted_groups(&coordinator->store, &count);
    for (size_t i = 0; i < count; i++) {
        const struct consumer_group *group = coordinator_group(coordinator, groups[i]->id);
        if (group != NULL && groups[i]->value.data != NULL) {
            dump_group(text, group);
        }
        coordinator_text_print(text, "offsets of ");
        coordinator_text_quote(text, groups[i]->id);
        coordinator_text_print(text, "\n");
        dump_offsets(text, groups[i]);
    }
    free(groups);
}
