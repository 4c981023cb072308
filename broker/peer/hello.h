/* What a node says first on a link, and what it makes of the answer (PeerHello, peer.schema). */
#ifndef OTTLA_BROKER_PEER_HELLO_H
#define OTTLA_BROKER_PEER_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "messages/peer.h"

struct broker;
struct peer_link;
struct shard;

/* Appends the body of this shard's hello to node `wanted_id`, or LINK_ANYBODY. */
void hello_write(const struct shard *shard, int32_t wanted_id, struct buffer *body);

/* Null when the answer is the wanted node's, in this cluster, and takes this one in; else why not,
 * made in `text`. */
const char *hello_objection(const struct broker *broker, int32_t wanted_id,
                            const struct peer_hello_response *answer, char *text, size_t size);

/* Whether such an answer may soon be another one: the link tries again in a short while. Else only
 * an operator changes it. */
bool hello_may_change(const struct peer_link *link, const struct peer_hello_response *answer);

#endif
