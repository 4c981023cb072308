/* The voters on metadata change, one at a time. Owns nothing: each command looks at the voters in
 * the image and records the one that comes or goes; Raft's members follow
 * (server/metadata_members.h). */
#include "broker/controller/controller.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "messages/ottla_records.h"

enum { HOST_MOST_BYTES = 255 };

static struct view key_text(struct arena *arena, int32_t id, struct uuid directory_id)
{
    char directory[UUID_TEXT_LENGTH + 1];
    uuid_text(directory_id, directory);
    return arena_format(arena, "ReplicaKey(id=%d, directoryId=%s)", id,
                        uuid_is_zero(directory_id) ? "<undefined>" : directory);
}

static struct view keys_text(const struct controller *controller, struct arena *arena)
{
    int count;
    const struct quorum_voter *voters = image_voters(controller->image, &count);
    struct view text = VIEW_LITERAL("[");
    assert(count > 0);
    for (int i = 0; i < count; i++) {
        struct view key = key_text(arena, voters[i].node_id, voters[i].directory_id);
        text = arena_format(arena, "%.*s%s%.*s", VIEW_PRINT(text), i > 0 ? ", " : "",
                            VIEW_PRINT(key));
    }
    return arena_format(arena, "%.*s]", VIEW_PRINT(text));
}

static const struct quorum_voter *find_voter(const struct controller *controller, int32_t id)
{
    int count;
    const struct quorum_voter *voters = image_voters(controller->image, &count);
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == id) {
            return &voters[i];
        }
    }
    return NULL;
}

static bool is_fixed(const struct controller *controller)
{
    int count;
    image_voters(controller->image, &count);
    return count == 0;
}

/* Whether it can be the host of an address, also in the file that keeps them. */
static bool is_host(struct view host)
{
    bool fits = host.length > 0 && host.length <= HOST_MOST_BYTES;
    for (size_t i = 0; i < host.length && fits; i++) {
        fits = isgraph(host.data[i]) && strchr(",@/[]", host.data[i]) == NULL;
    }
    return fits;
}

struct refusal controller_add_voter(const struct controller *controller,
                                    const struct add_raft_voter_request *request,
                                    struct view listener, struct arena *arena,
                                    struct record_list *records)
{
    assert(request != NULL && records != NULL);
    const struct add_raft_voter_request_listener *found = NULL;
    if (is_fixed(controller)) {
        return (struct refusal){KAFKA_UNSUPPORTED_VERSION,
                                VIEW_LITERAL("Cluster doesn't support adding voter because the "
                                             "kraft.version feature is 0")};
    }
    for (int32_t i = 0; i < request->listeners_count && found == NULL; i++) {
        bool fits = listener.data == NULL || view_equal(request->listeners[i].name, listener);
        found = fits ? &request->listeners[i] : NULL;
    }
    if (request->voter_id < 0 || found == NULL || !is_host(found->host)) {
        return (struct refusal){
            KAFKA_INVALID_REQUEST,
            arena_format(arena, "Add voter request didn't include the default listener: %.*s",
                         VIEW_PRINT(listener))};
    }
    if (find_voter(controller, request->voter_id) != NULL) {
        struct view key = key_text(arena, request->voter_id, request->voter_directory_id);
        struct view keys = keys_text(controller, arena);
        return (struct refusal){
            KAFKA_DUPLICATE_VOTER,
            arena_format(arena, "The voter id for %.*s is already part of the set of voters %.*s.",
                         VIEW_PRINT(key), VIEW_PRINT(keys))};
    }
    struct voter_record record = {request->voter_id, request->voter_directory_id, found->host,
                                  found->port};
    record_list_add(records, &voter_record_type, 0, &record);
    return (struct refusal){KAFKA_NONE, VIEW_NULL};
}

struct refusal controller_remove_voter(const struct controller *controller,
                                       const struct remove_raft_voter_request *request,
                                       struct arena *arena, struct record_list *records)
{
    assert(request != NULL && records != NULL);
    int count;
    image_voters(controller->image, &count);
    const struct quorum_voter *voter = find_voter(controller, request->voter_id);
    if (is_fixed(controller)) {
        return (struct refusal){KAFKA_UNSUPPORTED_VERSION,
                                VIEW_LITERAL("Cluster doesn't support removing voter because the "
                                             "kraft.version feature is 0")};
    }
    bool is_this = voter != NULL &&
                   (uuid_is_zero(voter->directory_id) || /* not known: it was a fixed voter */
                    uuid_equal(voter->directory_id, request->voter_directory_id));
    if (!is_this || count == 1) {
        struct view key = key_text(arena, request->voter_id, request->voter_directory_id);
        struct view keys = keys_text(controller, arena);
        return (struct refusal){
            KAFKA_VOTER_NOT_FOUND,
            arena_format(arena, "Cannot remove voter %.*s from the set of voters %.*s",
                         VIEW_PRINT(key), VIEW_PRINT(keys))};
    }
    struct remove_voter_record record = {.voter_id = request->voter_id};
    record_list_add(records, &remove_voter_record_type, 0, &record);
    return (struct refusal){KAFKA_NONE, VIEW_NULL};
}

enum kafka_error controller_update_voter(const struct controller *controller,
                                         const struct update_raft_voter_request *request,
                                         bool is_itself, struct view listener,
                                         struct record_list *records)
{
    assert(request != NULL && records != NULL);
    const struct update_raft_voter_request_listener *found = NULL;
    const struct quorum_voter *voter = find_voter(controller, request->voter_id);
    if (is_fixed(controller)) {
        return KAFKA_UNSUPPORTED_VERSION;
    }
    for (int32_t i = 0; i < request->listeners_count && found == NULL; i++) {
        bool fits = listener.data == NULL || view_equal(request->listeners[i].name, listener);
        found = fits ? &request->listeners[i] : NULL;
    }
    bool changes_voters = request->k_raft_version_feature.min_supported_version <= 1 &&
                          request->k_raft_version_feature.max_supported_version >= 1;
    if (request->voter_id < 0 || uuid_is_zero(request->voter_directory_id) || found == NULL ||
        !is_host(found->host) || !changes_voters) {
        return KAFKA_INVALID_REQUEST;
    }
    bool is_this = voter != NULL && uuid_equal(voter->directory_id, request->voter_directory_id);
    bool is_open = voter != NULL && (is_itself || uuid_is_zero(voter->directory_id));
    if (!is_this && !is_open) {
        return KAFKA_VOTER_NOT_FOUND;
    }
    if (!is_this || !view_equal(voter->host, found->host) || voter->port != found->port) {
        struct voter_record record = {request->voter_id, request->voter_directory_id, found->host,
                                      found->port};
        record_list_add(records, &voter_record_type, 0, &record);
    }
    return KAFKA_NONE;
}
