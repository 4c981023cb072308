/* The inside of the simulated disk, shared by sim_disk.c (inodes, names, faults) and sim_file.c
 * (io/file.h on top of them). */
#ifndef OTTLA_TESTS_SIM_SIM_DISK_H
#define OTTLA_TESTS_SIM_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tests/sim/sim_image.h"

struct sim_name {
    char *path;
    struct sim_inode *inode;
};

struct sim_tree {
    struct sim_name *names; /* by path */
    size_t count;
    size_t capacity;
};

struct sim_inode {
    unsigned references; /* handles, names, seen and stored, and changes of names */
    bool is_directory;
    bool is_locked;
    bool is_gone;            /* a directory whose removal is on the disk */
    struct sim_tree entries; /* of a directory: the names in it that are on the disk */
    struct sim_image seen;
    struct sim_image stored;
};

/* A change of names that is not on the disk yet. It is the directory's, whatever name that has by
 * now: another directory may have got the name it had. */
struct sim_change {
    struct sim_inode *directory;
    char *removed;        /* a name in it that goes, or null */
    char *added;          /* a name in it that comes, or null */
    struct sim_inode *inode;
};

struct sim_disk {
    struct sim_tree seen; /* every path; "/" is the root */
    struct sim_change *changes;
    size_t change_count;
    size_t change_capacity;
    uint64_t random;
    uint64_t capacity;
    uint64_t used;
    uint64_t operations;
    uint64_t direct_bytes;
    unsigned incarnation;
    bool read_only;
    bool failing;
    bool reads_fail;
    const struct sim_inode *bad_inode; /* reads of it that touch [bad_from, bad_to) fail */
    uint64_t bad_from;
    uint64_t bad_to;
    bool crashed;
    int64_t crash_after;
    int64_t fail_sync;
};

/* The disk in use. */
extern struct sim_disk *sim_disk;

/* What the path names; null when nothing. */
struct sim_inode *sim_tree_find(const struct sim_tree *tree, const char *path);

/* The directory that the path lies in; null when there is none. */
struct sim_inode *sim_parent_of(const char *path);

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

/* A change of names that is not on the disk yet, before it is seen: paths in one directory. */
void sim_change_note(const char *removed, const char *added, struct sim_inode *inode);

/* Stores the changes of a directory, in order; null: all. */
void sim_changes_store(struct sim_inode *directory);

/* The same for one that changes names or sizes. */
enum status sim_disk_begin_change(void);

/* Counts an operation. STATUS_IO when the power is gone; `*torn` when it goes right now. */
enum status sim_disk_begin(bool *torn);

/* Whether the path lies in the directory, at any depth; `rest` follows its slash. */
bool sim_path_is_inside(const char *path, const char *directory, const char **rest);

#endif
