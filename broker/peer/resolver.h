/* Names of nodes become addresses on a thread of their own, so that a name server that does not
 * answer stops nobody else. The thread starts with the first name that is not an address.
 */
#ifndef OTTLA_BROKER_PEER_RESOLVER_H
#define OTTLA_BROKER_PEER_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "broker/net/mailbox.h"
#include "broker/net/shard.h"

enum { PEER_ADDRESSES_MAX = 4, PEER_HOST_BYTES = 256 };

struct resolver;

/* Socket addresses with their port. */
struct peer_addresses {
    struct sockaddr_storage list[PEER_ADDRESSES_MAX];
    int count;
};

/* One question. Whoever gets the mail frees the job. */
struct resolve_job {
    struct mail mail;            /* `run` is set by who asks; comes to `shard` */
    struct shard *shard;
    void *owner;                 /* who asks; may be set to null on the shard */
    char host[PEER_HOST_BYTES];
    uint16_t port;
    struct peer_addresses addresses;
    const char *error;           /* null: there are addresses; else why not */
    struct resolve_job *next;    /* the resolver's */
};

/* A resolver without a thread yet. */
struct resolver *resolver_new(void);

/* Whether the host is an address already; then fills in the one. */
bool resolver_numeric(const char *host, uint16_t port, struct peer_addresses *addresses);

/* Takes the job over until its mail comes. Any thread. */
void resolver_ask(struct resolver *resolver, struct resolve_job *job);

/* No more mail comes from now on; questions that wait are dropped. Does not wait for the one that
 * is under way. Null is allowed. */
void resolver_close(struct resolver *resolver);

#endif
