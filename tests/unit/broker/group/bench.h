/* One group without a broker: what the parts around Raft look at, and a core to drive by hand. */
#ifndef OTTLA_TESTS_UNIT_BROKER_GROUP_BENCH_H
#define OTTLA_TESTS_UNIT_BROKER_GROUP_BENCH_H

#include <stdlib.h>

#include "broker/group/group_window.h"
#include "broker/group/proposals.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "tests/unit/runner.h"

struct bench {
    struct broker broker;
    struct replicas replicas;
    struct shard shard;
    struct group group;
    struct raft_actions actions;
};

static inline void bench_step(struct bench *bench, struct raft_event event)
{
    raft_actions_clear(&bench->actions);
    ck_assert_int_eq(raft_step(bench->group.raft, &event, &bench->actions), RAFT_OK);
}

/* Node 1 of `count` voters 1, 2, ..., started. */
static inline struct bench *bench_new(size_t count)
{
    struct raft_member members[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct bench *bench = calloc(1, sizeof *bench);
    struct raft_config config = {
        .id = 1, .voted_for = RAFT_NO_NODE, .members = members, .member_count = count};
    bench->broker.node_id = 1;
    bench->shard.broker = &bench->broker;
    bench->shard.replicas = &bench->replicas;
    bench->group.shard = &bench->shard;
    bench->group.raft = raft_create(&config);
    proposals_init(&bench->group);
    raft_actions_init(&bench->actions);
    bench_step(bench, (struct raft_event){.kind = RAFT_EVENT_START});
    return bench;
}

static inline void bench_free(struct bench *bench)
{
    group_window_end(&bench->group);
    ck_assert_uint_eq(bench->replicas.window_bytes, 0);
    raft_actions_free(&bench->actions);
    for (int i = 0; i < REPLICAS_STEP_DEPTH; i++) {
        raft_actions_free(&bench->replicas.actions[i]);
    }
    raft_free(bench->group.raft);
    free(bench);
}

static inline void bench_message(struct bench *bench, struct raft_message message)
{
    message.to = 1;
    bench_step(bench, (struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = &message});
}

static inline void bench_saved(struct bench *bench, uint64_t term, int32_t voted_for)
{
    struct raft_event event = {.kind = RAFT_EVENT_SAVED};
    event.saved.term = term;
    event.saved.voted_for = voted_for;
    bench_step(bench, event);
}

static inline void bench_persisted(struct bench *bench, uint64_t term, uint64_t index)
{
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED};
    event.persisted.term = term;
    event.persisted.index = index;
    bench_step(bench, event);
}

/* Leads three voters in term 1. */
static inline void bench_elect(struct bench *bench)
{
    bench_step(bench, (struct raft_event){.kind = RAFT_EVENT_CAMPAIGN});
    bench_message(bench, (struct raft_message){
                             .kind = RAFT_PRE_VOTE_REPLY, .from = 2, .term = 1, .accepted = true});
    bench_saved(bench, 1, 1);
    bench_message(bench, (struct raft_message){
                             .kind = RAFT_VOTE_REPLY, .from = 2, .term = 1, .accepted = true});
    ck_assert_int_eq(raft_role(bench->group.raft), RAFT_LEADER);
}

/* One more entry; returns its index. */
static inline uint64_t bench_propose(struct bench *bench, size_t bytes)
{
    struct block *block = block_new(bytes);
    struct slice payload = slice_of(block, 0, bytes);
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.payloads = &payload;
    event.propose.count = 1;
    bench_step(bench, event);
    block_unref(block);
    return raft_last_index(bench->group.raft);
}

#endif
