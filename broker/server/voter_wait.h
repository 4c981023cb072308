/* Changes of the voters, from their record until Raft's members have followed.
 *
 * What the metadata says of the voters is where a change begins; it is over when the members of the
 * metadata group, committed, say the same. Any node sees that in its own log, so that a leader that
 * is no voter any more still knows when its own removal is done.
 */
#ifndef OTTLA_BROKER_SERVER_VOTER_WAIT_H
#define OTTLA_BROKER_SERVER_VOTER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/server/metadata_log.h"

/* Somebody who waits until the node votes, or does not any more. */
struct voter_wait {
    struct metadata_wait wait;   /* its deadline_ms and done are the caller's */
    int32_t node;
    bool votes;
};

/* Tells when it is so. Memory stays the caller's until then. */
void voter_wait_start(struct shard *from, struct voter_wait *wait);

/* The voter whose change is not over yet; -1: there is none. On shard 0. */
int32_t voter_pending(const struct broker *broker);

/* Tells those whose change is over, or whose deadline has passed. */
void voter_waits_tick(struct metadata_log *log, uint64_t now_ms);

/* Everybody who waits is told the error. */
void voter_waits_fail(struct metadata_log *log, int16_t error);

#endif
