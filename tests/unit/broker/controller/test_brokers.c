/* Brokers register, are fenced and taken back, and leave. */
#include "broker/controller/controller.h"

#include <check.h>

#include "tests/unit/broker/controller/world.h"
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

static int64_t register_broker(int32_t id, uint8_t incarnation, int64_t next_offset)
{
    struct broker_registration_request_listener listener = {
        .name = VIEW_LITERAL("PLAINTEXT"), .host = VIEW_LITERAL("h"), .port = 9092};
    struct broker_registration_request request = broker_registration_request_default;
    int64_t epoch = -1;
    request.broker_id = id;
    request.incarnation_id = (struct uuid){{incarnation}};
    request.listeners = &listener;
    request.listeners_count = 1;
    request.rack = VIEW_LITERAL("r1");
    ck_assert_int_eq(controller_register_broker(&world.controller, &request, next_offset,
                                                &world.arena, &world.records, &epoch),
                     STATUS_OK);
    return epoch;
}

START_TEST(registers_with_the_offset_as_epoch)
{
    ck_assert_int_eq(register_broker(7, 1, 42), 42);
    ck_assert_uint_eq(world.records.count, 1);
    world_commit(&world);
    const struct register_broker_record *broker = image_broker(world.image, 0);
    ck_assert_int_eq(broker->broker_id, 7);
    ck_assert_int_eq(broker->broker_epoch, 42);
    ck_assert(!broker->fenced && !broker->in_controlled_shutdown);
    ck_assert(view_is(broker->rack, "r1"));
    ck_assert_int_eq(broker->end_points_count, 1);
    ck_assert_int_eq(broker->end_points[0].port, 9092);
}
END_TEST

START_TEST(the_same_process_again_changes_nothing)
{
    register_broker(7, 1, 42);
    world_commit(&world);
    ck_assert_int_eq(register_broker(7, 1, 50), 42);
    ck_assert_uint_eq(world.records.count, 0);
    ck_assert_int_eq(register_broker(7, 2, 51), 51);
    ck_assert_uint_eq(world.records.count, 1);
    world_commit(&world);
    ck_assert_int_eq(image_broker_count(world.image), 1);
    ck_assert_int_eq(image_broker(world.image, 0)->broker_epoch, 51);
}
END_TEST

START_TEST(fenced_and_back)
{
    register_broker(7, 1, 42);
    world_commit(&world);
    controller_fence_broker(&world.controller, 7, false, &world.records);
    controller_fence_broker(&world.controller, 8, true, &world.records);
    ck_assert_uint_eq(world.records.count, 0);
    controller_fence_broker(&world.controller, 7, true, &world.records);
    world_commit(&world);
    ck_assert(image_broker(world.image, 0)->fenced);
    controller_fence_broker(&world.controller, 7, true, &world.records);
    ck_assert_uint_eq(world.records.count, 0);
    controller_fence_broker(&world.controller, 7, false, &world.records);
    world_commit(&world);
    ck_assert(!image_broker(world.image, 0)->fenced);
}
END_TEST

static enum kafka_error heartbeat(int64_t epoch, bool stops, bool fences)
{
    struct broker_heartbeat_request request = broker_heartbeat_request_default;
    request.broker_id = 7;
    request.broker_epoch = epoch;
    request.want_shut_down = stops;
    request.want_fence = fences;
    return controller_broker_heartbeat(&world.controller, &request, &world.records);
}

START_TEST(stops_and_registers_anew)
{
    ck_assert_int_eq(heartbeat(42, true, true), KAFKA_BROKER_ID_NOT_REGISTERED);
    register_broker(7, 1, 42);
    world_commit(&world);
    ck_assert_int_eq(heartbeat(41, true, true), KAFKA_STALE_BROKER_EPOCH);
    ck_assert_int_eq(heartbeat(42, false, false), KAFKA_NONE);
    ck_assert_uint_eq(world.records.count, 0);
    ck_assert_int_eq(heartbeat(42, true, false), KAFKA_NONE);
    world_commit(&world);
    const struct register_broker_record *broker = image_broker(world.image, 0);
    ck_assert(broker->in_controlled_shutdown && !broker->fenced);
    ck_assert_int_eq(heartbeat(42, true, true), KAFKA_NONE);
    world_commit(&world);
    ck_assert(broker->in_controlled_shutdown && broker->fenced);
    ck_assert_int_eq(heartbeat(42, true, true), KAFKA_NONE);
    ck_assert_uint_eq(world.records.count, 0);
    register_broker(7, 2, 60);
    world_commit(&world);
    broker = image_broker(world.image, 0);
    ck_assert(!broker->in_controlled_shutdown && !broker->fenced);
}
END_TEST

START_TEST(leaves)
{
    register_broker(7, 1, 42);
    world_commit(&world);
    ck_assert_int_eq(controller_unregister_broker(&world.controller, 6, &world.records),
                     KAFKA_BROKER_ID_NOT_REGISTERED);
    ck_assert_uint_eq(world.records.count, 0);
    ck_assert_int_eq(controller_unregister_broker(&world.controller, 7, &world.records),
                     KAFKA_NONE);
    world_commit(&world);
    ck_assert_int_eq(image_broker_count(world.image), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("brokers");
    TCase *tests = tcase_create("brokers");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, registers_with_the_offset_as_epoch);
    tcase_add_test(tests, the_same_process_again_changes_nothing);
    tcase_add_test(tests, fenced_and_back);
    tcase_add_test(tests, stops_and_registers_anew);
    tcase_add_test(tests, leaves);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
