/* Changes of topics that a shard can take over at once, in any order: one at most for each name.
 *
 * What happens to a topic one after the other becomes one change, so that what a topic was in
 * between is never seen: a group that moved away and came back meanwhile was never away. A topic
 * that takes the name of one that is gone does not go into the same set: the files of the first
 * must be out of the way before. */
#ifndef OTTLA_BROKER_CONTROLLER_CHANGE_SET_H
#define OTTLA_BROKER_CONTROLLER_CHANGE_SET_H

#include <stdbool.h>

#include "broker/controller/image.h"

struct change_place;

/* Start it zeroed. */
struct change_set {
    struct image_changes changes; /* for those who take them over; its flags are the owner's */
    struct change_place *places;  /* of each name among the changes */
};

/* Takes a change into the set, with references of its own. False, and nothing is changed: it has to
 * wait for what is in the set. Into an empty set everything goes. */
MUST_USE bool change_set_add(struct change_set *set, const struct image_change *change);

/* Lets go of everything; the set is empty and may be used again. */
void change_set_free(struct change_set *set);

#endif
