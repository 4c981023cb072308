/* JoinGroup. Happy path: an unknown client is given an id (KIP-394), comes back with it, is added,
 * and waits until the rebalance completes. Static members (KIP-345) are recognised by their
 * instance id and replace their former self. What is wrong with the request is answered at once. */
#include <assert.h>
#include <string.h>

#include "base/uuid.h"
#include "broker/coordinator/machine.h"
#include "broker/coordinator/texts.h"
#include "messages/join_group.h"

enum {
    MEMBER_ID_REQUIRED_VERSION = 4,
    REBALANCE_TIMEOUT_VERSION = 1,
    LONGEST_ID_STEM_BYTES = 32000, /* a member id must fit into an int16 length */
    PENDING_MEMBERS_MAX = 100000
};

/* One JoinGroup in work. */
struct joining {
    struct coordinator *coordinator;
    const struct coordinator_context *context;
    const struct join_group_request *message;
    struct consumer_group *group;
};

static void refuse(const struct joining *joining, struct view member_id, enum kafka_error error)
{
    struct parked_answer to = coordinator_parked(joining->context);
    coordinator_answer_join_error(joining->coordinator, &to, member_id, error);
}

static void append_hex(struct buffer *text, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        coordinator_text_print(text, "%02x", bytes[i]);
    }
}

/* The client id or instance id, a dash, and a random id in its 8-4-4-4-12 form. */
static struct view make_member_id(const struct joining *joining, struct buffer *text)
{
    struct view stem = joining->message->group_instance_id.data != NULL
                           ? joining->message->group_instance_id
                           : joining->context->client_id;
    size_t length = stem.length < LONGEST_ID_STEM_BYTES ? stem.length : LONGEST_ID_STEM_BYTES;
    buffer_append(text, stem.data, length);
    struct uuid uuid = joining->coordinator->host.new_uuid(joining->coordinator->host.owner);
    static const size_t parts[] = {4, 2, 2, 2, 6};
    size_t at = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        coordinator_text_print(text, "-");
        append_hex(text, uuid.bytes + at, parts[i]);
        at += parts[i];
    }
    assert(at == UUID_BYTES);
    return buffer_view(text);
}

/* A client may leave its name out; records may not. */
static struct view or_empty(struct view text)
{
    return text.data == NULL ? VIEW_EMPTY : text;
}

static struct member_details details_of(const struct joining *joining, struct view member_id)
{
    const struct join_group_request *message = joining->message;
    return (struct member_details){
        .id = member_id,
        .instance_id = message->group_instance_id,
        .client_id = or_empty(joining->context->client_id),
        .client_host = or_empty(joining->context->client_host),
        .protocol_type = message->protocol_type,
        .session_timeout_ms = message->session_timeout_ms,
        .rebalance_timeout_ms = joining->context->version < REBALANCE_TIMEOUT_VERSION
                                    ? message->session_timeout_ms
                                    : message->rebalance_timeout_ms,
        .protocols = message->protocols,
        .protocol_count = (size_t)message->protocols_count,
    };
}

static struct batch *add_member(const struct joining *joining, struct view member_id)
{
    struct consumer_group *group = joining->group;
    struct member_details details = details_of(joining, member_id);
    struct pending_member *pending = consumer_group_pending(group, member_id);
    assert(pending == NULL || joining->message->group_instance_id.data == NULL);
    struct consumer_member *member = consumer_group_add(group, &details);
    if (pending != NULL) {
        coordinator_remove_pending(joining->coordinator, pending);
    }
    if (group->state == GROUP_PREPARING_REBALANCE && group->previous == GROUP_EMPTY) {
        group->new_member_added = true;
    }
    coordinator_park_join(joining->coordinator, member, joining->context);
    coordinator_touch_new_member(joining->coordinator, member);
    return coordinator_rebalance(joining->coordinator, group, "a member joined");
}

static struct batch *update_member(const struct joining *joining, struct consumer_member *member,
                                   const char *reason)
{
    assert(member->group == joining->group);
    struct member_details details = details_of(joining, member->id);
    consumer_group_update(joining->group, member, &details);
    coordinator_park_join(joining->coordinator, member, joining->context);
    return coordinator_rebalance(joining->coordinator, joining->group, reason);
}

/* Takes what the member supports out of it, for the case that the append fails. */
static struct static_undo make_undo(const struct consumer_group *group,
                                    struct consumer_member *member)
{
    struct static_undo undo = {
        .old_id = coordinator_text_copy(member->id),
        .old_leader =
            coordinator_text_copy(group->leader == NULL ? VIEW_NULL : group->leader->id),
        .session_timeout_ms = member->session_timeout_ms,
        .rebalance_timeout_ms = member->rebalance_timeout_ms,
    };
    consumer_member_copy_protocols(member, &undo.protocols, &undo.protocol_count);
    return undo;
}

/* Stores the new id of a member of a stable group whose protocol stays the same: nobody else has to
 * notice. The answer waits for the record. */
static struct batch *store_static(const struct joining *joining, struct consumer_member *member,
                                  struct static_undo *undo)
{
    struct batch *batch = coordinator_emit_group(joining->coordinator, joining->group,
                                                 BATCH_STATIC_MEMBER, NULL);
    assert(undo->old_id.data != NULL && batch->undo.old_id.data == NULL);
    batch->member = coordinator_text_copy(member->id);
    batch->undo = *undo;
    *undo = (struct static_undo){0};
    return batch;
}

static struct batch *after_replacement(const struct joining *joining,
                                       struct consumer_member *member, struct static_undo *undo)
{
    struct consumer_group *group = joining->group;
    switch (group->state) {
    case GROUP_STABLE:
        if (view_equal(group->protocol_name, consumer_group_select_protocol(group))) {
            return store_static(joining, member, undo);
        }
        return coordinator_prepare(joining->coordinator, group,
                                   "a static member came back with other protocols");
    case GROUP_COMPLETING_REBALANCE:
        return coordinator_prepare(joining->coordinator, group,
                                   "a static member came back while the assignment is made");
    default:
        return coordinator_maybe_complete_join(joining->coordinator, group);
    }
}

/* A static member that comes back: its former self is fenced off, its assignment is kept. */
static struct batch *replace_static(const struct joining *joining, struct consumer_member *member,
                                    struct view new_id)
{
    struct coordinator *coordinator = joining->coordinator;
    coordinator_fail_join(coordinator, member, member->id, KAFKA_FENCED_INSTANCE_ID);
    coordinator_finish_sync(coordinator, member, KAFKA_FENCED_INSTANCE_ID);
    struct static_undo undo = make_undo(joining->group, member);
    consumer_group_rename(joining->group, member, new_id);
    coordinator_touch_member(coordinator, member);
    struct member_details details = details_of(joining, new_id);
    consumer_group_update(joining->group, member, &details);
    coordinator_park_join(coordinator, member, joining->context);
    assert(member->join.waiting && !member->sync.waiting);
    struct batch *batch = after_replacement(joining, member, &undo);
    coordinator_static_undo_free(&undo);
    return batch;
}

static struct batch *join_dynamic(const struct joining *joining, struct view new_id)
{
    if (joining->context->version < MEMBER_ID_REQUIRED_VERSION) {
        return add_member(joining, new_id);
    }
    if (HASH_COUNT(joining->group->pending) >= PENDING_MEMBERS_MAX) {
        refuse(joining, VIEW_EMPTY, KAFKA_GROUP_MAX_SIZE_REACHED);
        return NULL;
    }
    struct pending_member *pending = consumer_group_add_pending(joining->group, new_id);
    coordinator_timer_start(&joining->coordinator->timers, &pending->session, TIMER_PENDING_MEMBER,
                            joining->coordinator->now_ms + joining->message->session_timeout_ms);
    refuse(joining, new_id, KAFKA_MEMBER_ID_REQUIRED);
    return NULL;
}

static bool is_supported(const struct joining *joining)
{
    const struct join_group_request *message = joining->message;
    return consumer_group_supports(joining->group, message->protocol_type, message->protocols,
                                   (size_t)message->protocols_count);
}

/* A client without an id. */
static struct batch *join_new(const struct joining *joining)
{
    if (!is_supported(joining)) {
        refuse(joining, VIEW_EMPTY, KAFKA_INCONSISTENT_GROUP_PROTOCOL);
        return NULL;
    }
    struct buffer text = {0};
    struct view new_id = make_member_id(joining, &text);
    struct view instance_id = joining->message->group_instance_id;
    struct consumer_member *former =
        instance_id.data == NULL ? NULL
                                 : consumer_group_static_member(joining->group, instance_id);
    struct batch *batch;
    if (former != NULL) {
        batch = replace_static(joining, former, new_id);
    } else if (instance_id.data != NULL) {
        batch = add_member(joining, new_id);
    } else {
        batch = join_dynamic(joining, new_id);
    }
    buffer_free(&text);
    return batch;
}

/* A member that has not missed anything gets the generation's answer again. */
static struct batch *answer_again(const struct joining *joining,
                                  const struct consumer_member *member)
{
    struct parked_answer to = coordinator_parked(joining->context);
    assert(!member->is_new);
    coordinator_answer_join(joining->coordinator, &to, member);
    return NULL;
}

static struct batch *rejoin(const struct joining *joining, struct consumer_member *member)
{
    const struct join_group_request *message = joining->message;
    struct consumer_group *group = joining->group;
    bool same =
        consumer_member_matches(member, message->protocols, (size_t)message->protocols_count);
    switch (group->state) {
    case GROUP_PREPARING_REBALANCE:
        return update_member(joining, member, "a member rejoined");
    case GROUP_COMPLETING_REBALANCE:
        return same ? answer_again(joining, member)
                    : update_member(joining, member, "a member changed what it supports");
    case GROUP_STABLE:
        if (group->leader == member) {
            return update_member(joining, member, "the leader asked for a rebalance");
        }
        return same ? answer_again(joining, member)
                    : update_member(joining, member, "a member changed what it supports");
    default:
        refuse(joining, message->member_id, KAFKA_UNKNOWN_MEMBER_ID);
        return NULL;
    }
}

/* A client with an id. */
static struct batch *join_known(const struct joining *joining)
{
    const struct join_group_request *message = joining->message;
    if (!is_supported(joining)) {
        refuse(joining, message->member_id, KAFKA_INCONSISTENT_GROUP_PROTOCOL);
        return NULL;
    }
    if (consumer_group_pending(joining->group, message->member_id) != NULL) {
        if (message->group_instance_id.data != NULL) {
            refuse(joining, VIEW_EMPTY, KAFKA_UNKNOWN_SERVER_ERROR);
            return NULL;
        }
        return add_member(joining, message->member_id);
    }
    enum kafka_error error = consumer_group_check_member(joining->group, message->member_id,
                                                         message->group_instance_id);
    if (error != KAFKA_NONE) {
        refuse(joining, message->member_id, error);
        return NULL;
    }
    return rejoin(joining, consumer_group_member(joining->group, message->member_id));
}

/* Whether group.max.size leaves room for this one. Members that wait already are counted, not all
 * there are, so that after the limit was lowered the last to rejoin are the ones left out. */
static bool has_room(const struct joining *joining)
{
    const struct consumer_group *group = joining->group;
    size_t limit = (size_t)joining->coordinator->config.group_max_size;
    const struct consumer_member *member =
        consumer_group_member(group, joining->message->member_id);
    switch (group->state) {
    case GROUP_EMPTY:
        return true;
    case GROUP_PREPARING_REBALANCE:
        return (member != NULL && member->join.waiting) || group->joining_count < limit;
    default:
        return member != NULL || group->member_count < limit;
    }
}

static struct batch *turn_away(const struct joining *joining)
{
    struct coordinator *coordinator = joining->coordinator;
    struct view id = joining->message->member_id;
    struct consumer_member *member = consumer_group_member(joining->group, id);
    struct pending_member *pending = consumer_group_pending(joining->group, id);
    if (member != NULL) {
        coordinator_remove_member(coordinator, member);
    }
    if (pending != NULL) {
        coordinator_remove_pending(coordinator, pending);
    }
    refuse(joining, VIEW_EMPTY, KAFKA_GROUP_MAX_SIZE_REACHED);
    return coordinator_maybe_complete_join(coordinator, joining->group);
}

static enum kafka_error check_request(const struct joining *joining)
{
    const struct coordinator_config *config = &joining->coordinator->config;
    const struct join_group_request *message = joining->message;
    if (message->group_id.length == 0) {
        return KAFKA_INVALID_GROUP_ID;
    }
    if (message->session_timeout_ms < config->min_session_timeout_ms ||
        message->session_timeout_ms > config->max_session_timeout_ms) {
        return KAFKA_INVALID_SESSION_TIMEOUT;
    }
    if (coordinator_group(joining->coordinator, message->group_id) == NULL &&
        message->member_id.length > 0) {
        return KAFKA_UNKNOWN_MEMBER_ID;
    }
    return KAFKA_NONE;
}

void coordinator_handle_join(const struct request_context *request, const void *message)
{
    struct coordinator *coordinator = request->coordinator;
    struct joining joining = {
        .coordinator = coordinator, .context = request->context, .message = message};
    enum kafka_error error = check_request(&joining);
    if (error != KAFKA_NONE) {
        refuse(&joining, joining.message->member_id, error);
        return;
    }
    joining.group = coordinator_group(coordinator, joining.message->group_id);
    bool is_new = joining.group == NULL;
    if (is_new) {
        joining.group = coordinator_group_make(coordinator, joining.message->group_id);
    }
    struct batch *batch;
    if (!has_room(&joining)) {
        batch = turn_away(&joining);
    } else if (joining.message->member_id.length == 0) {
        batch = join_new(&joining);
    } else {
        batch = join_known(&joining);
    }
    if (is_new && batch == NULL) {
        (void)coordinator_emit_new_group(coordinator, joining.group);
    }
}
