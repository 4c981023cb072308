/* Requests of clients that come before a broker of a cluster can serve them: they wait, within the
 * bounds on connections and memory that hold for all requests. Peers, ApiVersions and the question
 * to a controller for the voters (DescribeCluster) do not. */
#ifndef OTTLA_BROKER_API_PARKING_H
#define OTTLA_BROKER_API_PARKING_H

#include <stdbool.h>

#include "broker/api/request.h"

/* Takes a request whose header is decoded when it has to wait; request_start runs it again. */
bool parking_takes(struct request *request);

/* The broker serves: runs what waits on this shard. */
void parking_end(struct shard *shard);

#endif
