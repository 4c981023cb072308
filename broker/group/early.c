/* A list in order of arrival. Looking for a group walks it, which is bounded and rare: once for
 * each group that is opened while something waits. */
#include "broker/group/early.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

struct early_message {
    struct list_link link;
    uint64_t group;
    uint64_t until_ms;
    struct raft_message message;
};

void early_init(struct early *early)
{
    *early = (struct early){.count = 0};
    list_init(&early->messages);
}

static void drop(struct early *early, struct early_message *waiting)
{
    assert(early->count > 0);
    list_remove(&waiting->link);
    early->count--;
    free(waiting);
}

static struct early_message *oldest(struct early *early)
{
    struct list_link *link = list_first(&early->messages);
    return link == NULL ? NULL : container_of(link, struct early_message, link);
}

void early_add(struct early *early, uint64_t group, const struct raft_message *message,
               uint64_t now_ms)
{
    assert(message->kind >= RAFT_PRE_VOTE);
    if (message->entry_count > 0) {
        return;
    }
    if (early->count == EARLY_MESSAGES_MAX) {
        drop(early, oldest(early));
    }
    struct early_message *waiting = memory_new_zero(1, sizeof *waiting);
    waiting->group = group;
    waiting->until_ms = now_ms + EARLY_KEEP_MS;
    waiting->message = *message;
    waiting->message.entries = NULL;
    list_push_back(&early->messages, &waiting->link);
    early->count++;
    assert(early->count <= EARLY_MESSAGES_MAX);
}

bool early_take(struct early *early, uint64_t group, struct raft_message *message)
{
    struct list_link *link;
    for (link = list_first(&early->messages); link != NULL;
         link = list_next(&early->messages, link)) {
        struct early_message *waiting = container_of(link, struct early_message, link);
        if (waiting->group == group) {
            *message = waiting->message;
            drop(early, waiting);
            return true;
        }
    }
    return false;
}

void early_tick(struct early *early, uint64_t now_ms)
{
    struct early_message *waiting;
    while ((waiting = oldest(early)) != NULL && waiting->until_ms <= now_ms) {
        drop(early, waiting);
    }
}

void early_free(struct early *early)
{
    struct early_message *waiting;
    while ((waiting = oldest(early)) != NULL) {
        drop(early, waiting);
    }
}
