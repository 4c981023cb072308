/* What a shard knows of the other nodes, for the files of this folder. */
#ifndef OTTLA_BROKER_PEER_PEER_TABLE_H
#define OTTLA_BROKER_PEER_PEER_TABLE_H

#include <event2/event.h>
#include <stdint.h>

#include "base/list.h"
#include "broker/net/shard.h"
#include "broker/peer/link.h"
#include "broker/peer/peers.h"

struct peers {
    struct shard *shard;
    struct list links;           /* struct peer_link */
    struct list due;             /* links with something to send */
    struct list leaving;         /* links of dropped nodes: freed at the end of the turn */
    struct list failed;          /* struct peer_call that could not be sent */
    struct shard_task flush;     /* at the end of the turn */
    struct shard_timer beat;     /* on shard 0, when there are others */
    uint64_t beat_ms;            /* the last one */
};

/* The link to the node, or null. */
struct peer_link *peers_link(const struct shard *shard, int32_t node);

/* The link has something to send, or has to be looked at, at the end of this turn. */
void peers_due(struct peer_link *link);

/* The link is up: the other node is told whom this shard leads. */
void peers_link_up(struct peer_link *link);

/* The link broke, or could not be made. One to a node that nobody has recorded, and that is not
 * heard, ends. */
void peers_link_broken(struct peer_link *link);

/* Another node than the link's answered there: a link to that one knows where to go, and is made
 * when there is none. */
void peers_met(const struct peer_link *link, int32_t node, struct view cluster_id);

/* Whether the link has nothing to look for now: it is one that meets others, and who leads the
 * metadata is known. */
bool peers_rests(const struct peer_link *link);

/* Where the link may meet any controller; null: nowhere. One link a node looks for it there. */
const struct meeting_places *peers_meeting(const struct peer_link *link);

/* The answer to one of the link's requests; `frame` begins with the answer's header. */
void peer_call_answered(struct peer_link *link, struct slice frame);

/* The link broke: its calls end. */
void peer_calls_closed(struct peer_link *link);

/* Ends calls that could not be sent. */
void peer_calls_fail(struct peers *peers);

/* Ends calls whose time is over. */
void peer_calls_tick(struct peers *peers, uint64_t now_ms);

#endif
