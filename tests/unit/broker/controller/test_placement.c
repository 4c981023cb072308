/* Placement: leaders and replicas are even over brokers and racks, and follow from ids alone. */
#include "broker/controller/placement.h"

#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

enum { BROKERS_MOST = 16 };

static struct world world;
static struct command command;
static struct partition_groups_record record;

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
}

static void tear_down(void)
{
    world_stop(&world);
}

/* Brokers 1 to the length of `racks`, each in the rack of that letter; '-' is none. */
static void add_brokers(const char *racks)
{
    for (int i = 0; racks[i] != '\0'; i++) {
        struct register_broker_record broker = register_broker_record_default;
        broker.broker_id = i + 1;
        broker.fenced = false;
        broker.rack = racks[i] == '-' ? VIEW_NULL : (struct view){(const uint8_t *)&racks[i], 1};
        record_list_add(&world.records, &register_broker_record_type, 3, &broker);
    }
    world_commit(&world);
}

static void begin(void)
{
    ck_assert_int_eq(
        command_start(&command, &world.controller, &world.arena, &world.records), STATUS_OK);
}

static void spread(int32_t partitions, int32_t replication)
{
    ck_assert_int_eq(
        placement_spread(&command, NULL, partitions, 1000, replication, &record), STATUS_OK);
    ck_assert_int_eq(record.groups_count, partitions);
}

static const int32_t *replicas(int32_t group)
{
    ck_assert_int_lt(group, record.groups_count);
    return record.groups[group].replicas;
}

/* Counts, for each broker, the groups that have it at that place of their replicas. */
static void count_at(int32_t place, int *counts)
{
    memset(counts, 0, BROKERS_MOST * sizeof *counts);
    for (int32_t i = 0; i < record.groups_count; i++) {
        counts[replicas(i)[place]]++;
    }
}

START_TEST(a_node_without_registered_brokers_is_alone)
{
    begin();
    spread(3, 1);
    ck_assert_int_eq(command.broker_count, 1);
    ck_assert_int_eq(replicas(0)[0], 1);
    ck_assert_int_eq(replicas(2)[0], 1);
}
END_TEST

START_TEST(each_place_is_even_over_the_brokers)
{
    add_brokers("-----");
    begin();
    spread(60, 3);
    for (int32_t place = 0; place < 3; place++) {
        int counts[BROKERS_MOST];
        count_at(place, counts);
        for (int broker = 1; broker <= 5; broker++) {
            ck_assert_int_eq(counts[broker], 12);
        }
    }
}
END_TEST

START_TEST(the_loss_of_a_broker_burdens_all_others_alike)
{
    add_brokers("----");
    begin();
    spread(48, 3);
    int heirs[BROKERS_MOST] = {0};
    for (int32_t i = 0; i < 48; i++) {
        if (replicas(i)[0] == 2) {
            heirs[replicas(i)[1]]++;
        }
    }
    ck_assert_int_eq(heirs[1], 4);
    ck_assert_int_eq(heirs[3], 4);
    ck_assert_int_eq(heirs[4], 4);
}
END_TEST

START_TEST(topics_of_one_partition_begin_at_one_broker_after_the_other)
{
    add_brokers("---");
    begin();
    int leaders[BROKERS_MOST] = {0};
    for (int topic = 0; topic < 9; topic++) {
        spread(1, 1);
        leaders[replicas(0)[0]]++;
    }
    ck_assert_int_eq(leaders[1], 3);
    ck_assert_int_eq(leaders[2], 3);
    ck_assert_int_eq(leaders[3], 3);
}
END_TEST

START_TEST(replicas_are_in_as_many_racks_as_there_are)
{
    const char *racks = "aaabbc";
    add_brokers(racks);
    begin();
    spread(90, 3);
    int leaders[BROKERS_MOST];
    count_at(0, leaders);
    for (int32_t i = 0; i < 90; i++) {
        const int32_t *found = replicas(i);
        char first = racks[found[0] - 1];
        char second = racks[found[1] - 1];
        char third = racks[found[2] - 1];
        ck_assert_int_ne(first, second);
        ck_assert_int_ne(first, third);
        ck_assert_int_ne(second, third);
    }
    for (int broker = 1; broker <= 6; broker++) {
        ck_assert_int_eq(leaders[broker], 15);
    }
}
END_TEST

START_TEST(beyond_the_racks_each_has_as_many_as_the_others)
{
    const char *racks = "aaaabb";
    add_brokers(racks);
    begin();
    spread(30, 4);
    for (int32_t i = 0; i < 30; i++) {
        int in_a = 0;
        for (int place = 0; place < 4; place++) {
            in_a += racks[replicas(i)[place] - 1] == 'a';
            for (int before = 0; before < place; before++) {
                ck_assert_int_ne(replicas(i)[place], replicas(i)[before]);
            }
        }
        ck_assert_int_eq(in_a, 2);
    }
}
END_TEST

START_TEST(neighbours_are_of_different_racks)
{
    add_brokers("aabbcc");
    begin();
    static const int32_t order[] = {1, 3, 5, 2, 4, 6};
    ck_assert_int_eq(command.broker_count, 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(command.brokers[i], order[i]);
        ck_assert_int_eq(command.racks[i], i % 3);
    }
}
END_TEST

START_TEST(brokers_without_a_rack_are_in_one_together)
{
    add_brokers("-a-");
    begin();
    spread(12, 2);
    for (int32_t i = 0; i < 12; i++) {
        ck_assert(replicas(i)[0] == 2 || replicas(i)[1] == 2);
    }
}
END_TEST

START_TEST(the_same_image_gives_the_same_placement)
{
    add_brokers("abcab");
    begin();
    spread(20, 3);
    struct partition_groups_record first = record;
    begin();
    spread(20, 3);
    for (int32_t i = 0; i < 20; i++) {
        ck_assert_int_eq(first.groups[i].group_id, record.groups[i].group_id);
        ck_assert_mem_eq(first.groups[i].replicas, replicas(i), 3 * sizeof(int32_t));
    }
}
END_TEST

START_TEST(reach)
{
    add_brokers("--");
    begin();
    ck_assert_int_eq(placement_reach(&command, 1).error, KAFKA_NONE);
    ck_assert_int_eq(placement_reach(&command, 2).error, KAFKA_NONE);
    ck_assert_int_eq(placement_reach(&command, 0).error, KAFKA_INVALID_REPLICATION_FACTOR);
    struct refusal refusal = placement_reach(&command, 3);
    ck_assert_int_eq(refusal.error, KAFKA_INVALID_REPLICATION_FACTOR);
    ck_assert(view_is(refusal.why,
                      "Unable to replicate the partition 3 time(s): The target replication factor "
                      "of 3 cannot be reached because only 2 broker(s) are registered."));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("placement");
    TCase *tests = tcase_create("placement");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_node_without_registered_brokers_is_alone);
    tcase_add_test(tests, each_place_is_even_over_the_brokers);
    tcase_add_test(tests, the_loss_of_a_broker_burdens_all_others_alike);
    tcase_add_test(tests, topics_of_one_partition_begin_at_one_broker_after_the_other);
    tcase_add_test(tests, replicas_are_in_as_many_racks_as_there_are);
    tcase_add_test(tests, beyond_the_racks_each_has_as_many_as_the_others);
    tcase_add_test(tests, neighbours_are_of_different_racks);
    tcase_add_test(tests, brokers_without_a_rack_are_in_one_together);
    tcase_add_test(tests, the_same_image_gives_the_same_placement);
    tcase_add_test(tests, reach);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
