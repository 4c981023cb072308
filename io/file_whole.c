/* Whole small files over io/file.h: read at once, replaced by rename, removed with their tree.
 * Failures are those of io/file.h; a replacement that fails leaves the old content, and perhaps a
 * file PATH.tmp that the next replacement overwrites. */
#include "io/file_whole.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "io/file.h"

/* The path with something behind it; asserts that it fits. */
static void join(char out[FILE_PATH_MAX], const char *path, const char *between, const char *name)
{
    int length = snprintf(out, FILE_PATH_MAX, "%s%s%s", path, between, name);
    assert(length > 0 && length < FILE_PATH_MAX);
}

enum status file_read_whole(const char *path, size_t limit_bytes, struct buffer *content)
{
    struct file *file;
    enum status status = file_open(path, FILE_READ, &file);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t size = 0;
    status = file_size(file, &size);
    if (status == STATUS_OK && size > limit_bytes) {
        status = STATUS_LIMIT;
    }
    if (status == STATUS_OK && size > 0) {
        size_t before = content->length;
        size_t got = 0;
        uint8_t *at = buffer_extend(content, (size_t)size);
        status = file_read(file, 0, at, (size_t)size, &got);
        content->length = before + (status == STATUS_OK ? got : 0);
    }
    file_unref(file);
    return status;
}

static enum status write_new(const char *path, struct view content, bool durable)
{
    struct file *file;
    enum status status = file_open(path, FILE_WRITE | FILE_CREATE | FILE_EMPTY, &file);
    if (status != STATUS_OK) {
        return status;
    }
    struct iovec part = {(void *)(uintptr_t)content.data, content.length};
    status = file_write(file, 0, &part, 1);
    if (status == STATUS_OK && durable) {
        status = file_sync(file);
    }
    file_unref(file);
    return status;
}

enum status file_replace(const char *path, struct view content, bool durable)
{
    assert(content.data != NULL);
    char beside[FILE_PATH_MAX];
    join(beside, path, "", ".tmp");
    enum status status = write_new(beside, content, durable);
    if (status == STATUS_OK) {
        status = file_rename(beside, path);
    }
    if (status == STATUS_OK && durable) {
        status = file_sync_parent(path);
    }
    return status;
}

struct removal {
    const char *path;
    enum status status;
};

static bool remove_entry(void *context, const char *name, bool is_directory)
{
    struct removal *removal = context;
    char path[FILE_PATH_MAX];
    join(path, removal->path, "/", name);
    enum status status = is_directory ? file_remove_tree(path) : file_remove(path);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND && removal->status == STATUS_OK) {
        removal->status = status;
    }
    return true;
}

enum status file_remove_tree(const char *path)
{
    struct removal removal = {path, STATUS_OK};
    enum status status = file_list(path, remove_entry, &removal);
    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = removal.status;
    }
    if (status == STATUS_OK) {
        status = file_remove(path);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The path up to its last slash: "/" for the root, "." when there is none. */
static void parent_of(char out[FILE_PATH_MAX], const char *path)
{
    size_t length = strlen(path);
    assert(length > 0 && length < FILE_PATH_MAX);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    memcpy(out, length == 0 ? "." : path, length == 0 ? 1 : length);
    out[length == 0 ? 1 : length] = '\0';
}

enum status file_sync_parent(const char *path)
{
    char parent[FILE_PATH_MAX];
    parent_of(parent, path);
    return file_sync_directory(parent);
}

enum status file_make_path(const char *path)
{
    if (file_exists(path)) {
        return file_make_directory(path);
    }
    char parent[FILE_PATH_MAX];
    parent_of(parent, path);
    enum status status = STATUS_OK;
    if (!file_exists(parent)) {
        status = file_make_path(parent);
    }
    if (status == STATUS_OK) {
        status = file_make_directory(path);
    }
    if (status == STATUS_OK) {
        status = file_sync_directory(parent);
    }
    return status;
}
