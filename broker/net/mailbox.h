/* What other threads want from an event loop, in the order they asked.
 *
 * Any thread pushes; only the owner drains. Messages are intrusive, so that a push neither
 * allocates nor fails; how many can be under way is bounded by who owns them (one for each request
 * or write under way), not here.
 */
#ifndef OTTLA_BROKER_NET_MAILBOX_H
#define OTTLA_BROKER_NET_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

struct shard;

struct mail {
    struct mail *next;
    /* Runs on the receiving shard, which from then on owns the mail. */
    void (*run)(struct shard *shard, struct mail *mail);
};

struct mailbox {
    _Atomic(struct mail *) newest;
};

/* Adds the mail; true when the box was empty, so that the owner has to be woken. */
bool mailbox_push(struct mailbox *box, struct mail *mail);

/* Takes everything there is, oldest first, linked by next; null when empty. Owner only. */
struct mail *mailbox_drain(struct mailbox *box);

#endif
