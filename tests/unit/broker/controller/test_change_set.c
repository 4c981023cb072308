/* Sets of changes: what one round takes over at once, and what has to wait for it. */
#include "broker/controller/change_set.h"

#include "messages/metadata_records.h"
#include "messages/ottla_records.h"
#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

static struct world world;
static struct change_set set;

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
    set = (struct change_set){0};
}

static void tear_down(void)
{
    change_set_free(&set);
    world_stop(&world);
}

/* Takes what the last commit changed; false when some of it has to wait. */
static bool take(void)
{
    bool all = true;
    for (size_t i = 0; i < world.changes.count; i++) {
        all = change_set_add(&set, &world.changes.items[i]) && all;
    }
    return all;
}

static void create(const char *name)
{
    world_create(&world, name, 1, 1);
}

static void grow(const char *name)
{
    struct partition_groups_record record = {.topic_id = world_topic(&world, name)->id,
                                             .first_partition =
                                                 world_topic(&world, name)->partition_count,
                                             .slots = {(const uint8_t *)"\0", 2}};
    record_list_add(&world.records, &partition_groups_record_type, 0, &record);
    world_commit(&world);
}

static void drop(const char *name)
{
    struct remove_topic_record record = {.topic_id = world_topic(&world, name)->id};
    record_list_add(&world.records, &remove_topic_record_type, 0, &record);
    world_commit(&world);
}

START_TEST(what_happens_to_a_topic_is_one_change)
{
    create("a");
    struct topic_image *before = topic_image_ref(world_topic(&world, "a"));
    create("b");
    ck_assert(take());
    grow("a");
    ck_assert(take());
    grow("a");
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 2);
    ck_assert_ptr_null(set.changes.items[0].before);
    ck_assert_ptr_eq(set.changes.items[1].before, before);
    ck_assert_ptr_eq(set.changes.items[1].after, world_topic(&world, "a"));
    ck_assert_int_eq(set.changes.items[1].after->partition_count, 3);
    topic_image_unref(before);
}
END_TEST

START_TEST(a_topic_that_changed_and_is_gone_was_what_the_shards_know)
{
    create("a");
    struct topic_image *before = topic_image_ref(world_topic(&world, "a"));
    grow("a");
    ck_assert(take());
    drop("a");
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 1);
    ck_assert_ptr_eq(set.changes.items[0].before, before);
    ck_assert_ptr_null(set.changes.items[0].after);
    topic_image_unref(before);
}
END_TEST

START_TEST(a_topic_that_came_and_went_leaves_nothing)
{
    create("a");
    ck_assert(take());
    create("b");
    ck_assert(take());
    create("c");
    ck_assert(take());
    drop("a");
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 2);
    grow("c"); /* which has another place now */
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 2);
    ck_assert_ptr_eq(set.changes.items[0].after, world_topic(&world, "c"));
    ck_assert_ptr_eq(set.changes.items[1].after, world_topic(&world, "b"));
    drop("b");
    ck_assert(take());
    create("b"); /* nothing was made of the first one */
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 2);
    ck_assert_ptr_eq(set.changes.items[1].after, world_topic(&world, "b"));
}
END_TEST

START_TEST(who_takes_the_name_of_one_that_is_gone_waits)
{
    create("a");
    drop("a");
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 1);
    create("a");
    ck_assert(!take());
    ck_assert_uint_eq(set.changes.count, 1);
    ck_assert_ptr_null(set.changes.items[0].after);
    change_set_free(&set); /* that round is over */
    ck_assert(take());
    ck_assert_uint_eq(set.changes.count, 1);
    ck_assert_ptr_eq(set.changes.items[0].after, world_topic(&world, "a"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("change_set");
    TCase *tests = tcase_create("change_set");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_happens_to_a_topic_is_one_change);
    tcase_add_test(tests, a_topic_that_changed_and_is_gone_was_what_the_shards_know);
    tcase_add_test(tests, a_topic_that_came_and_went_leaves_nothing);
    tcase_add_test(tests, who_takes_the_name_of_one_that_is_gone_waits);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
