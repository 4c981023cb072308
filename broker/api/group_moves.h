/* Telling the node that leads the metadata log that a group is where it was to move to.
 *
 * Happy path: a shard's group that leads and whose move is over is told in one call; what the
 * metadata then says closes the group elsewhere. A call that fails is made again a second later.
 */
#ifndef OTTLA_BROKER_API_GROUP_MOVES_H
#define OTTLA_BROKER_API_GROUP_MOVES_H

#include <stdint.h>

#include "broker/net/shard.h"

/* Time passes on the shard. */
void group_moves_tell(struct shard *shard, uint64_t now_ms);

#endif
