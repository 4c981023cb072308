/* What a replica tells of who leads: an epoch has one leader, and who does not hear it any more
 * does not take that back. */
#include "broker/group/group_role.h"

#include "broker/group/directory.h"
#include "tests/unit/broker/group/bench.h"

static struct bench *follower;

static void set_up(void)
{
    follower = bench_new(3);
    directory_add(&follower->broker.directory, 0);
}

static void tear_down(void)
{
    directory_free(&follower->broker.directory);
    bench_free(follower);
}

/* Node 2 leads in the term, as Raft hears. */
static void hears(uint64_t term)
{
    bench_message(follower, (struct raft_message){.kind = RAFT_HEARTBEAT, .from = 2, .term = term});
    group_tell_role(&follower->group);
}

static void loses(void)
{
    bench_step(follower, (struct raft_event){.kind = RAFT_EVENT_PEER_LOST, .node = 2});
    ck_assert_int_eq(raft_leader(follower->group.raft), RAFT_NO_NODE);
    group_tell_role(&follower->group);
}

static void is_told(int32_t leader, int32_t epoch)
{
    struct group_leader told = directory_get(&follower->broker.directory, 0);
    ck_assert_int_eq(told.leader, leader);
    ck_assert_int_eq(told.epoch, epoch);
}

START_TEST(a_leader_that_is_not_heard_any_more_is_still_that_of_its_epoch)
{
    hears(1);
    is_told(2, 1);
    loses();
    is_told(2, 1);
    hears(1);
    is_told(2, 1);
}
END_TEST

START_TEST(what_a_leader_said_itself_is_not_taken_back)
{
    hears(1);
    loses();
    directory_set_told(&follower->broker.directory, 0, 2, 1, 0);
    group_tell_role(&follower->group); /* as when the group is closed here */
    is_told(2, 1);
    directory_set_told(&follower->broker.directory, 0, 3, 4, 0);
    group_tell_role(&follower->group);
    is_told(3, 4);
}
END_TEST

START_TEST(a_later_epoch_begins_without_a_leader)
{
    hears(1);
    bench_message(follower,
                  (struct raft_message){.kind = RAFT_VOTE_REPLY, .from = 3, .term = 2});
    group_tell_role(&follower->group);
    is_told(-1, 2);
}
END_TEST

START_TEST(this_node_says_when_it_does_not_lead_any_more)
{
    bench_elect(follower);
    group_tell_role(&follower->group); /* not ready yet */
    is_told(-1, 1);
    follower->group.leads = true;
    group_tell_role(&follower->group);
    is_told(1, 1);
    follower->group.leads = false;
    group_tell_role(&follower->group);
    is_told(-1, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group role");
    TCase *tests = tcase_create("group role");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_leader_that_is_not_heard_any_more_is_still_that_of_its_epoch);
    tcase_add_test(tests, what_a_leader_said_itself_is_not_taken_back);
    tcase_add_test(tests, a_later_epoch_begins_without_a_leader);
    tcase_add_test(tests, this_node_says_when_it_does_not_lead_any_more);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
