/* One outgoing connection of a shard to another node.
 *
 * Happy path: the host is resolved, the socket connects, PeerHello is answered, and from then on
 * the link is up: what was collected in a turn goes out at its end. Failures: whatever breaks is
 * said in the log, and the link is made again after 20 ms to 1 s (5 s when the other node refused
 * it), at the next of the node's places when no connection was made. What was to be sent is gone
 * then.
 */
#ifndef OTTLA_BROKER_PEER_LINK_H
#define OTTLA_BROKER_PEER_LINK_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/block.h"
#include "base/list.h"
#include "base/view.h"
#include "broker/peer/frames.h"
#include "broker/peer/peers.h"
#include "broker/peer/places.h"
#include "broker/peer/resolver.h"

enum link_state {
    LINK_WAITING,                /* for its next try */
    LINK_RESOLVING,
    LINK_CONNECTING,
    LINK_GREETING,
    LINK_UP
};

/* An answer being read: a four-byte size, then that many bytes. */
struct answer_reader {
    uint8_t head[4];
    size_t head_have;
    struct block *block;
    size_t length;
    size_t have;
};

enum { LINK_ANYBODY = -1 };      /* as the node of a link that never comes up: peers_meet */

struct peer_link {
    struct list_link link;       /* in the shard's links */
    struct list_link due;        /* in the shard's links with something to send */
    struct shard *shard;
    int32_t node;
    struct places places;
    struct place place;          /* the one being tried, or where it is up */
    enum link_state state;
    int fd;                      /* -1: none */
    unsigned life;               /* counts connections that ended */
    struct event *read_event;    /* with the fd */
    struct event *write_event;
    struct event *timer;         /* next try, or the end of patience */
    struct resolve_job *job;     /* while resolving */
    struct peer_addresses addresses;
    int address;                 /* the one being tried */
    uint32_t backoff_ms;
    uint64_t down_ms;            /* when it ceased to be up; 0: never was */
    struct evbuffer *out;
    struct raft_outbox outbox;
    struct peer_leaders_request_leader *leaders;
    size_t leader_count;
    size_t leader_capacity;
    struct answer_reader answer;
    int32_t correlation_id;      /* of the latest request */
    struct list calls;           /* struct peer_call, under way */
    bool sent;                   /* something since the last beat */
    uint64_t dropped;            /* Raft messages that found no room; told once in a while */
    uint64_t dropped_told_ms;
    char said[200];              /* what was logged last, and when */
    uint64_t said_ms;
};

/* A link that connects from now on. On the shard's thread, or before it runs. */
struct peer_link *link_new(struct shard *shard, int32_t node, const struct places *places);

/* Its places are others: the one whose turn it is is tried now. A connection that is up stays: the
 * node said hello on it, and breaking it would look like a loss of the node to both sides. */
void link_moved(struct peer_link *link);

/* Tries now, if it waits for the next try or for a connection. */
void link_hurry(struct peer_link *link);

/* Closes it; it must not be used by who calls. Calls must be gone. */
void link_free(struct peer_link *link);

/* Collects for the end of this turn; dropped when the link is not up, or (Raft) full. */
void link_send_raft(struct peer_link *link, uint64_t group, const struct raft_message *message,
                    struct payload_place place);
void link_send_leader(struct peer_link *link, const struct peer_leaders_request_leader *leader);

/* Collects a request; `body` is copied. Returns its correlation id. The link is up. */
int32_t link_request(struct peer_link *link, int16_t api_key, int16_t api_version,
                     struct view body);

/* Writes what was collected. */
void link_flush(struct peer_link *link);

/* Sends something when nothing was sent since the last beat, if the link is up. */
void link_beat(struct peer_link *link);

#endif
