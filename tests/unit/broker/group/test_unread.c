/* A group that could not be read is opened again with all that the journal had of it, also when its
 * checkpoint is lost as well; it is given up only when the group really begins. */
#include "broker/group/unread.h"

#include "broker/controller/topic_image.h"
#include "broker/group/boot.h"
#include "broker/group/group_loss.h"
#include "broker/group/group_members.h"
#include "broker/server/broker.h"
#include "tests/unit/runner.h"

enum { GROUP = 7 };

/* A group of three members that was there before; the journal has one late entry of it. */
struct world {
    struct broker broker;
    struct replicas replicas;
    struct shard shard;
    struct topic_image topic;
    struct group group;
    struct boot boot;
    struct group_start start;
};

static struct group_start opened;
static int opened_times;

void __wrap_group_close(struct group *group, bool deleted);

/* What the end of the group means here. */
void __wrap_group_close(struct group *group, bool deleted)
{
    ck_assert(!deleted);
    unread_end(group);
    group->is_unread = false;
}

static void open_again(struct replicas *replicas, struct topic_image *topic,
                       const struct group_start *start)
{
    ck_assert_ptr_eq(topic, start->topic);
    ck_assert(list_is_empty(&replicas->unread));
    opened = *start;
    opened_times++;
}

static struct world *open_world(void)
{
    const struct raft_member members[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct world *world = calloc(1, sizeof *world);
    struct block *block = block_copy(VIEW_LITERAL("payload"));
    boot_replay(&world->boot, &(struct journal_record){.kind = JOURNAL_ENTRY,
                                                       .group = GROUP,
                                                       .index = 5,
                                                       .term = 1,
                                                       .payload = slice_of(block, 0, 7)});
    block_unref(block);
    world->broker.node_id = 1;
    world->shard.broker = &world->broker;
    world->shard.replicas = &world->replicas;
    list_init(&world->replicas.unread);
    atomic_init(&world->topic.references, 1);
    world->group = (struct group){.id = GROUP, .shard = &world->shard, .topic = &world->topic};
    group_members_set(&world->group, members, 3, 0);
    world->start = (struct group_start){.id = GROUP,
                                        .topic = &world->topic,
                                        .boot = boot_find(&world->boot, GROUP),
                                        .existed = true};
    opened_times = 0;
    return world;
}

static void close_world(struct world *world)
{
    ck_assert_int_eq(atomic_load(&world->broker.groups_catching_up), 0);
    free(world->group.members);
    boot_free(&world->boot);
    free(world);
}

/* Its logs could not be read, and the time to try again comes. */
static void open_in_vain(struct world *world)
{
    struct group *group = &world->group;
    int before = opened_times;
    group->storage = STATUS_IO;
    unread_note(group, &world->start);
    ck_assert(world->start.boot->used); /* not taken for a group that is gone */
    ck_assert_int_eq(atomic_load(&world->broker.groups_catching_up), 1);
    unread_tick(&world->replicas, group->unread_ms + UNREAD_EVERY_MS - 1, open_again);
    ck_assert_int_eq(opened_times, before);
    unread_tick(&world->replicas, group->unread_ms + UNREAD_EVERY_MS, open_again);
    ck_assert_int_eq(opened_times, before + 1);
    group->storage = STATUS_OK;
}

START_TEST(it_is_opened_again_with_what_it_had)
{
    struct world *world = open_world();
    for (int i = 0; i < 3; i++) {
        open_in_vain(world);
        ck_assert_ptr_eq(opened.boot, world->start.boot);
        ck_assert(opened.existed && !opened.boot->used);
        ck_assert_uint_eq(opened.boot->count, 1);
    }
    close_world(world);
}
END_TEST

/* The gap in the journal is what shows that a checkpoint was there. */
static void lose_checkpoint(enum status how)
{
    struct world *world = open_world();
    for (int i = 0; i < 2; i++) {
        ck_assert(group_loss_of_checkpoint(&world->group, &world->start, how));
        open_in_vain(world);
        world->start = opened;
    }
    ck_assert(group_loss_of_checkpoint(&world->group, &world->start, how));
    group_loss_begin(&world->group, &world->start, NULL, true);
    ck_assert_ptr_nonnull(world->group.loss); /* it takes itself for no whole one, and votes not */
    ck_assert(world->start.boot->used);
    ck_assert_uint_eq(world->start.boot->count, 0);
    group_loss_end(&world->group);
    close_world(world);
}

START_TEST(a_checkpoint_that_is_missing_stays_lost)
{
    lose_checkpoint(STATUS_NOT_FOUND);
}
END_TEST

START_TEST(a_checkpoint_that_is_broken_stays_lost)
{
    lose_checkpoint(STATUS_CORRUPT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unread");
    TCase *tests = tcase_create("unread");
    tcase_add_test(tests, it_is_opened_again_with_what_it_had);
    tcase_add_test(tests, a_checkpoint_that_is_missing_stays_lost);
    tcase_add_test(tests, a_checkpoint_that_is_broken_stays_lost);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
