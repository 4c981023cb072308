/* Files in memory behind io/file.h; see sim_file.h for what a crash does to them. */
#include "tests/sim/sim_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"

enum { SECTOR_BYTES = 512 };

/* One of the two images of a file. */
struct image {
    uint8_t *bytes;
    uint64_t size;
    uint64_t capacity;
};

struct inode {
    unsigned references; /* handles and names, in the current and the durable tree */
    bool is_directory;
    bool is_locked;
    struct image seen;
    struct image stored;
};

struct name {
    char *path;
    struct inode *inode;
};

struct tree {
    struct name *names; /* by path */
    size_t count;
    size_t capacity;
};

/* A change of names that is not on the disk yet. */
struct change {
    char *directory;
    char *removed;        /* a path that goes, or null */
    char *added;          /* a path that comes, or null */
    struct inode *inode;
};

struct file {
    unsigned references;
    unsigned incarnation;
    unsigned flags;
    bool locks;
    struct inode *inode;
};

static struct disk {
    struct tree seen;
    struct tree stored;
    struct change *changes;
    size_t change_count;
    size_t change_capacity;
    uint64_t random;
    uint64_t capacity;
    uint64_t used;
    uint64_t operations;
    unsigned incarnation;
    bool read_only;
    bool crashed;
    int64_t crash_after;
    int64_t fail_sync;
} disk = {.crash_after = -1, .fail_sync = -1};

uint64_t sim_disk_random(uint64_t bound)
{
    assert(bound > 0);
    disk.random += 0x9e3779b97f4a7c15u;
    uint64_t z = disk.random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

/* Inodes ------------------------------------------------------------------------------------ */

static void inode_release(struct inode *inode)
{
    assert(inode->references > 0);
    if (--inode->references == 0) {
        disk.used -= inode->seen.size;
        free(inode->seen.bytes);
        free(inode->stored.bytes);
        free(inode);
    }
}

static void image_resize(struct image *image, uint64_t size)
{
    if (size > image->capacity) {
        uint64_t capacity = size < image->capacity * 2 ? image->capacity * 2 : size;
        image->bytes = memory_resize(image->bytes, capacity, 1);
        image->capacity = capacity;
    }
    if (size > image->size) {
        memset(image->bytes + image->size, 0, size - image->size);
    }
    image->size = size;
}

/* Changes the visible size within the disk's capacity; false when it is full. */
static bool inode_resize(struct inode *inode, uint64_t size)
{
    uint64_t used = disk.used - inode->seen.size + size;
    if (disk.capacity > 0 && used > disk.capacity && size > inode->seen.size) {
        return false;
    }
    disk.used = used;
    image_resize(&inode->seen, size);
    return true;
}

static void image_put(struct image *image, uint64_t position, const uint8_t *bytes, uint64_t length)
{
    if (length > 0 && position + length > image->size) {
        image_resize(image, position + length);
    }
    memcpy(image->bytes + position, bytes, length);
}

static void image_copy(struct image *to, const struct image *from)
{
    image_resize(to, from->size);
    if (from->size > 0) {
        memcpy(to->bytes, from->bytes, from->size);
    }
}

/* Trees ------------------------------------------------------------------------------------- */

static size_t tree_place(const struct tree *tree, const char *path)
{
    size_t low = 0;
    size_t high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(tree->names[middle].path, path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct inode *tree_find(const struct tree *tree, const char *path)
{
    size_t at = tree_place(tree, path);
    return at < tree->count && strcmp(tree->names[at].path, path) == 0 ? tree->names[at].inode
                                                                       : NULL;
}

static void tree_remove(struct tree *tree, const char *path)
{
    size_t at = tree_place(tree, path);
    if (at == tree->count || strcmp(tree->names[at].path, path) != 0) {
        return;
    }
    free(tree->names[at].path);
    inode_release(tree->names[at].inode);
    tree->count--;
    memmove(tree->names + at, tree->names + at + 1, (tree->count - at) * sizeof *tree->names);
}

static void tree_add(struct tree *tree, const char *path, struct inode *inode)
{
    inode->references++;
    tree_remove(tree, path);
    size_t at = tree_place(tree, path);
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity * 2 + 8;
        tree->names = memory_resize(tree->names, tree->capacity, sizeof *tree->names);
    }
    memmove(tree->names + at + 1, tree->names + at, (tree->count - at) * sizeof *tree->names);
    tree->names[at] = (struct name){memory_copy_text(path), inode};
    tree->count++;
}

static void tree_clear(struct tree *tree)
{
    while (tree->count > 0) {
        tree_remove(tree, tree->names[tree->count - 1].path);
    }
    free(tree->names);
    *tree = (struct tree){0};
}

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = memory_copy_text(path);
    parent[slash == NULL ? 0 : (size_t)(slash - path)] = '\0';
    return parent;
}

static bool has_parent(const struct tree *tree, const char *path)
{
    char *parent = parent_of(path);
    struct inode *inode = tree_find(tree, parent);
    bool has = parent[0] == '\0' || (inode != NULL && inode->is_directory);
    free(parent);
    return has;
}

/* Whether the path lies in the directory, at any depth; `rest` is what follows its slash. */
static bool is_inside(const char *path, const char *directory, const char **rest)
{
    size_t length = strlen(directory);
    if (strncmp(path, directory, length) != 0 || path[length] != '/') {
        return false;
    }
    *rest = path + length + 1;
    return true;
}

/* Moves a name, and with a directory all names in it. */
static void tree_rename(struct tree *tree, const char *from, const char *to)
{
    struct inode *inode = tree_find(tree, from);
    if (inode == NULL) {
        return;
    }
    tree_add(tree, to, inode);
    tree_remove(tree, from);
    for (size_t i = 0; inode->is_directory && i < tree->count;) {
        const char *rest;
        if (!is_inside(tree->names[i].path, from, &rest)) {
            i++;
            continue;
        }
        size_t length = strlen(to) + strlen(rest) + 2;
        char *moved = memory_new(length);
        snprintf(moved, length, "%s/%s", to, rest);
        struct inode *child = tree->names[i].inode;
        char *old = memory_copy_text(tree->names[i].path);
        tree_add(tree, moved, child);
        tree_remove(tree, old);
        free(moved);
        free(old);
        i = 0;
    }
}

/* Changes of names -------------------------------------------------------------------------- */

static void change_free(struct change *change)
{
    free(change->directory);
    free(change->removed);
    free(change->added);
    if (change->inode != NULL) {
        inode_release(change->inode);
    }
}

static void change_note(const char *removed, const char *added, struct inode *inode)
{
    if (disk.change_count == disk.change_capacity) {
        disk.change_capacity = disk.change_capacity * 2 + 16;
        disk.changes = memory_resize(disk.changes, disk.change_capacity, sizeof *disk.changes);
    }
    log_debug("disk", "%s -> %s", removed == NULL ? "" : removed, added == NULL ? "" : added);
    if (inode != NULL) {
        inode->references++;
    }
    disk.changes[disk.change_count++] = (struct change){
        .directory = parent_of(added != NULL ? added : removed),
        .removed = removed == NULL ? NULL : memory_copy_text(removed),
        .added = added == NULL ? NULL : memory_copy_text(added), .inode = inode};
}

static void change_store(const struct change *change)
{
    if (change->removed != NULL && change->added != NULL) {
        if (tree_find(&disk.stored, change->removed) == NULL && change->inode != NULL) {
            tree_add(&disk.stored, change->removed, change->inode);
        }
        tree_rename(&disk.stored, change->removed, change->added);
    } else if (change->removed != NULL) {
        tree_remove(&disk.stored, change->removed);
    } else {
        tree_add(&disk.stored, change->added, change->inode);
    }
}

/* Stores the changes inside a directory, in order. */
static void changes_sync(const char *directory)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk.change_count; i++) {
        struct change change = disk.changes[i];
        if (directory == NULL || strcmp(change.directory, directory) == 0) {
            change_store(&change);
            change_free(&change);
        } else {
            disk.changes[kept++] = change;
        }
    }
    disk.change_count = kept;
}

/* Faults ------------------------------------------------------------------------------------ */

void sim_disk_reset(uint64_t seed)
{
    for (size_t i = 0; i < disk.change_count; i++) {
        change_free(&disk.changes[i]);
    }
    free(disk.changes);
    tree_clear(&disk.seen);
    tree_clear(&disk.stored);
    assert(disk.used == 0); /* else a handle is left */
    disk = (struct disk){.random = seed, .crash_after = -1, .fail_sync = -1,
        .incarnation = disk.incarnation + 1};
    struct inode *root = memory_new_zero(1, sizeof *root);
    root->is_directory = true;
    tree_add(&disk.seen, "/", root);
    tree_add(&disk.stored, "/", root);
}

void sim_disk_set_capacity(uint64_t bytes)
{
    disk.capacity = bytes;
}

void sim_disk_set_read_only(bool read_only)
{
    disk.read_only = read_only;
}

void sim_disk_fail_sync(int64_t count)
{
    disk.fail_sync = count;
}

void sim_disk_crash_after(int64_t count)
{
    disk.crash_after = count;
}

bool sim_disk_crashed(void)
{
    return disk.crashed;
}

uint64_t sim_disk_operations(void)
{
    return disk.operations;
}

/* A crash leaves of a file's unsynced sectors some new and some old, and some length. */
static void inode_crash(struct inode *inode)
{
    struct image mixed = {0};
    image_copy(&mixed, &inode->stored);
    uint64_t size = inode->seen.size;
    bool same = size == inode->stored.size
        && (size == 0 || memcmp(inode->seen.bytes, inode->stored.bytes, size) == 0);
    uint64_t mood = sim_disk_random(4); /* all lost, all kept, or a mixture */
    if (!same && mood > 0) {
        if (size != mixed.size && (mood == 1 || sim_disk_random(2) == 0)) {
            image_resize(&mixed, size);
        }
        for (uint64_t at = 0; at < mixed.size; at += SECTOR_BYTES) {
            uint64_t length = mixed.size - at < SECTOR_BYTES ? mixed.size - at : SECTOR_BYTES;
            if (length > 0 && at + length <= size && (mood == 1 || sim_disk_random(2) == 0)) {
                memcpy(mixed.bytes + at, inode->seen.bytes + at, length);
            }
        }
    }
    disk.used -= inode->seen.size;
    image_copy(&inode->seen, &mixed);
    image_copy(&inode->stored, &mixed);
    disk.used += inode->seen.size;
    inode->is_locked = false;
    free(mixed.bytes);
}

void sim_disk_restart(void)
{
    size_t kept = disk.change_count == 0 ? 0 : sim_disk_random(disk.change_count + 1);
    log_debug("disk", "restart: %zu of %zu changes of names are kept", kept, disk.change_count);
    for (size_t i = 0; i < disk.change_count; i++) {
        if (i < kept) {
            change_store(&disk.changes[i]);
        }
        change_free(&disk.changes[i]);
    }
    disk.change_count = 0;
    struct tree tree = {0};
    for (size_t i = 0; i < disk.stored.count; i++) {
        /* By path, so parents come first; a name without its directory is lost. */
        if (has_parent(&tree, disk.stored.names[i].path)) {
            tree_add(&tree, disk.stored.names[i].path, disk.stored.names[i].inode);
        }
    }
    tree_clear(&disk.seen);
    tree_clear(&disk.stored);
    disk.seen = tree;
    for (size_t i = 0; i < tree.count; i++) {
        tree_add(&disk.stored, tree.names[i].path, tree.names[i].inode);
        inode_crash(tree.names[i].inode);
    }
    disk.incarnation++;
    disk.crashed = false;
    disk.crash_after = -1;
    disk.fail_sync = -1;
    disk.read_only = false;
}

bool sim_disk_flip(const char *path, uint64_t position, unsigned bit)
{
    struct inode *inode = tree_find(&disk.seen, path);
    if (inode == NULL || position >= inode->seen.size || position >= inode->stored.size) {
        return false;
    }
    inode->seen.bytes[position] ^= (uint8_t)(1u << (bit & 7));
    inode->stored.bytes[position] = inode->seen.bytes[position];
    return true;
}

bool sim_disk_lose_file(const char *path)
{
    if (tree_find(&disk.seen, path) == NULL) {
        return false;
    }
    tree_remove(&disk.seen, path);
    tree_remove(&disk.stored, path);
    return true;
}

bool sim_disk_cut_file(const char *path, uint64_t size_bytes)
{
    struct inode *inode = tree_find(&disk.seen, path);
    if (inode == NULL || inode->seen.size < size_bytes) {
        return false;
    }
    inode_resize(inode, size_bytes);
    image_copy(&inode->stored, &inode->seen);
    return true;
}

const char *sim_disk_file_name(size_t number)
{
    for (size_t i = 0; i < disk.seen.count; i++) {
        if (!disk.seen.names[i].inode->is_directory && number-- == 0) {
            return disk.seen.names[i].path;
        }
    }
    return NULL;
}

uint64_t sim_disk_file_size(const char *path)
{
    struct inode *inode = tree_find(&disk.seen, path);
    return inode == NULL ? 0 : inode->seen.size;
}

/* Counts an operation. STATUS_IO when the power is gone; `*torn` when it goes right now. */
static enum status begin(bool *torn)
{
    *torn = false;
    if (disk.crashed) {
        return STATUS_IO;
    }
    disk.operations++;
    if (disk.crash_after == 0) {
        disk.crashed = true;
        *torn = true;
        return STATUS_IO;
    }
    disk.crash_after -= disk.crash_after > 0 ? 1 : 0;
    return STATUS_OK;
}

static enum status begin_change(void)
{
    bool torn;
    enum status status = begin(&torn);
    return status == STATUS_OK && disk.read_only ? STATUS_READ_ONLY : status;
}

static bool is_dead(const struct file *file)
{
    return disk.crashed || file->incarnation != disk.incarnation;
}

/* io/file.h --------------------------------------------------------------------------------- */

static struct inode *new_inode(const char *path, bool is_directory)
{
    struct inode *inode = memory_new_zero(1, sizeof *inode);
    inode->is_directory = is_directory;
    tree_add(&disk.seen, path, inode);
    change_note(NULL, path, inode);
    return inode;
}

enum status file_open(const char *path, unsigned flags, struct file **file)
{
    *file = NULL;
    if (disk.crashed) {
        return STATUS_IO;
    }
    struct inode *inode = tree_find(&disk.seen, path);
    if (inode == NULL && (flags & FILE_CREATE) == 0) {
        return STATUS_NOT_FOUND;
    }
    if (inode == NULL) {
        enum status status = begin_change();
        if (status != STATUS_OK) {
            return status;
        }
        if (!has_parent(&disk.seen, path)) {
            return STATUS_NOT_FOUND;
        }
        inode = new_inode(path, false);
    }
    assert(!inode->is_directory);
    if ((flags & FILE_EMPTY) != 0) {
        inode_resize(inode, 0);
    }
    inode->references++;
    *file = memory_new_zero(1, sizeof **file);
    **file = (struct file){1, disk.incarnation, flags, false, inode};
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
        if (file->locks && file->incarnation == disk.incarnation) {
            file->inode->is_locked = false;
        }
        inode_release(file->inode);
        free(file);
    }
}

int file_descriptor(const struct file *file)
{
    (void)file;
    return -1;
}

enum status file_read(struct file *file, uint64_t position, void *bytes, size_t length,
    size_t *got)
{
    *got = 0;
    if (is_dead(file)) {
        return STATUS_IO;
    }
    struct image *seen = &file->inode->seen;
    if (position < seen->size) {
        *got = seen->size - position < length ? (size_t)(seen->size - position) : length;
        memcpy(bytes, seen->bytes + position, *got);
    }
    return STATUS_OK;
}

/* Puts bytes into a file as a write does, or, when the power goes, some sectors of them. */
static enum status put(struct file *file, uint64_t position, const uint8_t *bytes, uint64_t length,
    bool torn)
{
    struct inode *inode = file->inode;
    bool durable = (file->flags & FILE_DURABLE) != 0;
    if (position + length > inode->seen.size && !inode_resize(inode, position + length)) {
        return STATUS_NO_SPACE;
    }
    for (uint64_t at = 0; at < length;) {
        uint64_t end = (position + at) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - position;
        uint64_t part = (end < length ? end : length) - at;
        if (!torn || sim_disk_random(2) == 0) {
            image_put(&inode->seen, position + at, bytes + at, part);
            if (durable) {
                image_put(&inode->stored, position + at, bytes + at, part);
            }
        }
        at += part;
    }
    return STATUS_OK;
}

enum status file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count)
{
    bool torn;
    if (file->incarnation != disk.incarnation) {
        return STATUS_IO;
    }
    assert((file->flags & FILE_WRITE) != 0);
    enum status begun = begin(&torn);
    if (begun != STATUS_OK && !torn) {
        return begun;
    }
    if (disk.read_only) {
        return STATUS_READ_ONLY;
    }
    for (int i = 0; i < part_count; i++) {
        if ((file->flags & FILE_DIRECT) != 0) {
            assert(position % FILE_ALIGNMENT == 0 && parts[i].iov_len % FILE_ALIGNMENT == 0);
            assert((uintptr_t)parts[i].iov_base % FILE_ALIGNMENT == 0);
        }
        enum status status = put(file, position, parts[i].iov_base, parts[i].iov_len, torn);
        if (status != STATUS_OK) {
            return status;
        }
        position += parts[i].iov_len;
    }
    return begun;
}

enum status file_sync(struct file *file)
{
    bool torn;
    if (file->incarnation != disk.incarnation) {
        return STATUS_IO;
    }
    enum status status = begin(&torn);
    if (status != STATUS_OK) {
        return status;
    }
    if (disk.fail_sync == 0) {
        disk.fail_sync = -1;
        return STATUS_IO;
    }
    disk.fail_sync -= disk.fail_sync > 0 ? 1 : 0;
    image_copy(&file->inode->stored, &file->inode->seen);
    return STATUS_OK;
}

enum status file_size(struct file *file, uint64_t *size_bytes)
{
    *size_bytes = file->inode->seen.size;
    return is_dead(file) ? STATUS_IO : STATUS_OK;
}

enum status file_truncate(struct file *file, uint64_t size_bytes)
{
    enum status status = is_dead(file) ? STATUS_IO : begin_change();
    if (status == STATUS_OK && !inode_resize(file->inode, size_bytes)) {
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
    return tree_find(&disk.seen, path) != NULL;
}

enum status file_make_directory(const char *path)
{
    struct inode *inode = tree_find(&disk.seen, path);
    if (inode != NULL) {
        return inode->is_directory ? STATUS_OK : STATUS_IO;
    }
    enum status status = begin_change();
    if (status == STATUS_OK && !has_parent(&disk.seen, path)) {
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
    struct inode *inode = tree_find(&disk.seen, path);
    if (disk.crashed) {
        return STATUS_IO;
    }
    if (inode == NULL || !inode->is_directory) {
        return STATUS_NOT_FOUND;
    }
    /* A copy, since the callback may change the tree. */
    char **names = memory_new(disk.seen.count * sizeof *names);
    bool *directories = memory_new(disk.seen.count * sizeof *directories);
    size_t count = 0;
    for (size_t i = 0; i < disk.seen.count; i++) {
        const char *rest;
        if (is_inside(disk.seen.names[i].path, path, &rest) && strchr(rest, '/') == NULL) {
            directories[count] = disk.seen.names[i].inode->is_directory;
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
    struct inode *inode = tree_find(&disk.seen, from);
    if (disk.crashed) {
        return STATUS_IO;
    }
    if (inode == NULL) {
        return STATUS_NOT_FOUND;
    }
    enum status status = begin_change();
    if (status == STATUS_OK) {
        change_note(from, to, inode);
        tree_rename(&disk.seen, from, to);
    }
    return status;
}

enum status file_remove(const char *path)
{
    if (disk.crashed) {
        return STATUS_IO;
    }
    if (tree_find(&disk.seen, path) == NULL) {
        return STATUS_NOT_FOUND;
    }
    enum status status = begin_change();
    if (status == STATUS_OK) {
        change_note(path, NULL, NULL);
        tree_remove(&disk.seen, path);
    }
    return status;
}

enum status file_sync_directory(const char *path)
{
    bool torn;
    if (tree_find(&disk.seen, path) == NULL) {
        return disk.crashed ? STATUS_IO : STATUS_NOT_FOUND;
    }
    enum status status = begin(&torn);
    if (status == STATUS_OK) {
        log_debug("disk", "names of %s are stored", path);
        changes_sync(strcmp(path, "/") == 0 ? "" : path);
    }
    return status;
}

enum status file_sync_all(const char *path)
{
    bool torn;
    enum status status = begin(&torn);
    (void)path;
    if (status == STATUS_OK) {
        changes_sync(NULL);
        for (size_t i = 0; i < disk.seen.count; i++) {
            image_copy(&disk.seen.names[i].inode->stored, &disk.seen.names[i].inode->seen);
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
    *total_bytes = disk.capacity == 0 ? UINT64_C(1) << 40 : disk.capacity;
    *free_bytes = *total_bytes > disk.used ? *total_bytes - disk.used : 0;
    return disk.crashed ? STATUS_IO : STATUS_OK;
}
