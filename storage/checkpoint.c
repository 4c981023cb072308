/* Checkpoints as JSON: {"version", "group", "index", "term", "partitions": [{"topic_id",
 * "partition", "next_offset", "log_start"}], "crc"}, and for a group with several members
 * "members": [{"id", "flags"}] and "members_index". Indexes are 64 bits wide and written as
 * integers; jansson keeps those. The crc is CRC-32C of the rest, compact and with sorted keys: a
 * flipped digit is a broken file, not another offset. Whatever does not look like that is
 * STATUS_CORRUPT. */
#include "storage/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/file_whole.h"
#include "protocol/crc32c.h"

enum { CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024 };

static void group_path(const char *groups_directory, uint64_t group, const char *name,
    char path[FILE_PATH_MAX])
{
    int length = snprintf(path, FILE_PATH_MAX, "%s/%" PRIu64 "%s", groups_directory, group, name);
    assert(length > 0 && length < FILE_PATH_MAX);
}

static json_t *partition_json(const struct checkpoint_partition *partition)
{
    char topic_id[UUID_TEXT_LENGTH + 1];
    assert(partition->next_offset >= partition->log_start); /* or it could not be read */
    uuid_text(partition->topic_id, topic_id);
    return json_pack("{s:s, s:i, s:I, s:I}", "topic_id", topic_id, "partition",
        (int)partition->partition, "next_offset", (json_int_t)partition->next_offset, "log_start",
        (json_int_t)partition->log_start);
}

static void add_members(json_t *root, const struct checkpoint *checkpoint)
{
    assert(checkpoint->members_index <= INT64_MAX);
    json_t *members = json_array();
    int failed = 0;
    for (size_t i = 0; i < checkpoint->member_count; i++) {
        failed |= json_array_append_new(members, json_pack("{s:i, s:i}", "id",
            (int)checkpoint->members[i].id, "flags", (int)checkpoint->members[i].flags));
    }
    failed |= json_object_set_new(root, "members", members);
    failed |= json_object_set_new(root, "members_index",
        json_integer((json_int_t)checkpoint->members_index));
    assert(failed == 0);
}

/* The check of an object without its crc. */
static json_int_t check_of(const json_t *root)
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    assert(text != NULL);
    json_int_t crc = (json_int_t)crc32c(view_text(text));
    free(text);
    return crc;
}

static char *checkpoint_text(const struct checkpoint *checkpoint)
{
    json_t *partitions = json_array();
    for (size_t i = 0; i < checkpoint->partition_count; i++) {
        int full = json_array_append_new(partitions, partition_json(&checkpoint->partitions[i]));
        assert(full == 0);
    }
    json_t *root = json_pack("{s:i, s:I, s:I, s:I, s:o}", "version", CHECKPOINT_VERSION, "group",
        (json_int_t)checkpoint->group, "index", (json_int_t)checkpoint->index, "term",
        (json_int_t)checkpoint->term, "partitions", partitions);
    assert(root != NULL);
    if (checkpoint->member_count > 0) {
        add_members(root, checkpoint);
    }
    int failed = json_object_set_new(root, "crc", json_integer(check_of(root)));
    assert(failed == 0);
    char *text = json_dumps(root, JSON_INDENT(1));
    assert(text != NULL);
    json_decref(root);
    return text;
}

enum status checkpoint_write(const char *groups_directory, const struct checkpoint *checkpoint)
{
    char path[FILE_PATH_MAX];
    assert(checkpoint->index <= INT64_MAX && checkpoint->term <= INT64_MAX);
    group_path(groups_directory, checkpoint->group, "", path);
    enum status status = STATUS_OK;
    if (!file_exists(path)) {
        status = file_make_path(path);
    }
    if (status == STATUS_OK) {
        char *text = checkpoint_text(checkpoint);
        group_path(groups_directory, checkpoint->group, "/checkpoint", path);
        status = file_replace(path, view_text(text), true);
        free(text);
    }
    return status;
}

static bool read_partition(const json_t *json, struct checkpoint_partition *partition)
{
    const char *topic_id;
    json_int_t number;
    json_int_t next_offset;
    json_int_t log_start;
    json_error_t error;
    if (json_unpack_ex((json_t *)(uintptr_t)json, &error, 0, "{s:s, s:I, s:I, s:I}", "topic_id",
            &topic_id, "partition", &number, "next_offset", &next_offset, "log_start",
            &log_start) != 0) {
        return false;
    }
    *partition = (struct checkpoint_partition){.partition = (int32_t)number,
        .next_offset = next_offset, .log_start = log_start};
    return uuid_parse(view_text(topic_id), &partition->topic_id) == STATUS_OK && number >= 0
        && number <= INT32_MAX && log_start >= 0 && next_offset >= log_start;
}

/* Old files, and those of groups with one member, have none. */
static bool read_members(const json_t *root, struct checkpoint *checkpoint)
{
    const json_t *members = json_object_get(root, "members");
    json_int_t index = json_integer_value(json_object_get(root, "members_index"));
    size_t count = json_array_size(members);
    if (members == NULL) {
        return true;
    }
    if (count == 0 || index < 0 || (uint64_t)index > checkpoint->index) {
        return false;
    }
    checkpoint->members_index = (uint64_t)index;
    checkpoint->members = memory_new_zero(count, sizeof *checkpoint->members);
    for (; checkpoint->member_count < count; checkpoint->member_count++) {
        const json_t *member = json_array_get(members, checkpoint->member_count);
        json_int_t id = json_integer_value(json_object_get(member, "id"));
        json_int_t flags = json_integer_value(json_object_get(member, "flags"));
        if (id < 0 || id > INT32_MAX || flags <= 0 || flags > UINT8_MAX) {
            return false;
        }
        checkpoint->members[checkpoint->member_count] =
            (struct checkpoint_member){.id = (int32_t)id, .flags = (uint8_t)flags};
    }
    return true;
}

static enum status read_fields(json_t *root, struct checkpoint *checkpoint)
{
    json_int_t version = 0;
    json_int_t group = 0;
    json_int_t index = 0;
    json_int_t term = 0;
    json_int_t crc = 0;
    json_t *partitions = NULL;
    json_error_t error;
    if (json_unpack_ex(root, &error, 0, "{s:I}", "version", &version) != 0) {
        return STATUS_CORRUPT;
    }
    if (version != CHECKPOINT_VERSION) {
        return STATUS_UNSUPPORTED;
    }
    if (json_unpack_ex(root, &error, 0, "{s:I}", "crc", &crc) != 0) {
        return STATUS_CORRUPT;
    }
    json_object_del(root, "crc");
    if (crc != check_of(root)) {
        return STATUS_CORRUPT;
    }
    if (json_unpack_ex(root, &error, 0, "{s:I, s:I, s:I, s:o}", "group", &group, "index", &index,
            "term", &term, "partitions", &partitions) != 0
        || !json_is_array(partitions) || index < 0 || term < 0) {
        return STATUS_CORRUPT;
    }
    checkpoint->group = (uint64_t)group;
    checkpoint->index = (uint64_t)index;
    checkpoint->term = (uint64_t)term;
    if (!read_members(root, checkpoint)) {
        return STATUS_CORRUPT;
    }
    size_t count = json_array_size(partitions);
    checkpoint->partitions = memory_new_zero(count, sizeof *checkpoint->partitions);
    for (; checkpoint->partition_count < count; checkpoint->partition_count++) {
        if (!read_partition(json_array_get(partitions, checkpoint->partition_count),
                &checkpoint->partitions[checkpoint->partition_count])) {
            return STATUS_CORRUPT;
        }
    }
    return STATUS_OK;
}

enum status checkpoint_read(const char *groups_directory, uint64_t group,
    struct checkpoint *checkpoint)
{
    char path[FILE_PATH_MAX];
    struct buffer text = {0};
    *checkpoint = (struct checkpoint){0};
    group_path(groups_directory, group, "/checkpoint", path);
    enum status status = file_read_whole(path, CHECKPOINT_BYTES_MAX, &text);
    if (status == STATUS_OK) {
        json_error_t error;
        struct view view = buffer_view(&text);
        json_t *root = json_loadb((const char *)view.data, view.length, JSON_REJECT_DUPLICATES,
            &error);
        status = root == NULL ? STATUS_CORRUPT : read_fields(root, checkpoint);
        json_decref(root);
    }
    if (status == STATUS_OK && checkpoint->group != group) {
        status = STATUS_CORRUPT;
    }
    if (status == STATUS_LIMIT) {
        status = STATUS_CORRUPT;
    }
    if (status != STATUS_OK) {
        checkpoint_free(checkpoint);
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        log_warn("checkpoint", "%s: %s", path, status_text(status));
    }
    buffer_free(&text);
    return status;
}

const struct checkpoint_partition *checkpoint_find(const struct checkpoint *checkpoint,
    struct uuid topic_id, int32_t partition)
{
    for (size_t i = 0; i < checkpoint->partition_count; i++) {
        const struct checkpoint_partition *found = &checkpoint->partitions[i];
        if (found->partition == partition && uuid_equal(found->topic_id, topic_id)) {
            return found;
        }
    }
    return NULL;
}

enum status checkpoint_remove(const char *groups_directory, uint64_t group)
{
    char path[FILE_PATH_MAX];
    group_path(groups_directory, group, "", path);
    if (!file_exists(groups_directory)) {
        return STATUS_OK;
    }
    enum status status = file_remove_tree(path);
    return status == STATUS_OK ? file_sync_directory(groups_directory) : status;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    free(checkpoint->partitions);
    free(checkpoint->members);
    *checkpoint = (struct checkpoint){0};
}
