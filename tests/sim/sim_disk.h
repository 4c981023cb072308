/* The inside of the simulated disk, shared by sim_disk.c (inodes, names, faults) and sim_file.c
 * (io/file.h on top of them). */
#ifndef OTTLA_TESTS_SIM_SIM_DISK_H
#define OTTLA_TESTS_SIM_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tests/sim/sim_image.h"

struct sim_inode {
    unsigned references; /* handles and names, in the current and the durable tree */
    bool is_directory;
    bool is_locked;
    struct sim_image seen;
    struct sim_image stored;
};

struct sim_name {
    char *path;
    struct sim_inode *inode;
};

struct sim_tree {
    struct sim_name *names; /* by path */
    size_t count;
    size_t capacity;
};

/* A change of names that is not on the disk yet. */
struct sim_change {
    char *directory;
    char *removed;        /* a path that goes, or null */
    char *added;          /* a path that comes, or null */
    struct sim_inode *inode;
};

struct sim_disk {
    struct sim_tree seen;
    struct sim_tree stored;
    struct sim_change *changes;
    size_t change_count;
    size_t change_capacity;
    uint64_t random;
    uint64_t capacity;
    uint64_t used;
    uint64_t operations;
    unsigned incarnation;
    bool read_only;
    bool failing;
    bool crashed;
    int64_t crash_after;
    int64_t fail_sync;
};

/* The disk in use. */
extern struct sim_disk *sim_disk;

/* What the path names; null when nothing. */
struct sim_inode *sim_tree_find(const struct sim_tree *tree, const char *path);

/* Whether the directory of the path is there. */
bool sim_tree_has_parent(const struct sim_tree *tree, const char *path);

/* Changes the visible size within the disk's capacity; false when it is full. */
bool sim_inode_resize(struct sim_inode *inode, uint64_t size);

/* One reference less. */
void sim_inode_release(struct sim_inode *inode);

/* Names an inode, in place of what had the name. */
void sim_tree_add(struct sim_tree *tree, const char *path, struct sim_inode *inode);

/* Moves a name, and with a directory all names in it. */
void sim_tree_rename(struct sim_tree *tree, const char *from, const char *to);

/* Takes a name away, if it is there. */
void sim_tree_remove(struct sim_tree *tree, const char *path);

/* A change of names that is not on the disk yet. */
void sim_change_note(const char *removed, const char *added, struct sim_inode *inode);

/* Stores the changes inside a directory, in order; null: all. */
void sim_changes_store(const char *directory);

/* The same for one that changes names or sizes. */
enum status sim_disk_begin_change(void);

/* Counts an operation. STATUS_IO when the power is gone; `*torn` when it goes right now. */
enum status sim_disk_begin(bool *torn);

/* Whether the path lies in the directory, at any depth; `rest` follows its slash. */
bool sim_path_is_inside(const char *path, const char *directory, const char **rest);

#endif
