/* Listening sockets: new connections are counted, bounded and handed to the shards in turn.
 *
 * Bounds: max.connections and max.connections.per.ip. Past a bound the new connection is closed and
 * the log says so, at most once a second. Out of descriptors, accepting pauses for a moment.
 */
#ifndef OTTLA_BROKER_NET_ACCEPTOR_H
#define OTTLA_BROKER_NET_ACCEPTOR_H

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"
#include "broker/config/listeners.h"
#include "broker/net/shard.h"

struct broker;
struct address_count;

/* Who is connected, for the whole process; guarded by its lock. */
struct connection_register {
    pthread_mutex_t lock;
    struct address_count *by_address;
    uint32_t count;
    uint32_t limit;              /* max.connections */
    uint32_t limit_per_address;  /* max.connections.per.ip */
    uint64_t refused_logged_ms;
};

struct acceptor;

/* Binds and listens; connections wait until acceptor_start, then come to the broker's shards. The
 * listener's port is filled in when it was 0. Logs why it cannot: STATUS_BUSY when the port is
 * taken, else STATUS_IO. */
MUST_USE enum status acceptor_open(struct broker *broker, struct listener *listener,
                                   struct acceptor **acceptor);

/* Takes connections from now on. On shard 0. */
void acceptor_start(struct acceptor *acceptor);

/* Stops listening. On shard 0 only. */
void acceptor_close(struct acceptor *acceptor);

/* Starts with nobody connected; the bounds are max.connections and max.connections.per.ip. */
void connection_register_init(struct connection_register *reg, uint32_t limit,
                              uint32_t limit_per_address);

/* Releases it; every connection is gone. */
void connection_register_free(struct connection_register *reg);

/* A connection of that address ("host:port") was closed. Any thread. */
void acceptor_connection_gone(struct broker *broker, const char *address);

#endif
