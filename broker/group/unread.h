/* What the disk does not read for now is not lost: others serve it meanwhile, if there are others.
 *
 * A group whose checkpoint or logs could not be read at its opening takes no part: it hears nobody
 * and says nothing, so that its part of the journal stays as it is, and clients get
 * KAFKA_STORAGE_ERROR. Every UNREAD_EVERY_MS it is opened again. A leader that cannot read its log
 * hands over. Without its metadata a node can do nothing: it is offline as when a write fails, and
 * its process begins anew (storage_watch.h).
 */
#ifndef OTTLA_BROKER_GROUP_UNREAD_H
#define OTTLA_BROKER_GROUP_UNREAD_H

#include "broker/group/group.h"
#include "broker/group/replicas.h"

enum { UNREAD_EVERY_MS = 5000 };

/* At the opening, before Raft is made: whether it failed because of a read. */
bool unread_at_opening(const struct group *group);

/* The opening is over, and it did; it will be tried again with what it had. */
void unread_note(struct group *group, const struct group_start *start);

/* The group ends. */
void unread_end(struct group *group);

/* Time passes: opens the groups again whose time has come. */
void unread_tick(struct replicas *replicas, uint64_t now_ms,
                 void (*open)(struct replicas *replicas, struct topic_image *topic,
                              const struct group_start *start));

/* A read of one of the group's logs has failed: whoever is nearest shall lead it. */
void unread_log(struct group *group, enum status status);

/* The same from any shard: the group's is told, if it is still there. */
void unread_tell(struct shard *from, uint64_t group, enum status status);

/* The metadata could not be read: the process is to begin anew. */
void unread_metadata(struct group *group, enum status status);

#endif
