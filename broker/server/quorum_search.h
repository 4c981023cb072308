/* The first start of a node that knows only where to ask: controller.quorum.bootstrap.servers. */
#ifndef OTTLA_BROKER_SERVER_QUORUM_SEARCH_H
#define OTTLA_BROKER_SERVER_QUORUM_SEARCH_H

#include "base/status.h"
#include "broker/server/quorum_file.h"

struct broker;

/* Asks one server after the other for the voters (DescribeQuorum, then DescribeCluster); the first
 * that knows is believed. Blocks, some seconds at most for each. STATUS_NOT_FOUND when none knows.
 * The texts live in the broker's arena. */
MUST_USE enum status quorum_search(struct broker *broker, struct quorum_list *found);

#endif
