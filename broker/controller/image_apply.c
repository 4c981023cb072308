/* Metadata records into the image. Happy path: the record is opened, its type looked up in one
 * table, decoded into a scratch arena and applied. A record that contradicts the image is corrupt:
 * every one was made by a command that checked it. */
#include "broker/controller/image_state.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/config/topic_name.h"
#include "broker/config/value.h"
#include "messages/ottla_records.h"
#include "protocol/codec.h"

enum { SCRATCH_BYTES = 64 << 20, LARGEST_RECORD_STRUCT = 512, CONFIG_RESOURCE_TOPIC_TYPE = 2 };

enum { CONFIG_RESOURCE_BROKER_TYPE = 4 };

static enum status apply_topic(struct image *image, const void *message,
                               struct image_changes *changes)
{
    const struct topic_record *record = message;
    image_draft_finish(image, changes);
    bool is_known = image_topic(image, record->name) != NULL ||
                    image_topic_by_id(image, record->topic_id) != NULL;
    bool is_named = record->name.length > 0 && record->name.length <= TOPIC_NAME_LONGEST;
    if (is_known || !is_named || uuid_is_zero(record->topic_id)) {
        return STATUS_CORRUPT;
    }
    image_draft_new(image, record->name, record->topic_id);
    return STATUS_OK;
}

static enum status apply_groups(struct image *image, const void *message,
                                struct image_changes *changes)
{
    const struct partition_groups_record *record = message;
    if (!image_draft_open_id(image, record->topic_id, changes)) {
        return STATUS_CORRUPT;
    }
    uint32_t count = record->groups_count < 0 ? 0 : (uint32_t)record->groups_count;
    struct partition_group *groups = memory_new_zero(count, sizeof *groups);
    for (uint32_t i = 0; i < count; i++) {
        groups[i] = (struct partition_group){.id = (uint64_t)record->groups[i].group_id,
                                             .replicas = record->groups[i].replicas,
                                             .replica_count = record->groups[i].replicas_count};
    }
    bool fits = image_draft_add(image, groups, count, record->first_partition, record->slots);
    free(groups);
    return fits ? STATUS_OK : STATUS_CORRUPT;
}

static int32_t *copy_replicas(int32_t *to, const int32_t *from, int32_t count)
{
    if (count > 0) {
        memcpy(to, from, (size_t)count * sizeof *to);
    }
    return to + count;
}

static enum status apply_group_replicas(struct image *image, const void *message,
                                        struct image_changes *changes)
{
    const struct group_replicas_record *record = message;
    int32_t original = record->replicas_count;
    int32_t target = record->target_count;
    int32_t others = record->others_count;
    if (original < 1 || original > INT16_MAX || target < 0 || target > INT16_MAX || others < 0 ||
        (target == 0 && others > 0) || !image_draft_open_id(image, record->topic_id, changes)) {
        return STATUS_CORRUPT;
    }
    int32_t *numbers = memory_new_zero((size_t)original + (size_t)target + (size_t)others + 1,
                                       sizeof *numbers);
    struct partition_group group = {.id = (uint64_t)record->group_id, .replicas = numbers};
    int32_t *end = copy_replicas(numbers, record->target, target);
    end = copy_replicas(end, record->others, others);
    end = copy_replicas(end, record->replicas, original);
    *end = record->move_id;
    group.replica_count = target == 0 ? original : target + others;
    group.target_count = (int16_t)target;
    group.original_count = target == 0 ? 0 : (int16_t)original;
    bool is_there = image_draft_move(image, &group);
    free(numbers);
    return is_there ? STATUS_OK : STATUS_CORRUPT;
}

static enum status apply_remove(struct image *image, const void *message,
                                struct image_changes *changes)
{
    const struct remove_topic_record *record = message;
    image_draft_finish(image, changes);
    struct topic_image *topic = image_topic_by_id(image, record->topic_id);
    if (topic == NULL) {
        return STATUS_CORRUPT;
    }
    image_remove_topic(image, topic, changes);
    return STATUS_OK;
}

/* A key or value that this version does not take was written by a later one: left out, so that
 * going back a version is possible. */
static enum status apply_topic_config(struct image *image, const struct config_record *record,
                                      struct image_changes *changes)
{
    if (!image_draft_open_name(image, record->resource_name, changes)) {
        return STATUS_CORRUPT;
    }
    enum config_key key = CONFIG_KEY_COUNT;
    if (!config_key_find(CONFIG_SCOPE_TOPIC, record->name, &key)) {
        return STATUS_OK;
    }
    struct arena arena;
    arena_init(&arena, SCRATCH_BYTES);
    struct topic_override override = {key, VIEW_NULL};
    struct view why = VIEW_NULL;
    enum status status = STATUS_OK;
    if (record->value.data != NULL) {
        status = topic_override_check(record->name, record->value, &arena, &override, &why);
    }
    if (status == STATUS_OK) {
        image_draft_override(image, key, override.value);
    } else {
        log_warn("metadata", "a setting of topic %.*s is left out: %.*s",
                 VIEW_PRINT(record->resource_name), VIEW_PRINT(why));
    }
    arena_free(&arena);
    return STATUS_OK;
}

static struct image_config_entry *find_config(struct image *image,
                                              const struct config_record *record)
{
    for (size_t i = 0; i < image->config_count; i++) {
        struct image_config_entry *entry = &image->configs[i];
        if (entry->resource_type == record->resource_type &&
            view_is(record->resource_name, entry->resource_name) &&
            view_is(record->name, entry->name)) {
            return entry;
        }
    }
    return NULL;
}

static void remove_config(struct image *image, struct image_config_entry *entry)
{
    free(entry->resource_name);
    free(entry->name);
    free(entry->value);
    *entry = image->configs[--image->config_count];
}

static enum status apply_config(struct image *image, const void *message,
                                struct image_changes *changes)
{
    const struct config_record *record = message;
    if (record->resource_type == CONFIG_RESOURCE_TOPIC_TYPE) {
        return apply_topic_config(image, record, changes);
    }
    struct image_config_entry *entry = find_config(image, record);
    if (entry != NULL) {
        remove_config(image, entry);
    }
    changes->brokers_changed |= record->resource_type == CONFIG_RESOURCE_BROKER_TYPE;
    if (record->value.data != NULL) {
        image->configs = memory_resize(image->configs, image->config_count + 1,
                                       sizeof *image->configs);
        image->configs[image->config_count++] = (struct image_config_entry){
            record->resource_type, view_copy_text(record->resource_name),
            view_copy_text(record->name), view_copy_text(record->value)};
    }
    image_settings_note(image, record);
    return STATUS_OK;
}

static int broker_place(const struct image *image, int32_t id)
{
    int at = 0;
    while (at < image->broker_count && image->brokers[at].record.broker_id < id) {
        at++;
    }
    return at;
}

static bool is_broker(const struct image *image, int at, int32_t id)
{
    return at < image->broker_count && image->brokers[at].record.broker_id == id;
}

static void remove_broker(struct image *image, int at)
{
    arena_free(&image->brokers[at].arena);
    size_t after = (size_t)(image->broker_count - at - 1);
    memmove(&image->brokers[at], &image->brokers[at + 1], after * sizeof *image->brokers);
    image->broker_count--;
}

/* A copy that lives in the entry's own arena: encoded and decoded again. */
static void copy_broker(const struct register_broker_record *record,
                        struct image_broker_entry *entry)
{
    struct buffer bytes = {0};
    int16_t version = register_broker_record_type.last_version;
    arena_init(&entry->arena, SCRATCH_BYTES);
    enum status status = message_encode_to(&register_broker_record_type, version, record, &bytes);
    struct view copy = arena_copy(&entry->arena, buffer_view(&bytes));
    buffer_free(&bytes);
    if (status == STATUS_OK) {
        status = message_decode_whole(&register_broker_record_type, version, copy, &entry->arena,
                                      &entry->record);
    }
    assert(status == STATUS_OK);
}

static enum status apply_register(struct image *image, const void *message,
                                  struct image_changes *changes)
{
    const struct register_broker_record *record = message;
    int at = broker_place(image, record->broker_id);
    if (is_broker(image, at, record->broker_id)) {
        remove_broker(image, at);
    }
    image->brokers = memory_resize(image->brokers, (size_t)image->broker_count + 1,
                                   sizeof *image->brokers);
    size_t after = (size_t)(image->broker_count - at);
    memmove(&image->brokers[at + 1], &image->brokers[at], after * sizeof *image->brokers);
    copy_broker(record, &image->brokers[at]);
    image->broker_count++;
    changes->brokers_changed = true;
    return STATUS_OK;
}

static enum status apply_unregister(struct image *image, const void *message,
                                    struct image_changes *changes)
{
    const struct unregister_broker_record *record = message;
    int at = broker_place(image, record->broker_id);
    if (!is_broker(image, at, record->broker_id)) {
        return STATUS_CORRUPT;
    }
    remove_broker(image, at);
    changes->brokers_changed = true;
    return STATUS_OK;
}

/* The registration that a later record changes; null when it is not there, or another one is. */
static struct register_broker_record *find_registration(struct image *image, int32_t id,
                                                        int64_t epoch)
{
    int at = broker_place(image, id);
    if (!is_broker(image, at, id) || image->brokers[at].record.broker_epoch != epoch) {
        return NULL;
    }
    return &image->brokers[at].record;
}

static enum status set_fenced(struct image *image, int32_t id, int64_t epoch, bool fenced,
                              struct image_changes *changes)
{
    struct register_broker_record *broker = find_registration(image, id, epoch);
    if (broker == NULL) {
        return STATUS_CORRUPT;
    }
    broker->fenced = fenced;
    changes->brokers_changed = true;
    return STATUS_OK;
}

static enum status apply_fence(struct image *image, const void *message,
                               struct image_changes *changes)
{
    const struct fence_broker_record *record = message;
    return set_fenced(image, record->id, record->epoch, true, changes);
}

static enum status apply_unfence(struct image *image, const void *message,
                                 struct image_changes *changes)
{
    const struct unfence_broker_record *record = message;
    return set_fenced(image, record->id, record->epoch, false, changes);
}

/* A registration is never written to: the entry is made anew. */
static void cordon(struct image_broker_entry *entry,
                   const struct broker_registration_change_record *record)
{
    struct register_broker_record changed = entry->record;
    struct arena before = entry->arena;
    changed.cordoned_log_dirs = record->cordoned_log_dirs;
    changed.cordoned_log_dirs_count = record->cordoned_log_dirs_count;
    copy_broker(&changed, entry);
    arena_free(&before);
}

/* Each of the fields leaves what it is about as it was when it is 0 (KIP-841), the cordoned
 * directories when they are null (KIP-1066). */
static enum status apply_registration_change(struct image *image, const void *message,
                                             struct image_changes *changes)
{
    const struct broker_registration_change_record *record = message;
    struct register_broker_record *broker =
        find_registration(image, record->broker_id, record->broker_epoch);
    bool is_known = record->fenced >= -1 && record->fenced <= 1 &&
                    record->in_controlled_shutdown >= 0 && record->in_controlled_shutdown <= 1;
    if (broker == NULL || !is_known) {
        return STATUS_CORRUPT;
    }
    broker->fenced = record->fenced == 0 ? broker->fenced : record->fenced > 0;
    broker->in_controlled_shutdown |= record->in_controlled_shutdown == 1;
    if (record->cordoned_log_dirs_count >= 0) {
        cordon(container_of(broker, struct image_broker_entry, record), record);
    }
    changes->brokers_changed = true;
    return STATUS_OK;
}

static int voter_place(const struct image *image, int32_t id)
{
    int at = 0;
    while (at < image->voter_count && image->voters[at].node_id < id) {
        at++;
    }
    return at;
}

static void remove_voter(struct image *image, int at)
{
    assert(at >= 0 && at < image->voter_count);
    free((void *)(uintptr_t)image->voters[at].host.data);
    size_t after = (size_t)(image->voter_count - at - 1);
    memmove(&image->voters[at], &image->voters[at + 1], after * sizeof *image->voters);
    image->voter_count--;
}

static bool is_voter(const struct image *image, int at, int32_t id)
{
    return at < image->voter_count && image->voters[at].node_id == id;
}

static enum status apply_voter(struct image *image, const void *message,
                               struct image_changes *changes)
{
    const struct voter_record *record = message;
    assert(image->voter_count >= 0);
    int at = voter_place(image, record->voter_id);
    if (is_voter(image, at, record->voter_id)) {
        remove_voter(image, at);
    }
    image->voters = memory_resize(image->voters, (size_t)image->voter_count + 1,
                                  sizeof *image->voters);
    size_t after = (size_t)(image->voter_count - at);
    memmove(&image->voters[at + 1], &image->voters[at], after * sizeof *image->voters);
    image->voters[at] = (struct quorum_voter){
        .node_id = record->voter_id,
        .directory_id = record->directory_id,
        .host = {(const uint8_t *)view_copy_text(record->host), record->host.length},
        .port = record->port};
    image->voter_count++;
    changes->brokers_changed = true;
    return STATUS_OK;
}

static enum status apply_remove_voter(struct image *image, const void *message,
                                      struct image_changes *changes)
{
    const struct remove_voter_record *record = message;
    int at = voter_place(image, record->voter_id);
    if (!is_voter(image, at, record->voter_id)) {
        return STATUS_CORRUPT;
    }
    remove_voter(image, at);
    changes->brokers_changed = true;
    return STATUS_OK;
}

static enum status apply_producer_ids(struct image *image, const void *message,
                                      struct image_changes *changes)
{
    (void)changes;
    const struct producer_ids_record *record = message;
    if (record->next_producer_id < image->next_producer_id) {
        return STATUS_CORRUPT;
    }
    if (!planted(PLANT_PRODUCER_IDS_REUSED)) {
        image->next_producer_id = record->next_producer_id;
    }
    return STATUS_OK;
}

static enum status apply_next_group(struct image *image, const void *message,
                                    struct image_changes *changes)
{
    (void)changes;
    const struct next_group_record *record = message;
    uint64_t next = (uint64_t)record->next_group_id;
    image->next_group_id = next > image->next_group_id ? next : image->next_group_id;
    return STATUS_OK;
}

static enum status apply_cluster(struct image *image, const void *message,
                                 struct image_changes *changes)
{
    (void)changes;
    const struct cluster_record *record = message;
    free((void *)(uintptr_t)image->cluster_id.data);
    image->cluster_id = view_text(view_copy_text(record->cluster_id));
    return STATUS_OK;
}

/* Every kind of record that changes the image. */
static const struct {
    const struct message_type *type;
    enum status (*apply)(struct image *image, const void *message, struct image_changes *changes);
} handlers[] = {
    {&topic_record_type, apply_topic},
    {&partition_groups_record_type, apply_groups},
    {&group_replicas_record_type, apply_group_replicas},
    {&config_record_type, apply_config},
    {&remove_topic_record_type, apply_remove},
    {&register_broker_record_type, apply_register},
    {&unregister_broker_record_type, apply_unregister},
    {&fence_broker_record_type, apply_fence},
    {&unfence_broker_record_type, apply_unfence},
    {&broker_registration_change_record_type, apply_registration_change},
    {&voter_record_type, apply_voter},
    {&remove_voter_record_type, apply_remove_voter},
    {&producer_ids_record_type, apply_producer_ids},
    {&next_group_record_type, apply_next_group},
    {&cluster_record_type, apply_cluster},
};

enum { HANDLER_COUNT = sizeof handlers / sizeof *handlers };

static bool is_known_record(int16_t id)
{
    for (size_t i = 0; i < message_type_count; i++) {
        if (message_types[i]->kind == MESSAGE_RECORD && message_types[i]->id == id) {
            return true;
        }
    }
    return false;
}

static enum status decode_and_apply(struct image *image, int handler, int16_t version,
                                    struct view body, struct image_changes *changes)
{
    const struct message_type *type = handlers[handler].type;
    alignas(max_align_t) uint8_t message[LARGEST_RECORD_STRUCT];
    assert(type->body->size_bytes <= sizeof message);
    if (!message_has_version(type, version)) {
        return STATUS_UNSUPPORTED;
    }
    struct arena arena;
    arena_init(&arena, SCRATCH_BYTES);
    enum status status = message_decode_whole(type, version, body, &arena, message);
    status = status == STATUS_OK ? handlers[handler].apply(image, message, changes)
                                 : STATUS_CORRUPT;
    arena_free(&arena);
    return status;
}

enum status image_apply(struct image *image, struct view record, struct image_changes *changes)
{
    assert(image != NULL && changes != NULL);
    int16_t id = -1;
    int16_t version = -1;
    struct view body = VIEW_NULL;
    enum status status = metadata_record_open(record, &id, &version, &body);
    if (status != STATUS_OK) {
        return status == STATUS_UNSUPPORTED ? status : STATUS_CORRUPT;
    }
    for (int i = 0; i < HANDLER_COUNT; i++) {
        if (handlers[i].type->id == id) {
            return decode_and_apply(image, i, version, body, changes);
        }
    }
    return is_known_record(id) ? STATUS_OK : STATUS_UNSUPPORTED;
}

void image_finish(struct image *image, struct image_changes *changes)
{
    assert(image != NULL && changes != NULL);
    image_draft_finish(image, changes);
    assert(!image->draft.is_active);
    image_settings_finish(image, changes);
}
