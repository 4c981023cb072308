/* One journal operation for each of Raft's append and save actions. The journal's thread ends an
 * operation by mailing it to the group's shard; a failure takes the group offline there. */
#include "broker/group/group_journal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/planted.h"
#include "broker/group/group_loss.h"
#include "broker/group/group_members.h"
#include "broker/group/replicas.h"
#include "io/clock.h"
#include "storage/journal.h"

struct group_write {
    struct journal_op op;
    struct list_link link;   /* in the shard's writes of this turn */
    struct list_link under_way; /* in the group's, oldest first; groups with peers only */
    uint64_t begun_ms;
    struct mail mail;
    struct group *group;
    enum status status;
    void (*done)(void *context, enum status status); /* may be null */
    void *context;
    struct raft_event after; /* fed to Raft when it is durable; kind 0: nothing */
    struct journal_record records[];
};

static struct group_write *write_new(struct group *group, size_t record_count)
{
    struct group_write *write =
        memory_new_zero(1, sizeof *write + record_count * sizeof write->records[0]);
    write->group = group;
    write->op.records = write->records;
    write->op.record_count = record_count;
    group->io_pending++;
    return write;
}

static void write_free(struct group_write *write)
{
    for (size_t i = 0; i < write->op.record_count; i++) {
        if (write->records[i].payload.block != NULL && !planted(PLANT_WRITE_BORROWS)) {
            block_unref(write->records[i].payload.block);
        }
    }
    free(write);
}

static void write_ended(struct shard *shard, struct mail *mail)
{
    (void)shard;
    struct group_write *write = container_of(mail, struct group_write, mail);
    struct group *group = write->group;
    if (list_contains(&write->under_way)) {
        list_remove(&write->under_way);
    }
    if (write->status != STATUS_OK) {
        group_fail(group, write->status);
    } else if (write->after.kind != 0 && !group->closed) {
        group_step(group, &write->after);
    }
    if (write->done != NULL) {
        write->done(write->context, write->status);
    }
    write_free(write);
    group_io_done(group);
}

/* On the journal's thread. */
static void journal_done(struct journal_op *op, enum status status)
{
    struct group_write *write = container_of(op, struct group_write, op);
    write->status = status;
    write->mail.run = write_ended;
    shard_post(write->group->shard, &write->mail);
}

/* At the end of the turn: all that the turn's requests want written leaves together, so that it
 * goes into one write of the journal and not the first alone into one, the rest into the next. */
void group_journal_submit(struct shard_task *task)
{
    struct replicas *replicas = container_of(task, struct replicas, submit);
    struct list_link *link;
    while ((link = list_pop_front(&replicas->writes)) != NULL) {
        struct group_write *write = container_of(link, struct group_write, link);
        if (planted(PLANT_ACK_BEFORE_SYNC) && write->after.kind != 0 && !write->group->closed) {
            group_step(write->group, &write->after);
        }
        if (replicas->journal != NULL) {
            journal_submit(replicas->journal, &write->op);
        } else {
            journal_done(&write->op, STATUS_CLOSED); /* the process ends */
        }
    }
}

static void submit(struct group_write *write)
{
    struct replicas *replicas = write->group->shard->replicas;
    write->op.done = journal_done;
    if (group_is_replicated(write->group)) {
        write->begun_ms = clock_monotonic_ms();
        list_push_back(&write->group->writes, &write->under_way);
    }
    list_push_back(&replicas->writes, &write->link);
    shard_defer(write->group->shard, &replicas->submit);
}

uint64_t group_journal_oldest_ms(const struct group *group)
{
    struct list_link *link = list_first(&group->writes);
    return link == NULL ? UINT64_MAX : container_of(link, struct group_write, under_way)->begun_ms;
}

void group_journal_append(struct group *group, uint64_t first, uint64_t last, uint64_t term)
{
    assert(first <= last);
    struct group_write *write = write_new(group, last - first + 1);
    for (uint64_t index = first; index <= last; index++) {
        const struct raft_entry *entry = raft_entry_at(group->raft, index);
        write->records[index - first] = (struct journal_record){
            .kind = JOURNAL_ENTRY,
            .entry_kind = entry->kind,
            .group = group->id,
            .term = entry->term,
            .index = entry->index,
            .payload = entry->payload,
        };
        if (entry->payload.block != NULL && !planted(PLANT_WRITE_BORROWS)) {
            block_ref(entry->payload.block); /* Raft may drop the entry within this turn */
        }
    }
    write->after.kind = RAFT_EVENT_PERSISTED;
    write->after.persisted.term = term;
    write->after.persisted.index = last;
    submit(write);
}

/* Term, vote, and how much of a loss has been made up for. */
static struct journal_record hard_state(struct group *group, uint64_t term, int32_t voted_for)
{
    struct journal_record record = {
        .kind = JOURNAL_VOTE, .group = group->id, .term = term, .voted_for = voted_for};
    group_loss_fill(group, &record);
    return record;
}

void group_journal_save_loss(struct group *group, bool anew,
                             void (*done)(void *context, enum status status), void *context)
{
    struct group_write *write = write_new(group, 1);
    write->records[0] = hard_state(group, raft_term(group->raft), raft_voted_for(group->raft));
    write->records[0].kind = anew ? JOURNAL_ANEW : JOURNAL_VOTE;
    write->done = done;
    write->context = context;
    submit(write);
}

void group_journal_save(struct group *group, uint64_t term, int32_t voted_for)
{
    struct group_write *write = write_new(group, 1);
    write->records[0] = hard_state(group, term, voted_for);
    write->after.kind = RAFT_EVENT_SAVED;
    write->after.saved.term = term;
    write->after.saved.voted_for = voted_for;
    if (planted(PLANT_VOTE_NOT_SAVED)) {
        write->records[0].voted_for = RAFT_NO_NODE;
        write->records[0].term = 0;
    }
    submit(write);
}

void group_journal_truncate(struct group *group, uint64_t index)
{
    struct group_write *write = write_new(group, 1);
    write->records[0] =
        (struct journal_record){.kind = JOURNAL_TRUNCATE, .group = group->id, .index = index};
    submit(write);
}

void group_journal_forget(struct group *carrier, const uint64_t *ids, size_t count,
                          void (*done)(void *context, enum status status), void *context)
{
    struct group_write *write = write_new(carrier, count);
    assert(count > 0);
    write->done = done;
    write->context = context;
    for (size_t i = 0; i < count; i++) {
        write->records[i] = (struct journal_record){.kind = JOURNAL_FORGET, .group = ids[i]};
    }
    submit(write);
}
