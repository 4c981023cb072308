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

/* A node among others must not make up a cluster id of its own: STATUS_INVALID with a line in the
 * log when neither the configuration has one nor the data directory at that path. */
MUST_USE enum status cluster_check_id(const struct broker *broker, const char *path);

/* Makes the tables of nodes of all shards and the links to the voters. Before the shards run; their
 * loops and the data directory are open. */
void cluster_open_links(struct broker *broker);

/* Closes all links, after the shards have ended; calls under way end. */
void cluster_close_links(struct broker *broker);

#endif
