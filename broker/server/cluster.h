/* This node as one of several: the voters of its configuration, and the links to them. A node whose
 * controller.quorum.voters names nobody else stands alone, and nothing here does anything.
 */
#ifndef OTTLA_BROKER_SERVER_CLUSTER_H
#define OTTLA_BROKER_SERVER_CLUSTER_H

#include "base/status.h"

struct broker;

/* Reads the voters; broker->in_cluster says whether there are others. STATUS_INVALID with a line in
 * the log when the configuration contradicts itself. */
MUST_USE enum status cluster_read_voters(struct broker *broker);

/* Makes the tables of nodes of all shards and the links to the voters. Before the shards run; their
 * loops and the data directory are open. */
void cluster_open_links(struct broker *broker);

/* Closes all links, after the shards have ended; calls under way end. */
void cluster_close_links(struct broker *broker);

#endif
