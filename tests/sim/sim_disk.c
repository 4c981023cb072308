/* Inodes, trees of names, and what faults do to them; see sim_file.h. */
#include "tests/sim/sim_disk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "tests/sim/sim_file.h"

static struct sim_disk first_disk = {.crash_after = -1, .fail_sync = -1};
struct sim_disk *sim_disk = &first_disk;

uint64_t sim_disk_random(uint64_t bound)
{
    assert(bound > 0);
    sim_disk->random += 0x9e3779b97f4a7c15u;
    uint64_t z = sim_disk->random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

/* Inodes ------------------------------------------------------------------------------------ */

static void tree_clear(struct sim_tree *tree)
{
    while (tree->count > 0) {
        sim_tree_remove(tree, tree->names[tree->count - 1].path);
    }
    free(tree->names);
    *tree = (struct sim_tree){0};
}

void sim_inode_release(struct sim_inode *inode)
{
    assert(inode->references > 0);
    if (--inode->references == 0) {
        if (sim_disk->bad_inode == inode) {
            sim_disk->bad_inode = NULL;
        }
        sim_disk->used -= inode->seen.size;
        tree_clear(&inode->entries);
        sim_image_free(&inode->seen);
        sim_image_free(&inode->stored);
        free(inode);
    }
}

/* Changes the visible size within the disk's capacity; false when it is full. */
bool sim_inode_resize(struct sim_inode *inode, uint64_t size)
{
    uint64_t used = sim_disk->used - inode->seen.size + size;
    if (sim_disk->capacity > 0 && used > sim_disk->capacity && size > inode->seen.size) {
        return false;
    }
    sim_disk->used = used;
    sim_image_resize(&inode->seen, size);
    return true;
}

/* Trees ------------------------------------------------------------------------------------- */

static size_t tree_place(const struct sim_tree *tree, const char *path)
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

struct sim_inode *sim_tree_find(const struct sim_tree *tree, const char *path)
{
    size_t at = tree_place(tree, path);
    return at < tree->count && strcmp(tree->names[at].path, path) == 0 ? tree->names[at].inode
                                                                       : NULL;
}

void sim_tree_remove(struct sim_tree *tree, const char *path)
{
    size_t at = tree_place(tree, path);
    if (at == tree->count || strcmp(tree->names[at].path, path) != 0) {
        return;
    }
    free(tree->names[at].path);
    sim_inode_release(tree->names[at].inode);
    tree->count--;
    memmove(tree->names + at, tree->names + at + 1, (tree->count - at) * sizeof *tree->names);
}

void sim_tree_add(struct sim_tree *tree, const char *path, struct sim_inode *inode)
{
    inode->references++;
    sim_tree_remove(tree, path);
    size_t at = tree_place(tree, path);
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity * 2 + 8;
        tree->names = memory_resize(tree->names, tree->capacity, sizeof *tree->names);
    }
    memmove(tree->names + at + 1, tree->names + at, (tree->count - at) * sizeof *tree->names);
    tree->names[at] = (struct sim_name){memory_copy_text(path), inode};
    tree->count++;
}

/* What follows the path's last slash. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

struct sim_inode *sim_parent_of(const char *path)
{
    size_t length = (size_t)(name_of(path) - path);
    char *parent = memory_copy_text(length > 1 ? path : "/");
    if (length > 1) {
        parent[length - 1] = '\0';
    }
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, parent);
    free(parent);
    return inode != NULL && inode->is_directory ? inode : NULL;
}

/* Whether the path lies in the directory, at any depth; `rest` is what follows its slash. */
bool sim_path_is_inside(const char *path, const char *directory, const char **rest)
{
    size_t length = strlen(directory);
    if (strncmp(path, directory, length) != 0 || path[length] != '/') {
        return false;
    }
    *rest = path + length + 1;
    return true;
}

/* Moves a name, and with a directory all names in it. */
void sim_tree_rename(struct sim_tree *tree, const char *from, const char *to)
{
    struct sim_inode *inode = sim_tree_find(tree, from);
    if (inode == NULL) {
        return;
    }
    sim_tree_add(tree, to, inode);
    sim_tree_remove(tree, from);
    for (size_t i = 0; inode->is_directory && i < tree->count;) {
        const char *rest;
        if (!sim_path_is_inside(tree->names[i].path, from, &rest)) {
            i++;
            continue;
        }
        size_t length = strlen(to) + strlen(rest) + 2;
        char *moved = memory_new(length);
        snprintf(moved, length, "%s/%s", to, rest);
        struct sim_inode *child = tree->names[i].inode;
        char *old = memory_copy_text(tree->names[i].path);
        sim_tree_add(tree, moved, child);
        sim_tree_remove(tree, old);
        free(moved);
        free(old);
        i = 0;
    }
}

/* Changes of names -------------------------------------------------------------------------- */

static void change_free(struct sim_change *change)
{
    sim_inode_release(change->directory);
    free(change->removed);
    free(change->added);
    if (change->inode != NULL) {
        sim_inode_release(change->inode);
    }
}

void sim_change_note(const char *removed, const char *added, struct sim_inode *inode)
{
    if (sim_disk->change_count == sim_disk->change_capacity) {
        sim_disk->change_capacity = sim_disk->change_capacity * 2 + 16;
        sim_disk->changes = memory_resize(sim_disk->changes, sim_disk->change_capacity,
            sizeof *sim_disk->changes);
    }
    log_debug("disk", "%s -> %s", removed == NULL ? "" : removed, added == NULL ? "" : added);
    if (inode != NULL) {
        inode->references++;
    }
    struct sim_inode *directory = sim_parent_of(added != NULL ? added : removed);
    assert(directory != NULL && (removed == NULL || sim_parent_of(removed) == directory));
    directory->references++;
    sim_disk->changes[sim_disk->change_count++] = (struct sim_change){
        .directory = directory,
        .removed = removed == NULL ? NULL : memory_copy_text(name_of(removed)),
        .added = added == NULL ? NULL : memory_copy_text(name_of(added)), .inode = inode};
}

/* The name is taken off the disk; of a directory that goes nothing is stored any more. */
static void entry_remove(struct sim_tree *entries, const char *name)
{
    struct sim_inode *inode = sim_tree_find(entries, name);
    if (inode != NULL) {
        inode->is_gone = inode->is_directory;
        sim_tree_remove(entries, name);
    }
}

static void change_store(const struct sim_change *change)
{
    struct sim_tree *entries = &change->directory->entries;
    if (change->added == NULL) {
        entry_remove(entries, change->removed);
        return;
    }
    if (change->removed != NULL) {
        sim_tree_remove(entries, change->removed);
    }
    sim_tree_add(entries, change->added, change->inode);
}

/* Drops the changes of directories that are gone. */
static void forget_gone(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim_disk->change_count; i++) {
        if (sim_disk->changes[i].directory->is_gone) {
            change_free(&sim_disk->changes[i]);
        } else {
            sim_disk->changes[kept++] = sim_disk->changes[i];
        }
    }
    sim_disk->change_count = kept;
}

/* Stores the changes of a directory, in order. */
void sim_changes_store(struct sim_inode *directory)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim_disk->change_count; i++) {
        struct sim_change change = sim_disk->changes[i];
        if (directory == NULL || change.directory == directory) {
            change_store(&change);
            change_free(&change);
        } else {
            sim_disk->changes[kept++] = change;
        }
    }
    sim_disk->change_count = kept;
    forget_gone();
}

/* Faults ------------------------------------------------------------------------------------ */

struct sim_disk *sim_disk_new(uint64_t seed)
{
    struct sim_disk *before = sim_disk;
    struct sim_disk *made = memory_new_zero(1, sizeof *made);
    sim_disk = made;
    sim_disk_reset(seed);
    sim_disk = before;
    return made;
}

void sim_disk_free(struct sim_disk *disk)
{
    struct sim_disk *before = sim_disk;
    sim_disk = disk;
    sim_disk_reset(0);
    tree_clear(&disk->seen);
    sim_disk = before == disk ? &first_disk : before;
    free(disk);
}

void sim_disk_use(struct sim_disk *disk)
{
    sim_disk = disk == NULL ? &first_disk : disk;
}

void sim_disk_crash(void)
{
    sim_disk->crashed = true;
}

void sim_disk_keep(void)
{
    sim_changes_store(NULL);
    for (size_t i = 0; i < sim_disk->seen.count; i++) {
        struct sim_inode *inode = sim_disk->seen.names[i].inode;
        sim_image_copy(&inode->stored, &inode->seen);
    }
}

void sim_disk_reset(uint64_t seed)
{
    for (size_t i = 0; i < sim_disk->change_count; i++) {
        change_free(&sim_disk->changes[i]);
    }
    free(sim_disk->changes);
    tree_clear(&sim_disk->seen);
    assert(sim_disk->used == 0); /* else a handle is left */
    *sim_disk = (struct sim_disk){.random = seed, .crash_after = -1, .fail_sync = -1,
        .incarnation = sim_disk->incarnation + 1};
    struct sim_inode *root = memory_new_zero(1, sizeof *root);
    root->is_directory = true;
    sim_tree_add(&sim_disk->seen, "/", root);
}

void sim_disk_set_capacity(uint64_t bytes)
{
    sim_disk->capacity = bytes;
}

void sim_disk_set_read_only(bool read_only)
{
    sim_disk->read_only = read_only;
}

void sim_disk_set_failing(bool failing)
{
    sim_disk->failing = failing;
}

void sim_disk_set_reads_failing(bool failing)
{
    sim_disk->reads_fail = failing;
}

void sim_disk_spoil(const char *path, uint64_t from, uint64_t to)
{
    sim_disk->bad_inode = path == NULL ? NULL : sim_tree_find(&sim_disk->seen, path);
    sim_disk->bad_from = from;
    sim_disk->bad_to = to;
}

uint64_t sim_disk_used(void)
{
    return sim_disk->used;
}

void sim_disk_fail_sync(int64_t count)
{
    sim_disk->fail_sync = count;
}

void sim_disk_crash_after(int64_t count)
{
    sim_disk->crash_after = count;
}

bool sim_disk_crashed(void)
{
    return sim_disk->crashed;
}

uint64_t sim_disk_direct_bytes(void)
{
    return sim_disk->direct_bytes;
}

uint64_t sim_disk_operations(void)
{
    return sim_disk->operations;
}

static bool wants_all(void)
{
    return true;
}

static bool wants_half(void)
{
    return sim_disk_random(2) == 0;
}

/* A crash leaves of a file's unsynced sectors some new and some old, and some length. */
static void inode_crash(struct sim_inode *inode)
{
    uint64_t size = inode->seen.size;
    uint64_t mood = sim_disk_random(4); /* all lost, all kept, or a mixture */
    if (mood > 0) {
        if (size != inode->stored.size && (mood == 1 || sim_disk_random(2) == 0)) {
            sim_image_resize(&inode->stored, size);
        }
        sim_image_mix(&inode->stored, &inode->seen, mood == 1 ? wants_all : wants_half);
    }
    sim_disk->used -= size;
    sim_image_copy(&inode->seen, &inode->stored);
    sim_disk->used += inode->seen.size;
    inode->is_locked = false;
}

/* Makes the paths of what is stored in a directory, at any depth. */
static void list_stored(struct sim_tree *tree, const char *directory, const struct sim_inode *inode)
{
    for (size_t i = 0; i < inode->entries.count; i++) {
        const struct sim_name *entry = &inode->entries.names[i];
        size_t length = strlen(directory) + strlen(entry->path) + 2;
        char *path = memory_new(length);
        snprintf(path, length, "%s/%s", directory, entry->path);
        sim_tree_add(tree, path, entry->inode);
        list_stored(tree, path, entry->inode);
        free(path);
    }
}

void sim_disk_restart(void)
{
    size_t kept = sim_disk->change_count == 0 ? 0 : sim_disk_random(sim_disk->change_count + 1);
    log_debug("disk", "restart: %zu of %zu changes of names are kept", kept,
        sim_disk->change_count);
    for (size_t i = 0; i < sim_disk->change_count; i++) {
        if (i < kept) {
            change_store(&sim_disk->changes[i]);
        }
        change_free(&sim_disk->changes[i]);
    }
    sim_disk->change_count = 0;
    struct sim_tree tree = {0};
    struct sim_inode *root = sim_tree_find(&sim_disk->seen, "/");
    sim_tree_add(&tree, "/", root);
    list_stored(&tree, "", root);
    tree_clear(&sim_disk->seen);
    sim_disk->seen = tree;
    for (size_t i = 0; i < tree.count; i++) {
        inode_crash(tree.names[i].inode);
    }
    sim_disk->incarnation++;
    sim_disk->crashed = false;
    sim_disk->crash_after = -1;
    sim_disk->fail_sync = -1;
    sim_disk->read_only = false;
}

bool sim_disk_flip(const char *path, uint64_t position, unsigned bit)
{
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    if (inode == NULL || position >= inode->seen.size || position >= inode->stored.size) {
        return false;
    }
    uint8_t byte;
    sim_image_get(&inode->seen, position, &byte, 1);
    byte ^= (uint8_t)(1u << (bit & 7));
    sim_image_put_both(&inode->seen, &inode->stored, position, &byte, 1);
    return true;
}

bool sim_disk_lose_file(const char *path)
{
    if (sim_tree_find(&sim_disk->seen, path) == NULL) {
        return false;
    }
    char *name = memory_copy_text(path); /* the path may be the tree's own */
    sim_tree_remove(&sim_parent_of(name)->entries, name_of(name));
    sim_tree_remove(&sim_disk->seen, name);
    free(name);
    return true;
}

bool sim_disk_cut_file(const char *path, uint64_t size_bytes)
{
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    if (inode == NULL || inode->seen.size < size_bytes) {
        return false;
    }
    sim_inode_resize(inode, size_bytes);
    sim_image_copy(&inode->stored, &inode->seen);
    return true;
}

const char *sim_disk_file_name(size_t number)
{
    for (size_t i = 0; i < sim_disk->seen.count; i++) {
        if (!sim_disk->seen.names[i].inode->is_directory && number-- == 0) {
            return sim_disk->seen.names[i].path;
        }
    }
    return NULL;
}

uint64_t sim_disk_file_size(const char *path)
{
    struct sim_inode *inode = sim_tree_find(&sim_disk->seen, path);
    return inode == NULL ? 0 : inode->seen.size;
}

/* Counts an operation. STATUS_IO when the power is gone; `*torn` when it goes right now. */
enum status sim_disk_begin(bool *torn)
{
    *torn = false;
    if (sim_disk->crashed) {
        return STATUS_IO;
    }
    sim_disk->operations++;
    if (sim_disk->crash_after == 0) {
        sim_disk->crashed = true;
        *torn = true;
        return STATUS_IO;
    }
    sim_disk->crash_after -= sim_disk->crash_after > 0 ? 1 : 0;
    return STATUS_OK;
}

enum status sim_disk_begin_change(void)
{
    bool torn;
    enum status status = sim_disk_begin(&torn);
    if (status == STATUS_OK && sim_disk->failing) {
        return STATUS_IO;
    }
    return status == STATUS_OK && sim_disk->read_only ? STATUS_READ_ONLY : status;
}
