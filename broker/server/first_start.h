/* Whether an empty data directory means a new cluster, or a node that lost what it had.
 *
 * A voter with an empty directory does not vote on metadata (group_loss.h) until it knows. Nodes
 * tell at hello whether they have anything of the metadata log. When one does, the cluster is not
 * new: this node is brought up by the leader, and votes again after that. When all voters have said
 * that they have nothing, or a majority has and the others have not answered for a while, they
 * begin a new cluster. Two nodes that lose their directories together with the third one away look
 * like a new cluster; nothing that a majority had could be saved then anyway. Where voters change,
 * only the node that was formatted with --standalone begins a cluster, and its directory is no
 * empty one; the others have found one that is there.
 */
#ifndef OTTLA_BROKER_SERVER_FIRST_START_H
#define OTTLA_BROKER_SERVER_FIRST_START_H

#include <stdint.h>

struct broker;
struct metadata_log;

/* What the journal has of the metadata log, for those who say hello; before the shards run. */
void first_start_open(struct broker *broker);

/* Time passes; on shard 0, with the metadata group open. */
void first_start_tick(struct metadata_log *log, uint64_t now_ms);

#endif
