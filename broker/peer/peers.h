/* The other nodes of the cluster, as one shard reaches them (docs/replication.md).
 *
 * Each shard has a link of its own to each other node, so that what a turn of the loop wants to
 * send leaves together and nobody takes a lock. A link is a connection like a client's: requests
 * with private API keys, on the listener that the node names for its peers. Raft messages are
 * requests without an answer; calls have one. What cannot be sent now (no link, too much unsent) is
 * dropped in the case of Raft, which sends again, and ends with an error in the case of calls.
 *
 * A node stands alone when it knows no other: then nothing here costs anything.
 */
#ifndef OTTLA_BROKER_PEER_PEERS_H
#define OTTLA_BROKER_PEER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/block.h"
#include "base/list.h"
#include "base/status.h"
#include "base/view.h"
#include "broker/net/shard.h"
#include "broker/peer/payload_place.h"
#include "broker/peer/places.h"

struct peers;
struct raft_message;

/* Where a node is reached by its peers. */
struct peer_address {
    int32_t node;
    struct view host;            /* copied */
    uint16_t port;
};

/* Makes the shard's table of nodes, empty; shard->peers is set. Before the shard runs. */
void peers_open(struct shard *shard);

/* Closes all links; calls under way end with STATUS_CLOSED. */
void peers_close(struct shard *shard);

/* The node is recorded there from now on: a link is made, and made anew when it breaks, there or
 * where the node itself said. A link that is up stays as it is. This node itself is passed over. On
 * the shard's thread, or before it runs. */
void peers_put(struct shard *shard, const struct peer_address *address);

/* From now on, while nobody is known to lead the metadata, the meeting places are asked in turn who
 * is there, and each such node gets a link. Shard 0; before it runs. */
void peers_meet(struct shard *shard);

/* The node is no member of the cluster any more. */
void peers_drop(struct shard *shard, int32_t node);

/* Sends a Raft message of the group to message->to at the end of this turn, in order. Entries are
 * referenced, not copied. May be dropped. */
void peers_send(struct shard *shard, uint64_t group, const struct raft_message *message,
                struct payload_place place);

/* A request to another node that gets an answer. */
struct peer_call {
    struct list_link link;       /* the link's */
    int32_t node;
    int16_t api_key;
    int16_t api_version;
    uint64_t timeout_ms;
    /* Once, on the shard, never inside peers_call. `body` is what follows the answer's header;
     * its block may be referenced to keep it. Status: STATUS_CLOSED no link, or it broke,
     * STATUS_TIMEOUT; then it is not known whether the request had an effect. */
    void (*done)(struct peer_call *call, enum status status, struct slice body);
    uint64_t deadline_ms;        /* the link's */
    bool sent;                   /* the other node may have got the request */
    int32_t correlation_id;      /* the link's */
};

/* Sends the request; `body` is its message, encoded for api_version, and is copied. Memory of the
 * call stays the caller's until `done`. */
void peers_call(struct shard *shard, struct peer_call *call, struct view body);

/* Forgets a call; `done` does not run. */
void peers_cancel(struct shard *shard, struct peer_call *call);

/* This shard's group is led by this node, in this epoch, and these replicas lag (group/lag.h):
 * every other node is told, and told again when a link to it is made (replicas_each_led). */
void peers_tell_leader(struct shard *shard, uint64_t group, int32_t epoch, uint64_t lag);

/* This node led the group in this epoch and does so no more, and knows of nobody else who does. */
void peers_tell_end(struct shard *shard, uint64_t group, int32_t epoch);

/* The node has just said hello to this shard's counterpart, and that it is reached there (port 0:
 * it did not say): nobody has to wait for the next try of its link, nor until its address is
 * recorded. A node that nobody has recorded gets a link as long as it is heard. Any thread. */
void peers_came(struct broker *broker, int32_t node, int32_t shard, int32_t shard_count,
                const struct place *place);

/* Whether the node was heard within the last moments; true for this node itself. Any thread. */
bool peers_is_alive(const struct broker *broker, int32_t node);

/* Whether this shard's link to the node has just broken, or would be found broken: a process that
 * was killed is known so before all its connections are seen to end. On the shard's thread. */
bool peers_is_doubtful(const struct shard *shard, int32_t node);

/* Whether there are other nodes at all. Any thread. */
bool peers_any(const struct broker *broker);

/* Time passes: links are made again, calls time out, silent nodes are noticed. */
void peers_tick(struct shard *shard, uint64_t now_ms);

#endif
