/* The disk of simulations: io/file.h over memory, with the faults of real disks.
 *
 * Every file has two images: what a reader sees, and what is on the disk. A sync copies the first
 * over the second; a durable write (FILE_DURABLE) changes both. A crash keeps, of what differs,
 * some 512-byte sectors and loses the others. Names (creations, renames, removals) are kept up to
 * some point in their order unless their directory was synced. One disk is in use at a time, since
 * io/file.h has none to pass; used from one thread.
 */
#ifndef OTTLA_TESTS_SIM_SIM_FILE_H
#define OTTLA_TESTS_SIM_SIM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct sim_disk;

/* A further disk, empty; the owner releases it when no handle of its files is left. */
struct sim_disk *sim_disk_new(uint64_t seed);
void sim_disk_free(struct sim_disk *disk);

/* From now on this is the disk in use; null: the one that there is from the start. */
void sim_disk_use(struct sim_disk *disk);

/* The machine loses power now. */
void sim_disk_crash(void);

/* After a crash: it was only the process that died; nothing that it wrote is lost. */
void sim_disk_keep(void);

/* An empty disk without faults. Everything of the one before is gone; no handle may be left. */
void sim_disk_reset(uint64_t seed);

/* Bytes that all files together may have; 0: no limit. */
void sim_disk_set_capacity(uint64_t bytes);

/* Every write fails with STATUS_READ_ONLY. */
void sim_disk_set_read_only(bool read_only);

/* From now on every change fails with STATUS_IO, a write after some of its sectors, until this is
 * taken back; a restart of the machine does not mend it. */
void sim_disk_set_failing(bool failing);

/* From now on every read of a file fails with STATUS_IO, until this is taken back. */
void sim_disk_set_reads_failing(bool failing);

/* From now on reads of this file that touch the bytes from `from` up to `to` fail with STATUS_IO,
 * whatever it is called by then, and those of the file before do not any more. Null: none. */
void sim_disk_spoil(const char *path, uint64_t from, uint64_t to);

/* Bytes that all files together have. */
uint64_t sim_disk_used(void);

/* The sync after `count` more ends with STATUS_IO; -1: none. */
void sim_disk_fail_sync(int64_t count);

/* The machine loses power in the middle of the operation after `count` more: that one and all
 * later ones fail with STATUS_IO, until sim_disk_restart. -1: it does not. */
void sim_disk_crash_after(int64_t count);

bool sim_disk_crashed(void);

/* Power comes back: what was not synced is kept or lost. All handles are dead. */
void sim_disk_restart(void);

/* Changes one bit of a file, in both images. False when the file is not that long. */
bool sim_disk_flip(const char *path, uint64_t position, unsigned bit);

/* Removes a file behind everybody's back, durably. */
bool sim_disk_lose_file(const char *path);

/* Cuts a file behind everybody's back, durably. */
bool sim_disk_cut_file(const char *path, uint64_t size_bytes);

/* The path of the n-th file, in order of names; null when there are fewer. */
const char *sim_disk_file_name(size_t number);
uint64_t sim_disk_file_size(const char *path);

/* Bytes written so far to files open with FILE_DIRECT. */
uint64_t sim_disk_direct_bytes(void);

/* Operations so far that could have failed. */
uint64_t sim_disk_operations(void);

/* A number below `bound` from the disk's generator. */
uint64_t sim_disk_random(uint64_t bound);

#endif
