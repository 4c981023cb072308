/* The picture of the brokers: this node is always in it, an earlier process of it never. */
#include "broker/controller/cluster_image.h"

#include <check.h>

#include "broker/config/describe.h"
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

static const struct cluster_endpoint self_endpoints[] = {
    {VIEW_LITERAL("PLAINTEXT"), VIEW_LITERAL("here"), 9092, 0},
    {VIEW_LITERAL("OUTSIDE"), VIEW_LITERAL("there"), 19092, 0},
};

static struct cluster_broker self_of(int32_t id, uint8_t incarnation)
{
    return (struct cluster_broker){.id = id,
                                   .incarnation = {{incarnation}},
                                   .rack = VIEW_LITERAL("r9"),
                                   .endpoints = self_endpoints,
                                   .endpoint_count = 2};
}

static void add_broker(int32_t id, uint8_t incarnation, bool fenced)
{
    struct register_broker_record_broker_endpoint endpoint = {
        .name = VIEW_LITERAL("PLAINTEXT"), .host = VIEW_LITERAL("registered"), .port = 1000};
    struct register_broker_record record = register_broker_record_default;
    record.broker_id = id;
    record.broker_epoch = 70 + id;
    record.incarnation_id = (struct uuid){{incarnation}};
    record.rack = VIEW_NULL;
    record.fenced = fenced;
    record.end_points = &endpoint;
    record.end_points_count = 1;
    record_list_add(&world.records, &register_broker_record_type, 3, &record);
    world_commit(&world);
}

START_TEST(a_node_alone)
{
    struct cluster_broker self = self_of(4, 1);
    struct cluster_image *image = cluster_image_new(NULL, &self);
    ck_assert_int_eq(image->broker_count, 1);
    const struct cluster_broker *found = cluster_image_find(image, 4);
    ck_assert_ptr_eq(found, image->brokers);
    ck_assert(view_is(found->rack, "r9") && found->rack.data != self.rack.data);
    const struct cluster_endpoint *endpoint =
        cluster_broker_endpoint(found, view_text("OUTSIDE"));
    ck_assert(view_is(endpoint->host, "there"));
    ck_assert_int_eq(endpoint->port, 19092);
    ck_assert_ptr_null(cluster_broker_endpoint(found, view_text("outside")));
    ck_assert_ptr_null(cluster_image_find(image, 1));
    cluster_image_unref(image);
}
END_TEST

static void set_rate(const char *broker, const char *name, const char *value)
{
    struct config_record record = {.resource_type = CONFIG_RESOURCE_BROKER,
                                   .resource_name = view_text(broker),
                                   .name = view_text(name),
                                   .value = view_text(value)};
    record_list_add(&world.records, &config_record_type, 0, &record);
    world_commit(&world);
}

START_TEST(what_is_set_while_brokers_run)
{
    const enum config_key leader = CONFIG_LEADER_REPLICATION_THROTTLED_RATE;
    struct cluster_broker self = self_of(1, 1);
    add_broker(1, 1, false);
    add_broker(2, 1, false);
    set_rate("", "leader.replication.throttled.rate", "500");
    set_rate("2", "leader.replication.throttled.rate", "700");
    set_rate("2", "follower.replication.throttled.rate", "900");
    struct cluster_image *image = cluster_image_new(world.image, &self);
    ck_assert(view_is(cluster_image_setting(image, VIEW_EMPTY, leader), "500"));
    ck_assert_ptr_null(cluster_image_setting(image, view_text("1"), leader).data);
    ck_assert(view_is(cluster_image_setting(image, view_text("2"), leader), "700"));
    ck_assert_ptr_null(cluster_image_setting(image, view_text("7"), leader).data);
    ck_assert_int_eq(cluster_image_find(image, 1)->leader_rate, 500);
    ck_assert_int_eq(cluster_image_find(image, 1)->follower_rate, 0);
    ck_assert_int_eq(cluster_image_find(image, 2)->leader_rate, 700);
    ck_assert_int_eq(cluster_image_find(image, 2)->follower_rate, 900);
    cluster_image_unref(image);
}
END_TEST

START_TEST(the_registered_ones_and_this_node)
{
    add_broker(3, 1, true);
    add_broker(1, 1, false);
    for (int32_t id = 0; id <= 4; id += 2) {
        struct cluster_broker self = self_of(id, 1);
        struct cluster_image *image = cluster_image_new(world.image, &self);
        ck_assert_int_eq(image->broker_count, 3);
        ck_assert_int_lt(image->brokers[0].id, image->brokers[1].id);
        ck_assert_int_lt(image->brokers[1].id, image->brokers[2].id);
        ck_assert_int_eq(cluster_image_find(image, id)->endpoint_count, 2);
        const struct cluster_broker *other = cluster_image_find(image, 3);
        ck_assert(other->is_fenced && other->rack.data == NULL);
        ck_assert_int_eq(other->epoch, 73);
        ck_assert(view_is(other->endpoints[0].host, "registered"));
        cluster_image_unref(image);
    }
}
END_TEST

START_TEST(this_node_as_it_is_now)
{
    add_broker(3, 1, true);
    struct cluster_broker now = self_of(3, 2);
    struct cluster_image *image = cluster_image_new(world.image, &now);
    ck_assert_int_eq(image->broker_count, 1);
    ck_assert(!image->brokers[0].is_fenced);
    ck_assert(view_is(image->brokers[0].endpoints[0].host, "here"));
    cluster_image_unref(image);
    add_broker(3, 2, false);
    image = cluster_image_new(world.image, &now);
    ck_assert_int_eq(image->broker_count, 1);
    ck_assert(view_is(image->brokers[0].endpoints[0].host, "registered"));
    ck_assert_int_eq(image->brokers[0].epoch, 73);
    cluster_image_unref(image);
}
END_TEST

START_TEST(outlives_the_metadata)
{
    add_broker(1, 1, false);
    struct cluster_broker self = self_of(2, 1);
    struct cluster_image *image = cluster_image_ref(cluster_image_new(world.image, &self));
    cluster_image_unref(image);
    struct unregister_broker_record gone = {.broker_id = 1};
    record_list_add(&world.records, &unregister_broker_record_type, 0, &gone);
    world_commit(&world);
    ck_assert(view_is(cluster_image_find(image, 1)->endpoints[0].host, "registered"));
    cluster_image_unref(image);
    cluster_image_unref(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_image");
    TCase *tests = tcase_create("cluster_image");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_node_alone);
    tcase_add_test(tests, what_is_set_while_brokers_run);
    tcase_add_test(tests, the_registered_ones_and_this_node);
    tcase_add_test(tests, this_node_as_it_is_now);
    tcase_add_test(tests, outlives_the_metadata);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
