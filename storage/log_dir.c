/* The data directory. Opening it: make it, lock it, agree with meta.properties. A second broker is
 * refused by the lock, a foreign directory by its identity; both say what to do. */
#include "storage/log_dir.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/file_whole.h"
#include "io/random.h"

enum { PROPERTIES_MAX = 1024 * 1024, TOPIC_NAME_MAX = 249, PROBE_BYTES = 4096 };

#define INCOMPLETE_NAME ".incomplete"

struct log_dir {
    char *path;
    char *journal_path;
    char *groups_path;
    struct file *lock;
    struct log_dir_identity identity;
    bool is_new;
    atomic_bool is_incomplete;
};

static void inside(const char *path, const char *name, char result[FILE_PATH_MAX])
{
    int length = snprintf(result, FILE_PATH_MAX, "%s/%s", path, name);
    assert(length > 0 && length < FILE_PATH_MAX);
}

static char *inside_copy(const char *path, const char *name)
{
    char result[FILE_PATH_MAX];
    inside(path, name, result);
    return memory_copy_text(result);
}

/* meta.properties --------------------------------------------------------------------------- */

/* The value of a key in Java properties: the rest of its line. Null when there is none. */
static char *property(const char *text, const char *key)
{
    size_t key_length = strlen(key);
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\r\n");
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, key, key_length) == 0) {
            const char *rest = at + key_length;
            rest += strspn(rest, " \t");
            if (*rest == '=' || *rest == ':') {
                rest++;
                rest += strspn(rest, " \t");
                size_t value = (size_t)(line + length - rest);
                return view_copy_text((struct view){(const uint8_t *)rest, value});
            }
        }
        line += length;
        line += strspn(line, "\r\n");
    }
    return NULL;
}

static bool parse_node_id(const char *text, int32_t *node_id)
{
    char *end;
    long value = text == NULL ? -1 : strtol(text, &end, 10);
    if (text == NULL || *end != '\0' || end == text || value < 0 || value > INT32_MAX) {
        return false;
    }
    *node_id = (int32_t)value;
    return true;
}

static bool parse_identity(const char *text, struct log_dir_identity *identity)
{
    char *cluster_id = property(text, "cluster.id");
    char *node_id = property(text, "node.id");
    char *directory_id = property(text, "directory.id");
    bool good = cluster_id != NULL && cluster_id[0] != '\0'
        && strlen(cluster_id) <= LOG_DIR_CLUSTER_ID_MAX
        && parse_node_id(node_id, &identity->node_id);
    if (good) {
        snprintf(identity->cluster_id, sizeof identity->cluster_id, "%s", cluster_id);
    }
    if (good && directory_id != NULL) {
        good = uuid_parse(view_text(directory_id), &identity->directory_id) == STATUS_OK;
    }
    free(cluster_id);
    free(node_id);
    free(directory_id);
    return good;
}

static enum status write_identity(const struct log_dir *dir)
{
    char path[FILE_PATH_MAX];
    char text[512];
    char directory_id[UUID_TEXT_LENGTH + 1];
    uuid_text(dir->identity.directory_id, directory_id);
    int length = snprintf(text, sizeof text,
        "#\ncluster.id=%s\ndirectory.id=%s\nnode.id=%d\nversion=1\n", dir->identity.cluster_id,
        directory_id, (int)dir->identity.node_id);
    assert(length > 0 && (size_t)length < sizeof text);
    inside(dir->path, "meta.properties", path);
    return file_replace(path, view_text(text), true);
}

/* Compares what the directory says with what the broker is. */
static enum status check_identity(const struct log_dir *dir, const struct log_dir_settings *wanted)
{
    const struct log_dir_identity *has = &dir->identity;
    if (has->node_id != wanted->node_id) {
        log_error("data", "%s belongs to node %d, but node.id is %d: set node.id, or use another"
            " directory", dir->path, (int)has->node_id, (int)wanted->node_id);
        return STATUS_INVALID;
    }
    if (wanted->cluster_id != NULL && wanted->cluster_id[0] != '\0'
        && strcmp(wanted->cluster_id, has->cluster_id) != 0) {
        log_error("data", "%s belongs to cluster %s, not to %s: use another directory", dir->path,
            has->cluster_id, wanted->cluster_id);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status make_identity(struct log_dir *dir, const struct log_dir_settings *settings)
{
    dir->is_new = true;
    dir->identity.node_id = settings->node_id;
    dir->identity.directory_id = random_uuid();
    if (settings->cluster_id != NULL && settings->cluster_id[0] != '\0') {
        int length = snprintf(dir->identity.cluster_id, sizeof dir->identity.cluster_id, "%s",
            settings->cluster_id);
        if ((size_t)length >= sizeof dir->identity.cluster_id) {
            log_error("data", "the cluster id is longer than %d bytes", LOG_DIR_CLUSTER_ID_MAX);
            return STATUS_INVALID;
        }
    } else {
        uuid_text(random_uuid(), dir->identity.cluster_id);
    }
    char mark[FILE_PATH_MAX];
    inside(dir->path, INCOMPLETE_NAME, mark);
    enum status status =
        settings->has_peers ? file_replace(mark, VIEW_LITERAL(""), true) : STATUS_OK;
    return status == STATUS_OK ? write_identity(dir) : status;
}

static enum status load_identity(struct log_dir *dir, const struct log_dir_settings *settings)
{
    char path[FILE_PATH_MAX];
    struct buffer bytes = {0};
    inside(dir->path, "meta.properties", path);
    enum status status = file_read_whole(path, PROPERTIES_MAX, &bytes);
    if (status == STATUS_NOT_FOUND) {
        return make_identity(dir, settings);
    }
    if (status == STATUS_OK) {
        char *text = view_copy_text(buffer_view(&bytes));
        if (parse_identity(text, &dir->identity)) {
            status = check_identity(dir, settings);
        } else {
            log_error("data", "%s cannot be read: it needs cluster.id and node.id", path);
            status = STATUS_INVALID;
        }
        free(text);
    }
    buffer_free(&bytes);
    if (status == STATUS_OK && uuid_is_zero(dir->identity.directory_id)) {
        dir->identity.directory_id = random_uuid(); /* formatted before directories had ids */
        status = write_identity(dir);
    }
    return status;
}

/* Open and close ---------------------------------------------------------------------------- */

static enum status lock(struct log_dir *dir)
{
    char path[FILE_PATH_MAX];
    inside(dir->path, ".lock", path);
    enum status status = file_lock(path, &dir->lock);
    if (status == STATUS_BUSY) {
        log_error("data", "%s is in use by another broker: stop it, or use another directory",
            dir->path);
    }
    return status;
}

enum status log_dir_open(const struct log_dir_settings *settings, struct log_dir **result)
{
    assert(settings->node_id >= 0 && settings->path[0] != '\0');
    struct log_dir *dir = memory_new_zero(1, sizeof *dir);
    *result = NULL;
    dir->path = memory_copy_text(settings->path);
    dir->journal_path = inside_copy(dir->path, "journal");
    dir->groups_path = inside_copy(dir->path, "groups");
    enum status status = file_make_path(dir->path);
    if (status != STATUS_OK) {
        log_error("data", "the directory %s cannot be made: %s", dir->path, status_text(status));
    } else {
        status = lock(dir);
    }
    if (status == STATUS_OK) {
        status = load_identity(dir, settings);
        char mark[FILE_PATH_MAX];
        inside(dir->path, INCOMPLETE_NAME, mark);
        dir->is_incomplete = settings->has_peers && file_exists(mark);
    }
    if (status != STATUS_OK) {
        log_dir_close(dir);
        return status;
    }
    *result = dir;
    return STATUS_OK;
}

bool log_dir_is_formatted(const char *path)
{
    char properties[FILE_PATH_MAX];
    assert(path[0] != '\0');
    inside(path, "meta.properties", properties);
    return file_exists(properties);
}

void log_dir_close(struct log_dir *dir)
{
    file_unref(dir->lock);
    free(dir->path);
    free(dir->journal_path);
    free(dir->groups_path);
    free(dir);
}

const char *log_dir_path(const struct log_dir *dir)
{
    return dir->path;
}

const char *log_dir_journal_path(const struct log_dir *dir)
{
    return dir->journal_path;
}

const char *log_dir_groups_path(const struct log_dir *dir)
{
    return dir->groups_path;
}

const struct log_dir_identity *log_dir_identity(const struct log_dir *dir)
{
    return &dir->identity;
}

bool log_dir_is_new(const struct log_dir *dir)
{
    return dir->is_new;
}

bool log_dir_is_incomplete(const struct log_dir *dir)
{
    return dir->is_incomplete;
}

/* STATUS_OK also when it was not there. */
static enum status remove_mark(const struct log_dir *dir, const char *name)
{
    char mark[FILE_PATH_MAX];
    inside(dir->path, name, mark);
    enum status status = file_remove(mark);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status log_dir_complete(struct log_dir *dir)
{
    if (!log_dir_is_incomplete(dir)) {
        return STATUS_OK;
    }
    enum status status = remove_mark(dir, INCOMPLETE_NAME);
    if (status == STATUS_OK) {
        status = file_sync_directory(dir->path);
    }
    dir->is_incomplete = dir->is_incomplete && status != STATUS_OK;
    assert(status != STATUS_OK || !log_dir_is_incomplete(dir));
    return status;
}

/* Partition directories --------------------------------------------------------------------- */

/* Splits TOPIC-PARTITION; false when the name is not one. */
static bool split_name(const char *name, char topic[TOPIC_NAME_MAX + 1], int32_t *partition)
{
    const char *dash = strrchr(name, '-');
    if (dash == NULL || dash == name || (size_t)(dash - name) > TOPIC_NAME_MAX) {
        return false;
    }
    char *end;
    long value = strtol(dash + 1, &end, 10);
    if (dash[1] < '0' || dash[1] > '9' || *end != '\0' || value > INT32_MAX) {
        return false;
    }
    memcpy(topic, name, (size_t)(dash - name));
    topic[dash - name] = '\0';
    *partition = (int32_t)value;
    return true;
}

struct uuid log_dir_topic_id(const char *directory)
{
    char path[FILE_PATH_MAX];
    struct buffer bytes = {0};
    struct uuid topic_id = {0};
    inside(directory, "partition.metadata", path);
    if (file_read_whole(path, PROPERTIES_MAX, &bytes) == STATUS_OK) {
        char *text = view_copy_text(buffer_view(&bytes));
        char *value = property(text, "topic_id");
        if (value != NULL && uuid_parse(view_text(value), &topic_id) != STATUS_OK) {
            topic_id = (struct uuid){0};
        }
        free(value);
        free(text);
    }
    buffer_free(&bytes);
    return topic_id;
}

struct visit {
    struct log_dir *dir;
    void (*each)(void *context, const struct log_dir_partition *partition);
    void *context;
    enum status status;
};

static bool visit_partition(void *context, const char *name, bool is_directory)
{
    struct visit *visit = context;
    char topic[TOPIC_NAME_MAX + 1];
    char path[FILE_PATH_MAX];
    struct log_dir_partition partition = {.topic = topic};
    if (is_directory && split_name(name, topic, &partition.partition)) {
        inside(visit->dir->path, name, path);
        partition.topic_id = log_dir_topic_id(path);
        visit->each(visit->context, &partition);
    }
    return true;
}

enum status log_dir_each_partition(struct log_dir *dir,
    void (*each)(void *context, const struct log_dir_partition *partition), void *context)
{
    struct visit visit = {dir, each, context, STATUS_OK};
    return file_list(dir->path, visit_partition, &visit);
}

static bool visit_leftover(void *context, const char *name, bool is_directory)
{
    static const char ending[] = "-delete";
    struct visit *visit = context;
    size_t length = strlen(name);
    if (is_directory && length > sizeof ending
        && strcmp(name + length - (sizeof ending - 1), ending) == 0) {
        char path[FILE_PATH_MAX];
        inside(visit->dir->path, name, path);
        enum status status = file_remove_tree(path);
        visit->status = visit->status == STATUS_OK ? status : visit->status;
    }
    return true;
}

enum status log_dir_remove_leftovers(struct log_dir *dir)
{
    struct visit visit = {.dir = dir};
    enum status status = file_list(dir->path, visit_leftover, &visit);
    return status == STATUS_OK ? visit.status : status;
}

enum status log_dir_discard_partition(struct log_dir *dir, const char *topic, int32_t partition)
{
    char path[FILE_PATH_MAX];
    char doomed[FILE_PATH_MAX];
    char unique[UUID_TEXT_LENGTH + 1];
    uuid_text(random_uuid(), unique);
    int length = snprintf(path, sizeof path, "%s/%s-%d", dir->path, topic, (int)partition);
    assert(length > 0 && (size_t)length < sizeof path);
    length = snprintf(doomed, sizeof doomed, "%s/%.200s-%d.%s-delete", dir->path, topic,
        (int)partition, unique);
    assert(length > 0 && (size_t)length < sizeof doomed);
    enum status status = file_rename(path, doomed);
    return status == STATUS_OK ? file_sync_directory(dir->path) : status;
}

/* Space ------------------------------------------------------------------------------------- */

enum status log_dir_space(struct log_dir *dir, uint64_t *free_bytes, uint64_t *total_bytes)
{
    return file_space(dir->path, free_bytes, total_bytes);
}

enum status log_dir_probe(struct log_dir *dir, uint64_t free_bytes)
{
    char path[FILE_PATH_MAX];
    char bytes[PROBE_BYTES];
    uint64_t available;
    uint64_t total;
    memset(bytes, 'p', sizeof bytes);
    inside(dir->path, ".probe", path);
    enum status status = file_space(dir->path, &available, &total);
    if (status == STATUS_OK && available < free_bytes) {
        return STATUS_NO_SPACE;
    }
    if (status == STATUS_OK) {
        struct view content = {(const uint8_t *)bytes, sizeof bytes};
        status = file_replace(path, content, true);
    }
    if (status == STATUS_OK) {
        status = file_remove(path);
    }
    return status;
}
