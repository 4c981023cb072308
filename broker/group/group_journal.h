/* The way of a group's entries and votes into the shared journal, and of the durable notice back to
 * the group's shard. */
#ifndef OTTLA_BROKER_GROUP_GROUP_JOURNAL_H
#define OTTLA_BROKER_GROUP_GROUP_JOURNAL_H

#include "broker/group/group.h"
#include "raft/raft.h"

/* Submits entries first..last of the group's window; RAFT_EVENT_PERSISTED follows. */
void group_journal_append(struct group *group, uint64_t first, uint64_t last, uint64_t term);

/* Submits the hard state, and with it what is known of a loss; RAFT_EVENT_SAVED follows. */
void group_journal_save(struct group *group, uint64_t term, int32_t voted_for);

/* Submits what is known of a loss, for itself; Raft hears nothing of it. With `anew` everything of
 * the group before that is void. `done` may be null; it runs on the shard. */
void group_journal_save_loss(struct group *group, bool anew,
                             void (*done)(void *context, enum status status), void *context);

/* Submits a truncation; nothing follows. */
void group_journal_truncate(struct group *group, uint64_t index);

/* Submits, behind what was submitted before, that all of these groups so far is void: they leave
 * this node, and may come back. The carrier's writes take it along; it may be one of them. `done`
 * runs on the shard when that is durable or has failed. */
void group_journal_forget(struct group *carrier, const uint64_t *ids, size_t count,
                          void (*done)(void *context, enum status status), void *context);

/* When the oldest write was submitted that is still under way; UINT64_MAX: there is none. Kept for
 * groups with peers only. */
uint64_t group_journal_oldest_ms(const struct group *group);

/* The task of a shard's replicas that hands the turn's writes to the journal. */
void group_journal_submit(struct shard_task *task);

/* Takes an event to Raft and carries out what follows; what became of it. In group.c. */
enum raft_result group_step(struct group *group, const struct raft_event *event);

/* One operation of the journal or the log writer ended; a closed group goes with its last. */
void group_io_done(struct group *group);

/* Applies what was committed while applying was paused. */
void group_resume(struct group *group);

#endif
