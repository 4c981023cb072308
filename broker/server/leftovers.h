/* What deletions that a crash cut off left behind: records in the journal of groups that are gone,
 * directories of partitions that are gone. */
#ifndef OTTLA_BROKER_SERVER_LEFTOVERS_H
#define OTTLA_BROKER_SERVER_LEFTOVERS_H

#include "broker/controller/image.h"

struct broker;
struct group;

/* At the start, on shard 0, when the image is complete and before any of its groups is opened:
 * renames the directories of partitions that no topic has here. Groups that live elsewhere now may
 * come back: of these the journal and the checkpoint are gone before (group_removal.h). `carrier`
 * is the metadata group. `done` runs once, perhaps at once; the image is not looked at later. */
void leftovers_discard_partitions(struct group *carrier, const struct image *image,
                                  void (*done)(void *context), void *context);

/* When every group is open: tells the journal to forget those that nobody opened, and has the
 * renamed directories removed in the background. */
void leftovers_forget_groups(struct broker *broker);

#endif
