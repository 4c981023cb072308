/* From which replica a consumer reads (KIP-392). The leader sends consumers that name their rack to
 * a replica that stands there (replica.selector.class); any replica serves a consumer that comes.
 *
 * What a replica has applied is committed, so a follower never shows more than the leader may. It
 * may show less: what a consumer saw elsewhere and is not applied here yet is waited for. */
#ifndef OTTLA_BROKER_API_FETCH_REPLICA_H
#define OTTLA_BROKER_API_FETCH_REPLICA_H

#include "broker/api/fetch_state.h"
#include "broker/group/partition.h"

/* What of this a fetch takes part in; sets fetch->any_replica and fetch->nearer. */
void fetch_replica_begin(struct fetch *fetch);

/* Whether the partition may be read here for this fetch, as a Kafka error code. On its shard. */
int16_t fetch_replica_error(const struct fetch *fetch, const struct partition *partition);

/* The replica that the consumer shall read from instead of this one, -1 for none. On the
 * partition's shard. */
int32_t fetch_replica_nearer(const struct fetch_part *part, const struct partition *partition);

/* What reading outside of the log is: an error, or none where the offset may be there soon. */
int16_t fetch_replica_out_of_range(const struct fetch_part *part,
                                   const struct partition *partition);

#endif
