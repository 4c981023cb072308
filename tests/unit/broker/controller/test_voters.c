/* Voters on metadata come and go; a snapshot keeps them. */
#include "tests/unit/broker/controller/world.h"

#include "messages/ottla_records.h"
#include "tests/unit/runner.h"

static struct world world;

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
}

static void tear_down(void)
{
    world_stop(&world);
}

static struct refusal add(int32_t id, const char *listener, const char *host)
{
    struct add_raft_voter_request_listener listeners[2] = {
        {VIEW_LITERAL("OTHER"), VIEW_LITERAL("elsewhere"), 1},
        {view_text(listener), view_text(host), 9093}};
    struct add_raft_voter_request request = add_raft_voter_request_default;
    request.voter_id = id;
    request.voter_directory_id = (struct uuid){{(uint8_t)id}};
    request.listeners = listeners;
    request.listeners_count = 2;
    return controller_add_voter(&world.controller, &request, VIEW_LITERAL("CONTROLLER"),
                                &world.arena, &world.records);
}

static enum kafka_error remove_it(int32_t id, uint8_t directory)
{
    struct remove_raft_voter_request request = remove_raft_voter_request_default;
    request.voter_id = id;
    request.voter_directory_id = (struct uuid){{directory}};
    return controller_remove_voter(&world.controller, &request, &world.arena, &world.records).error;
}

static bool asks_itself;

static enum kafka_error update(int32_t id, uint8_t directory, const char *host, int16_t level)
{
    struct update_raft_voter_request_listener listener = {
        VIEW_LITERAL("CONTROLLER"), view_text(host), 7};
    struct update_raft_voter_request request = update_raft_voter_request_default;
    request.voter_id = id;
    request.voter_directory_id = (struct uuid){{directory}};
    request.listeners = &listener;
    request.listeners_count = 1;
    request.k_raft_version_feature.max_supported_version = level;
    return controller_update_voter(&world.controller, &request, asks_itself,
                                   VIEW_LITERAL("CONTROLLER"), &world.records);
}

static void begin_with(int32_t id)
{
    struct voter_record record = {.voter_id = id, .host = VIEW_LITERAL("h"), .port = 1};
    record.directory_id = (struct uuid){{(uint8_t)id}};
    record_list_add(&world.records, &voter_record_type, 0, &record);
    world_commit(&world);
}

static const struct quorum_voter *voters(int wanted)
{
    int count;
    const struct quorum_voter *found = image_voters(world.image, &count);
    ck_assert_int_eq(count, wanted);
    return found;
}

START_TEST(fixed_voters_do_not_change)
{
    struct refusal refusal = add(2, "CONTROLLER", "h");
    ck_assert_int_eq(refusal.error, KAFKA_UNSUPPORTED_VERSION);
    ck_assert(view_is(refusal.why, "Cluster doesn't support adding voter because the kraft.version "
                                   "feature is 0"));
    ck_assert_int_eq(remove_it(1, 1), KAFKA_UNSUPPORTED_VERSION);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

START_TEST(come_and_go)
{
    begin_with(3);
    ck_assert(world.changes.brokers_changed);
    ck_assert_int_eq(add(1, "CONTROLLER", "new").error, KAFKA_NONE);
    world_commit(&world);
    const struct quorum_voter *found = voters(2);
    ck_assert_int_eq(found[0].node_id, 1);
    ck_assert(view_is(found[0].host, "new"));
    ck_assert_int_eq(found[0].port, 9093);
    ck_assert_int_eq(found[1].node_id, 3);
    ck_assert_int_eq(remove_it(3, 3), KAFKA_NONE);
    world_commit(&world);
    ck_assert_int_eq(voters(1)->node_id, 1);
}
END_TEST

START_TEST(refusals)
{
    begin_with(1);
    struct refusal refusal = add(1, "CONTROLLER", "h");
    ck_assert_int_eq(refusal.error, KAFKA_DUPLICATE_VOTER);
    ck_assert(view_is(refusal.why,
                      "The voter id for ReplicaKey(id=1, directoryId=AQAAAAAAAAAAAAAAAAAAAA) is "
                      "already part of the set of voters "
                      "[ReplicaKey(id=1, directoryId=AQAAAAAAAAAAAAAAAAAAAA)]."));
    ck_assert_int_eq(add(2, "MISSING", "h").error, KAFKA_INVALID_REQUEST);
    ck_assert_int_eq(add(2, "CONTROLLER", "").error, KAFKA_INVALID_REQUEST);
    ck_assert_int_eq(remove_it(2, 2), KAFKA_VOTER_NOT_FOUND);
    ck_assert_int_eq(remove_it(1, 1), KAFKA_VOTER_NOT_FOUND);
    begin_with(2);
    ck_assert_int_eq(remove_it(2, 1), KAFKA_VOTER_NOT_FOUND);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

START_TEST(they_move)
{
    ck_assert_int_eq(update(1, 1, "h", 1), KAFKA_UNSUPPORTED_VERSION);
    begin_with(1);
    ck_assert_int_eq(update(2, 2, "new", 1), KAFKA_VOTER_NOT_FOUND);
    ck_assert_int_eq(update(1, 2, "new", 1), KAFKA_VOTER_NOT_FOUND);
    ck_assert_int_eq(update(1, 0, "new", 1), KAFKA_INVALID_REQUEST);
    ck_assert_int_eq(update(1, 1, "new", 0), KAFKA_INVALID_REQUEST);
    ck_assert_int_eq(update(1, 1, "a,b", 1), KAFKA_INVALID_REQUEST);
    ck_assert_uint_eq(world.records.count, 0);
    ck_assert_int_eq(update(1, 1, "new", 1), KAFKA_NONE);
    world_commit(&world);
    ck_assert(world.changes.brokers_changed);
    ck_assert(view_is(voters(1)->host, "new"));
    ck_assert_int_eq(voters(1)->port, 7);
    ck_assert_int_eq(update(1, 1, "new", 1), KAFKA_NONE);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

/* A voter that lost its disk says so itself; nobody else may. */
START_TEST(they_change_their_directory)
{
    begin_with(1);
    ck_assert_int_eq(update(1, 2, "h", 1), KAFKA_VOTER_NOT_FOUND);
    asks_itself = true;
    ck_assert_int_eq(update(2, 2, "h", 1), KAFKA_VOTER_NOT_FOUND);
    ck_assert_int_eq(update(1, 2, "h", 1), KAFKA_NONE);
    world_commit(&world);
    ck_assert(uuid_equal(voters(1)->directory_id, (struct uuid){{2}}));
    ck_assert_int_eq(update(1, 2, "h", 1), KAFKA_NONE);
    ck_assert_uint_eq(world.records.count, 0);
    asks_itself = false;
    ck_assert_int_eq(update(1, 1, "h", 1), KAFKA_VOTER_NOT_FOUND);
}
END_TEST

START_TEST(a_snapshot_keeps_them)
{
    struct record_list records = {0};
    struct image_changes changes = {0};
    begin_with(2);
    begin_with(1);
    image_snapshot(world.image, &records);
    struct image *copy = image_new(world.config);
    for (size_t i = 0; i < records.count; i++) {
        ck_assert_int_eq(image_apply(copy, record_list_get(&records, i), &changes), STATUS_OK);
    }
    image_finish(copy, &changes);
    int count;
    const struct quorum_voter *found = image_voters(copy, &count);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(found[1].node_id, 2);
    ck_assert(uuid_equal(found[1].directory_id, voters(2)[1].directory_id));
    image_changes_free(&changes);
    record_list_free(&records);
    image_free(copy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("voters");
    TCase *tests = tcase_create("voters");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, fixed_voters_do_not_change);
    tcase_add_test(tests, come_and_go);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, they_move);
    tcase_add_test(tests, they_change_their_directory);
    tcase_add_test(tests, a_snapshot_keeps_them);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
