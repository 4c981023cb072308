/* io/file.h over the simulated disk; see sim_file.h for its faults. */
#include "tests/sim/sim_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "tests/sim/sim_disk.h"

struct file {
    unsigned references;
    unsigned incarnation;
    unsigned flags;
    bool locks;
    struct sim_inode *inode;
};

static bool is_dead(const struct file *file)
{
    return sim_disk->crashed || file->incarnation != sim_disk->incarnation;
}

static struct sim_inode *new_inode(const char *path, bool is_directory)
{
    struct sim_inode *inode = memory_new_zero(1, sizeof *inode);
    inode->is_directory = is_directory;
    sim_change_note(NULL, path, inode);
    sim_tree_add(&sim_disk->seen, path, inode);
    return inode;
}

enum status file_open(const char *path, unsigned flags, struct file **file)
{
    *file = NULL;
    if (sim_disk->crashed) {
        return STATUS_IO;
    }
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    if (inode == NULL && (flags & FILE_CREATE) == 0) {
        return STATUS_NOT_FOUND;
    }
    if (inode == NULL) {
        enum status status = sim_disk_begin_change();
        if (status != STATUS_OK) {
            return status;
        }
        if (sim_parent_of(path) == NULL) {
            return STATUS_NOT_FOUND;
        }
        inode = new_inode(path, false);
    }
    assert(!inode->is_directory);
    if ((flags & FILE_EMPTY) != 0) {
        sim_inode_resize(inode, 0);
    }
    inode->references++;
    *file = memory_new_zero(1, sizeof **file);
    **file = (struct file){1, sim_disk->incarnation, flags, false, inode};
    return STATUS_OK;
}

struct file *file_ref(struct file *file)
{
    assert(file->references > 0);
    file->references++;
    return file;
}

void file_unref(struct file *file)
{
    if (file == NULL) {
        return;
    }
    assert(file->references > 0);
    if (--file->references == 0) {
        if (file->locks && file->incarnation == sim_disk->incarnation) {
            file->inode->is_locked = false;
        }
        sim_inode_release(file->inode);
        free(file);
    }
}

const char *file_path(const struct file *file)
{
    (void)file;
    return "a simulated file";
}

int file_descriptor(const struct file *file)
{
    (void)file;
    return -1;
}

size_t file_direct_unit(const struct file *file)
{
    return (file->flags & FILE_DIRECT) != 0 ? SIM_SECTOR_BYTES : 1;
}

static bool is_unreadable(const struct file *file, uint64_t position, size_t length)
{
    return sim_disk->reads_fail
        || (sim_disk->bad_inode == file->inode && position < sim_disk->bad_to
            && position + length > sim_disk->bad_from);
}

enum status file_read(struct file *file, uint64_t position, void *bytes, size_t length,
    size_t *got)
{
    *got = 0;
    if (is_dead(file) || is_unreadable(file, position, length)) {
        return STATUS_IO;
    }
    struct sim_image *seen = &file->inode->seen;
    if (position < seen->size) {
        *got = seen->size - position < length ? (size_t)(seen->size - position) : length;
        sim_image_get(seen, position, bytes, *got);
    }
    return STATUS_OK;
}

static void put(struct file *file, uint64_t position, const uint8_t *bytes, uint64_t length)
{
    struct sim_inode *inode = file->inode;
    if ((file->flags & FILE_DURABLE) != 0) {
        sim_image_put_both(&inode->seen, &inode->stored, position, bytes, length);
    } else {
        sim_image_put(&inode->seen, position, bytes, length);
    }
}

/* Puts some sectors of the bytes into a file: the power goes. */
static void put_torn(struct file *file, uint64_t position, const uint8_t *bytes, uint64_t length)
{
    for (uint64_t at = 0; at < length;) {
        uint64_t sector = (position + at) / SIM_SECTOR_BYTES;
        uint64_t end = (sector + 1) * SIM_SECTOR_BYTES - position;
        uint64_t part = (end < length ? end : length) - at;
        if (sim_disk_random(2) == 0) {
            put(file, position + at, bytes + at, part);
        }
        at += part;
    }
}

/* Writes one part, within the disk's capacity. */
static enum status write_part(struct file *file, uint64_t position, const struct iovec *part,
    bool torn)
{
    uint64_t length = part->iov_len;
    if (position + length > file->inode->seen.size
        && !sim_inode_resize(file->inode, position + length)) {
        return STATUS_NO_SPACE;
    }
    if (torn) {
        put_torn(file, position, part->iov_base, length);
    } else {
        put(file, position, part->iov_base, length);
    }
    return STATUS_OK;
}

enum status file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count)
{
    bool torn;
    if (file->incarnation != sim_disk->incarnation) {
        return STATUS_IO;
    }
    assert((file->flags & FILE_WRITE) != 0);
    enum status begun = sim_disk_begin(&torn);
    if (begun != STATUS_OK && !torn) {
        return begun;
    }
    if (sim_disk->read_only) {
        return STATUS_READ_ONLY;
    }
    if (sim_disk->failing) {
        torn = true;
        begun = STATUS_IO;
    }
    bool is_direct = (file->flags & FILE_DIRECT) != 0;
    assert(!is_direct || position % FILE_ALIGNMENT == 0);
    for (int i = 0; i < part_count; i++) {
        if (is_direct) {
            assert(parts[i].iov_len % SIM_SECTOR_BYTES == 0);
            assert((uintptr_t)parts[i].iov_base % SIM_SECTOR_BYTES == 0);
            sim_disk->direct_bytes += parts[i].iov_len;
        }
        enum status status = write_part(file, position, &parts[i], torn);
        if (status != STATUS_OK) {
            return status;
        }
        position += parts[i].iov_len;
    }
    assert(!is_direct || position % FILE_ALIGNMENT == 0);
    return begun;
}

enum status file_sync(struct file *file)
{
    bool torn;
    if (file->incarnation != sim_disk->incarnation) {
        return STATUS_IO;
    }
    enum status status = sim_disk_begin(&torn);
    if (status != STATUS_OK) {
        return status;
    }
    if (sim_disk->failing || sim_disk->fail_sync == 0) {
        sim_disk->fail_sync = -1;
        return STATUS_IO;
    }
    sim_disk->fail_sync -= sim_disk->fail_sync > 0 ? 1 : 0;
    sim_image_copy(&file->inode->stored, &file->inode->seen);
    return STATUS_OK;
}

enum status file_size(struct file *file, uint64_t *size_bytes)
{
    *size_bytes = file->inode->seen.size;
    return is_dead(file) ? STATUS_IO : STATUS_OK;
}

enum status file_truncate(struct file *file, uint64_t size_bytes)
{
    enum status status = is_dead(file) ? STATUS_IO : sim_disk_begin_change();
    if (status == STATUS_OK && !sim_inode_resize(file->inode, size_bytes)) {
        status = STATUS_NO_SPACE;
    }
    return status;
}

enum status file_reserve(struct file *file, uint64_t size_bytes)
{
    return size_bytes > file->inode->seen.size ? file_truncate(file, size_bytes) : STATUS_OK;
}

bool file_exists(const char *path)
{
    return sim_tree_find(&sim_disk->seen, path) != NULL;
}

enum status file_make_directory(const char *path)
{
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    if (inode != NULL) {
        return inode->is_directory ? STATUS_OK : STATUS_IO;
    }
    enum status status = sim_disk_begin_change();
    if (status == STATUS_OK && sim_parent_of(path) == NULL) {
        status = STATUS_NOT_FOUND;
    }
    if (status == STATUS_OK) {
        new_inode(path, true);
    }
    return status;
}

enum status file_list(const char *path,
    bool (*each)(void *context, const char *name, bool is_directory), void *context)
{
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    if (sim_disk->crashed) {
        return STATUS_IO;
    }
    if (inode == NULL || !inode->is_directory) {
        return STATUS_NOT_FOUND;
    }
    /* A copy, since the callback may change the tree. */
    char **names = memory_new(sim_disk->seen.count * sizeof *names);
    bool *directories = memory_new(sim_disk->seen.count * sizeof *directories);
    size_t count = 0;
    for (size_t i = 0; i < sim_disk->seen.count; i++) {
        const char *rest;
        if (sim_path_is_inside(sim_disk->seen.names[i].path, path, &rest)
            && strchr(rest, '/') == NULL) {
            directories[count] = sim_disk->seen.names[i].inode->is_directory;
            names[count++] = memory_copy_text(rest);
        }
    }
    bool go_on = true;
    for (size_t i = 0; i < count; i++) {
        go_on = go_on && each(context, names[i], directories[i]);
        free(names[i]);
    }
    free(names);
    free(directories);
    return STATUS_OK;
}

enum status file_rename(const char *from, const char *to)
{
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, from);
    if (sim_disk->crashed) {
        return STATUS_IO;
    }
    if (inode == NULL) {
        return STATUS_NOT_FOUND;
    }
    enum status status = sim_disk_begin_change();
    if (status == STATUS_OK) {
        sim_change_note(from, to, inode);
        sim_tree_rename(&sim_disk->seen, from, to);
    }
    return status;
}

enum status file_remove(const char *path)
{
    if (sim_disk->crashed) {
        return STATUS_IO;
    }
    if (sim_tree_find(&sim_disk->seen, path) == NULL) {
        return STATUS_NOT_FOUND;
    }
    enum status status = sim_disk_begin_change();
    if (status == STATUS_OK) {
        sim_change_note(path, NULL, NULL);
        sim_tree_remove(&sim_disk->seen, path);
    }
    return status;
}

enum status file_sync_directory(const char *path)
{
    bool torn;
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    if (inode == NULL) {
        return sim_disk->crashed ? STATUS_IO : STATUS_NOT_FOUND;
    }
    enum status status = sim_disk_begin(&torn);
    if (status == STATUS_OK && sim_disk->failing) {
        return STATUS_IO;
    }
    if (status == STATUS_OK) {
        log_debug("disk", "names of %s are stored", path);
        sim_changes_store(inode);
    }
    return status;
}

enum status file_sync_all(const char *path)
{
    bool torn;
    enum status status = sim_disk_begin(&torn);
    (void)path;
    if (status == STATUS_OK && sim_disk->failing) {
        return STATUS_IO;
    }
    if (status == STATUS_OK) {
        sim_changes_store(NULL);
        for (size_t i = 0; i < sim_disk->seen.count; i++) {
            struct sim_inode *inode = sim_disk->seen.names[i].inode;
            sim_image_copy(&inode->stored, &inode->seen);
        }
    }
    return status;
}

enum status file_lock(const char *path, struct file **file)
{
    enum status status = file_open(path, FILE_WRITE | FILE_CREATE, file);
    if (status != STATUS_OK) {
        return status;
    }
    if ((*file)->inode->is_locked) {
        file_unref(*file);
        *file = NULL;
        return STATUS_BUSY;
    }
    (*file)->inode->is_locked = true;
    (*file)->locks = true;
    return STATUS_OK;
}

enum status file_space(const char *path, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)path;
    *total_bytes = sim_disk->capacity == 0 ? UINT64_C(1) << 40 : sim_disk->capacity;
    *free_bytes = *total_bytes > sim_disk->used ? *total_bytes - sim_disk->used : 0;
    return sim_disk->crashed ? STATUS_IO : STATUS_OK;
}
