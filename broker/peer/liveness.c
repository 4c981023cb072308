/* A small table of atomics. A node that is lost is told as mail to each shard; nothing can fail. */
#include "broker/peer/liveness.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group/replicas.h"
#include "broker/net/shard.h"
#include "broker/server/broker.h"
#include "io/clock.h"

struct node_mail {
    struct mail mail;
    int32_t node;
};

void liveness_init(struct liveness *liveness)
{
    *liveness = (struct liveness){0};
    pthread_mutex_init(&liveness->lock, NULL);
}

static struct liveness_node *find(const struct liveness *liveness, int32_t node, int32_t key)
{
    assert(node >= 0 && node < INT32_MAX);
    for (int i = 0; i < LIVENESS_NODES; i++) {
        const struct liveness_node *place = &liveness->nodes[i];
        int32_t found = atomic_load_explicit(&place->key, memory_order_acquire);
        if (found == key || found == 0) {
            return found == key ? (struct liveness_node *)(uintptr_t)place : NULL;
        }
    }
    return NULL;
}

struct liveness_node *liveness_add(struct liveness *liveness, int32_t node)
{
    int32_t key = node + 1;
    for (int i = 0; i < LIVENESS_NODES; i++) {
        int32_t found = 0;
        if (atomic_compare_exchange_strong(&liveness->nodes[i].key, &found, key) || found == key) {
            return &liveness->nodes[i];
        }
    }
    return NULL;
}

const struct liveness_node *liveness_find(const struct liveness *liveness, int32_t node)
{
    return find(liveness, node, node + 1);
}

int32_t liveness_id(const struct liveness_node *node)
{
    return atomic_load_explicit(&node->key, memory_order_relaxed) - 1;
}

void liveness_heard(struct liveness_node *node, uint64_t now_ms)
{
    assert(node != NULL);
    atomic_store_explicit(&node->heard_ms, now_ms, memory_order_release);
    if (!atomic_load_explicit(&node->alive, memory_order_relaxed) &&
        !atomic_exchange(&node->alive, true)) {
        log_info("peer", "node %d is alive", liveness_id(node));
    }
}

static void tell_lost(struct shard *shard, struct mail *mail)
{
    struct node_mail *lost = container_of(mail, struct node_mail, mail);
    assert(lost->node != shard->broker->node_id);
    if (shard->replicas != NULL) {
        replicas_peer_lost(shard->replicas, lost->node);
    }
    free(lost);
}

static void tell_back(struct shard *shard, struct mail *mail)
{
    struct node_mail *back = container_of(mail, struct node_mail, mail);
    assert(back->node != shard->broker->node_id);
    if (shard->replicas != NULL) {
        replicas_peer_back(shard->replicas, back->node);
    }
    free(back);
}

static void tell_shards(struct broker *broker, const struct liveness_node *node,
                        void (*run)(struct shard *shard, struct mail *mail))
{
    for (int i = 0; i < broker->shard_count; i++) {
        struct node_mail *mail = memory_new_zero(1, sizeof *mail);
        mail->mail.run = run;
        mail->node = liveness_id(node);
        shard_post(&broker->shards[i], &mail->mail);
    }
}

static bool become_lost(struct broker *broker, struct liveness_node *node)
{
    if (!atomic_exchange(&node->alive, false) || atomic_load(&broker->stopping)) {
        return false;
    }
    atomic_store(&node->back_told, false); /* whoever finds it alive from now on tells so */
    tell_shards(broker, node, tell_lost);
    return true;
}

/* Whether another process of the node was known; this one is from now on. With the lock. */
static bool take_over(struct liveness_node *node, struct uuid incarnation, uint64_t now_ms)
{
    bool is_known = uuid_equal(node->incarnation, incarnation);
    bool is_other = !uuid_is_zero(node->incarnation) && !is_known;
    if (!is_known) {
        atomic_store_explicit(&node->since_ms, now_ms, memory_order_relaxed);
    }
    node->incarnation = incarnation;
    return is_other;
}

/* What the process before had promised or held in memory is gone, however quickly the next one
 * came: groups begin with it anew. */
static void process_replaced(struct broker *broker, struct liveness_node *node)
{
    if (become_lost(broker, node)) {
        log_warn("peer", "node %d is lost: another process answers for it", liveness_id(node));
    }
}

void liveness_told(struct broker *broker, int32_t node, struct uuid incarnation,
                   bool keeps_metadata)
{
    struct liveness_node *place = liveness_add(&broker->liveness, node);
    if (place == NULL) {
        return;
    }
    atomic_store(&place->metadata, keeps_metadata ? LIVENESS_KEPT : LIVENESS_EMPTY);
    pthread_mutex_lock(&broker->liveness.lock);
    bool is_other = take_over(place, incarnation, clock_monotonic_ms());
    pthread_mutex_unlock(&broker->liveness.lock);
    if (is_other) {
        process_replaced(broker, place);
    }
}

bool liveness_join(struct broker *broker, struct liveness_node *node, struct uuid incarnation,
                   uint64_t now_ms)
{
    struct liveness *liveness = &broker->liveness;
    pthread_mutex_lock(&liveness->lock);
    bool may_join = atomic_load(&node->incoming) == 0 ||
                    uuid_equal(node->incarnation, incarnation) ||
                    !liveness_is_alive(node, now_ms);
    bool is_other = false;
    if (may_join) {
        is_other = take_over(node, incarnation, now_ms);
        atomic_fetch_add(&node->incoming, 1);
    }
    pthread_mutex_unlock(&liveness->lock);
    if (is_other) {
        process_replaced(broker, node);
    }
    if (may_join) {
        liveness_heard(node, now_ms);
    }
    return may_join;
}

void liveness_left(struct broker *broker, struct liveness_node *node)
{
    int before = atomic_fetch_sub(&node->incoming, 1);
    assert(before > 0);
    if (before == 1 && become_lost(broker, node)) {
        log_warn("peer", "node %d is lost: its connections broke", liveness_id(node));
    }
}

uint64_t liveness_silent_ms(const struct liveness_node *node, uint64_t now_ms)
{
    uint64_t heard_ms = atomic_load_explicit(&node->heard_ms, memory_order_acquire);
    return now_ms > heard_ms ? now_ms - heard_ms : 0; /* another thread's time may be later */
}

static bool was_heard(const struct liveness_node *node, uint64_t now_ms)
{
    return liveness_silent_ms(node, now_ms) <= LIVENESS_SILENT_MS;
}

bool liveness_is_alive(const struct liveness_node *node, uint64_t now_ms)
{
    return node != NULL && atomic_load(&node->alive) && was_heard(node, now_ms);
}

uint64_t liveness_known_ms(const struct liveness_node *node, uint64_t now_ms)
{
    if (!liveness_is_alive(node, now_ms)) {
        return 0;
    }
    uint64_t since_ms = atomic_load_explicit(&node->since_ms, memory_order_relaxed);
    return now_ms > since_ms ? now_ms - since_ms : 0;
}

int liveness_gone(const struct liveness *liveness, uint64_t now_ms, int32_t nodes[LIVENESS_NODES])
{
    int count = 0;
    for (int i = 0; i < LIVENESS_NODES && liveness_id(&liveness->nodes[i]) >= 0; i++) {
        const struct liveness_node *node = &liveness->nodes[i];
        if (liveness_silent_ms(node, now_ms) > LIVENESS_GONE_MS && !atomic_load(&node->alive)) {
            nodes[count++] = liveness_id(node);
        }
    }
    return count;
}

void liveness_check(struct broker *broker, uint64_t now_ms)
{
    for (int i = 0; i < LIVENESS_NODES; i++) {
        struct liveness_node *node = &broker->liveness.nodes[i];
        if (liveness_id(node) < 0) {
            break;
        }
        if (atomic_load(&node->alive) && !was_heard(node, now_ms) && become_lost(broker, node)) {
            log_warn("peer", "node %d is lost: nothing came from it for %d ms", liveness_id(node),
                     LIVENESS_SILENT_MS);
        }
        if (atomic_load(&node->alive) && !atomic_exchange(&node->back_told, true)) {
            tell_shards(broker, node, tell_back);
        }
    }
}
