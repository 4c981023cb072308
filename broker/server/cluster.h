/* This node as one of several: the voters on metadata, and the links to them. They are those of
 * controller.quorum.voters and stay so; or, without that key, controller.quorum.bootstrap.servers
 * says where to ask for them at the first start, and they are what the metadata says from then on
 * (KIP-853). A node that names nobody else stands alone, and nothing here does anything.
 */
#ifndef OTTLA_BROKER_SERVER_CLUSTER_H
#define OTTLA_BROKER_SERVER_CLUSTER_H

#include "base/status.h"
#include "broker/config/listeners.h"
#include "broker/controller/cluster_image.h"

struct broker;
struct shard;

/* Who votes on metadata, as this shard knows. On its thread, or before it runs; valid until its
 * next picture of the brokers. */
const struct quorum_voter *cluster_voters(const struct shard *shard, int *count);

/* Reads the voters; broker->in_cluster says whether there are others. STATUS_INVALID with a line in
 * the log when the configuration contradicts itself. */
MUST_USE enum status cluster_read_voters(struct broker *broker);

/* A node among others must not make up a cluster id of its own: STATUS_INVALID with a line in the
 * log when neither the configuration has one nor the data directory at that path. */
MUST_USE enum status cluster_check_id(const struct broker *broker, const char *path);

/* Where the configuration does not say who votes: what this node knew before, or else what others
 * say, who are asked until one knows. The data directory is open. STATUS_CLOSED: told to stop. */
MUST_USE enum status cluster_find_voters(struct broker *broker);

/* The metadata's log comes again from others: it begins with the voters that were known last, now
 * and at every later start. Durable; blocks. */
MUST_USE enum status cluster_begin_with_voters(struct broker *broker);

/* From one picture to the next: when the voters are others, the file beside the data follows soon.
 * On shard 0. */
void cluster_keep_voters(struct shard *shard, const struct cluster_image *before,
                         const struct cluster_image *now);

/* Whether the address (host:port) is one of this node's own listeners. */
bool cluster_is_own(const struct broker *broker, struct view address);

/* Makes the tables of nodes of all shards and the links to the voters. Before the shards run; their
 * loops and the data directory are open. */
void cluster_open_links(struct broker *broker);

/* Closes all links, after the shards have ended; calls under way end. */
void cluster_close_links(struct broker *broker);

#endif
