/* The image: records in, changes out; a snapshot makes the same image again. */
#include "broker/controller/image.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "broker/config/describe.h"
#include "broker/controller/image_state.h"
#include "messages/ottla_records.h"
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

static struct uuid id_of(uint8_t number)
{
    return (struct uuid){{[0] = 9, [15] = number}};
}

static void add_topic_record(const char *name, uint8_t id)
{
    struct topic_record record = {.name = view_text(name), .topic_id = id_of(id)};
    record_list_add(&world.records, &topic_record_type, 0, &record);
}

static void add_groups_record(uint8_t id, int32_t first, int64_t group, struct view slots)
{
    static int32_t replicas[] = {1, 2};
    struct partition_groups_record_partition_group groups[] = {{group, replicas, 2}};
    struct partition_groups_record record = {.topic_id = id_of(id),
                                             .first_partition = first,
                                             .groups = groups,
                                             .groups_count = group > 0,
                                             .slots = slots};
    record_list_add(&world.records, &partition_groups_record_type, 0, &record);
}

static void add_config_record(const char *topic, const char *name, const char *value)
{
    struct config_record record = {.resource_type = 2,
                                   .resource_name = view_text(topic),
                                   .name = view_text(name),
                                   .value = view_text(value)};
    record_list_add(&world.records, &config_record_type, 0, &record);
}

static void add_setting_record(const char *broker, const char *name, const char *value)
{
    struct config_record record = {.resource_type = CONFIG_RESOURCE_BROKER,
                                   .resource_name = view_text(broker),
                                   .name = view_text(name),
                                   .value = view_text(value)};
    record_list_add(&world.records, &config_record_type, 0, &record);
}

static void add_remove_record(uint8_t id)
{
    struct remove_topic_record record = {.topic_id = id_of(id)};
    record_list_add(&world.records, &remove_topic_record_type, 0, &record);
}

#define SLOTS(text) ((struct view){(const uint8_t *)(text), sizeof(text) - 1})

START_TEST(a_topic_in_several_records_is_one_change)
{
    add_topic_record("a.b", 1);
    add_groups_record(1, 0, 5, SLOTS("\0\0\0\0"));
    add_config_record("a.b", "segment.bytes", "2000000");
    add_config_record("a.b", "cleanup.policy", "compact");
    world_commit(&world);
    ck_assert_uint_eq(world.changes.count, 1);
    ck_assert_ptr_null(world.changes.items[0].before);
    struct topic_image *topic = world_topic(&world, "a.b");
    ck_assert_ptr_eq(world.changes.items[0].after, topic);
    ck_assert_ptr_eq(image_topic_by_id(world.image, id_of(1)), topic);
    ck_assert_ptr_eq(image_topic_colliding(world.image, view_text("a_b")), topic);
    ck_assert_int_eq(topic->partition_count, 2);
    ck_assert(topic_image_has(topic, 1) && !topic_image_has(topic, 2));
    ck_assert(!topic_image_has(topic, -1));
    ck_assert_uint_eq(topic_image_group(topic, 1)->id, 5);
    ck_assert_int_eq(topic_image_group(topic, 1)->replicas[1], 2);
    ck_assert_int_eq(topic_image_settings(topic)->segment_bytes, 2000000);
    ck_assert(topic_image_settings(topic)->compacts);
    ck_assert_uint_eq(image_next_group_id(world.image), 6);
    ck_assert_int_eq(image_partition_count(world.image), 2);
    ck_assert(!topic->is_internal);
}
END_TEST

START_TEST(a_change_keeps_the_old_picture_for_who_holds_it)
{
    world_create(&world, "t", 1, 1);
    struct topic_image *old = topic_image_ref(world_topic(&world, "t"));
    add_config_record("t", "retention.ms", "7");
    world_commit(&world);
    struct topic_image *fresh = world_topic(&world, "t");
    ck_assert_ptr_ne(old, fresh);
    ck_assert_ptr_eq(world.changes.items[0].before, old);
    ck_assert_int_eq(topic_image_settings(old)->retention_ms, 604800000);
    ck_assert_int_eq(topic_image_settings(fresh)->retention_ms, 7);
    ck_assert(uuid_equal(old->id, fresh->id));
    ck_assert_uint_eq(fresh->groups[0].id, old->groups[0].id);
    add_config_record("t", "retention.ms", NULL);
    world_commit(&world);
    ck_assert_uint_eq(world_topic(&world, "t")->override_count, 0);
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "t"))->retention_ms, 604800000);
    topic_image_unref(old);
}
END_TEST

START_TEST(overrides_are_sorted_replaced_and_taken_away)
{
    world_create(&world, "t", 1, 1);
    add_config_record("t", "segment.bytes", "2000000");
    add_config_record("t", "cleanup.policy", "compact");
    add_config_record("t", "retention.ms", "5");
    add_config_record("t", "segment.bytes", "3000000");
    add_config_record("t", "cleanup.policy", NULL);
    add_config_record("t", "flush.ms", NULL);
    add_config_record("t", "of.a.later.version", "1");
    add_config_record("t", "max.message.bytes", "not for this version");
    world_commit(&world);
    struct topic_image *topic = world_topic(&world, "t");
    ck_assert_uint_eq(topic->override_count, 2);
    ck_assert_int_eq(topic->overrides[0].key, TOPIC_CONFIG_RETENTION_MS);
    ck_assert(view_is(topic->overrides[1].value, "3000000"));
}
END_TEST

START_TEST(topics_without_overrides_share_their_settings)
{
    world_create(&world, "a", 1, 1);
    world_create(&world, "b", 1, 1);
    ck_assert_ptr_eq(world_topic(&world, "a")->share, world_topic(&world, "b")->share);
}
END_TEST

static int64_t retention_of(const char *topic)
{
    return topic_image_settings(world_topic(&world, topic))->retention_ms;
}

START_TEST(topics_follow_what_is_set_for_brokers)
{
    world_create(&world, "plain", 1, 1);
    world_create(&world, "own", 1, 1);
    world_create(&world, "other", 1, 1);
    add_config_record("own", "retention.ms", "7");
    add_config_record("other", "segment.bytes", "2000000");
    world_commit(&world);
    struct topic_image *old = topic_image_ref(world_topic(&world, "plain"));
    add_setting_record("", "log.retention.ms", "5000");
    add_setting_record("", "producer.id.expiration.ms", "9");
    add_setting_record("2", "log.retention.ms", "6000"); /* of another node */
    world_commit(&world);
    ck_assert(world.changes.brokers_changed);
    ck_assert_uint_eq(world.changes.count, 3);
    ck_assert_int_eq(retention_of("plain"), 5000);
    ck_assert_int_eq(retention_of("own"), 7);
    ck_assert_int_eq(retention_of("other"), 5000);
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "other"))->producer_expire_ms, 9);
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "other"))->segment_bytes, 2000000);
    ck_assert_int_eq(topic_image_settings(old)->retention_ms, 604800000);
    ck_assert_ptr_eq(image_topic_by_id(world.image, old->id), world_topic(&world, "plain"));
    ck_assert_int_eq(config_long(image_broker_config(world.image), CONFIG_LOG_RETENTION_MS), 5000);
    ck_assert(!config_has(world.config, CONFIG_LOG_RETENTION_MS));
    topic_image_unref(old);
    add_setting_record("1", "log.retention.ms", "4000");
    world_commit(&world);
    ck_assert_int_eq(retention_of("plain"), 4000);
    world_create(&world, "new", 1, 1);
    ck_assert_int_eq(retention_of("new"), 4000);
    add_setting_record("1", "log.retention.ms", NULL);
    add_setting_record("", "log.retention.ms", NULL);
    world_commit(&world);
    ck_assert_int_eq(retention_of("new"), 604800000);
    ck_assert_int_eq(image_partition_count(world.image), 4);
}
END_TEST

START_TEST(settings_that_are_not_for_topics_leave_them_alone)
{
    world_create(&world, "t", 1, 1);
    add_setting_record("1", "leader.replication.throttled.rate", "5000");
    add_setting_record("", "num.io.threads", "9");
    add_setting_record("", "of.a.later.version", "9");
    world_commit(&world);
    ck_assert(world.changes.brokers_changed);
    ck_assert_uint_eq(world.changes.count, 0);
    ck_assert_int_eq(config_int(image_broker_config(world.image), CONFIG_NUM_IO_THREADS), 9);
}
END_TEST

START_TEST(a_removed_topic_is_gone_and_its_name_is_free)
{
    add_topic_record("a.b", 1);
    add_groups_record(1, 0, 5, SLOTS("\0\0"));
    add_remove_record(1);
    add_topic_record("a.b", 2);
    add_groups_record(2, 0, 9, SLOTS("\0\0"));
    world_commit(&world);
    ck_assert_uint_eq(world.changes.count, 3);
    ck_assert_ptr_null(world.changes.items[1].after);
    ck_assert_ptr_null(image_topic_by_id(world.image, id_of(1)));
    ck_assert(uuid_equal(world_topic(&world, "a.b")->id, id_of(2)));
    ck_assert_uint_eq(image_topic_count(world.image), 1);
    ck_assert_int_eq(image_partition_count(world.image), 1);
    add_remove_record(2);
    world_commit(&world);
    ck_assert_ptr_null(image_topic_colliding(world.image, view_text("a_b")));
    ck_assert_uint_eq(image_next_group_id(world.image), 10);
}
END_TEST

START_TEST(another_threads_index_follows_the_changes)
{
    struct topic_index index;
    topic_index_init(&index, TOPIC_INDEX_NAME);
    world_create(&world, "a", 1, 1);
    image_changes_apply(&world.changes, &index);
    world_create(&world, "b", 3, 1);
    image_changes_apply(&world.changes, &index);
    add_config_record("a", "retention.ms", "7");
    world_commit(&world);
    image_changes_apply(&world.changes, &index);
    ck_assert_ptr_eq(topic_index_find(&index, view_text("a")), world_topic(&world, "a"));
    struct remove_topic_record record = {.topic_id = world_topic(&world, "a")->id};
    record_list_add(&world.records, &remove_topic_record_type, 0, &record);
    world_commit(&world);
    image_changes_apply(&world.changes, &index);
    ck_assert_ptr_null(topic_index_find(&index, view_text("a")));
    ck_assert_uint_eq(index.count, 1);
    topic_index_free(&index);
}
END_TEST

START_TEST(the_difference_of_two_images)
{
    struct image *later = image_new(world.config);
    struct image_changes changes = {0};
    add_topic_record("gone", 1);
    add_groups_record(1, 0, 5, SLOTS("\0\0"));
    add_topic_record("kept", 2);
    add_groups_record(2, 0, 6, SLOTS("\0\0"));
    world_commit(&world);
    add_topic_record("gone", 3); /* another topic of the name */
    add_groups_record(3, 0, 7, SLOTS("\0\0"));
    add_topic_record("kept", 2);
    add_groups_record(2, 0, 6, SLOTS("\0\0\0\0"));
    for (size_t i = 0; i < world.records.count; i++) {
        ck_assert_int_eq(image_apply(later, record_list_get(&world.records, i), &changes),
                         STATUS_OK);
    }
    image_finish(later, &changes);
    image_changes_free(&changes);
    image_difference(world.image, later, &changes);
    ck_assert(!changes.brokers_changed);
    ck_assert_uint_eq(changes.count, 3);
    ck_assert_ptr_eq(changes.items[0].before, image_topic_by_id(world.image, id_of(1)));
    ck_assert_ptr_null(changes.items[0].after);
    struct topic_index index;
    topic_index_init(&index, TOPIC_INDEX_NAME);
    topic_index_add(&index, world_topic(&world, "gone"));
    topic_index_add(&index, world_topic(&world, "kept"));
    image_changes_apply(&changes, &index);
    ck_assert_uint_eq(index.count, 2);
    ck_assert_ptr_eq(topic_index_find(&index, view_text("gone")),
                     image_topic_by_id(later, id_of(3)));
    ck_assert_int_eq(topic_index_find(&index, view_text("kept"))->partition_count, 2);
    image_changes_free(&changes);
    image_difference(NULL, later, &changes);
    ck_assert_uint_eq(changes.count, 2);
    ck_assert_ptr_null(changes.items[0].before);
    image_changes_free(&changes);
    topic_index_free(&index);
    image_free(later);
}
END_TEST

static void add_change_record(int32_t id, int64_t epoch, int8_t fenced, int8_t stopping)
{
    struct broker_registration_change_record record = broker_registration_change_record_default;
    record.broker_id = id;
    record.broker_epoch = epoch;
    record.fenced = fenced;
    record.in_controlled_shutdown = stopping;
    record_list_add(&world.records, &broker_registration_change_record_type, 1, &record);
}

START_TEST(a_registration_changes)
{
    world_add_brokers(&world, 2);
    add_change_record(2, 0, 1, 0);
    world_commit(&world);
    ck_assert(world.changes.brokers_changed);
    ck_assert(!image_broker(world.image, 0)->fenced);
    ck_assert(image_broker(world.image, 1)->fenced);
    add_change_record(2, 0, 0, 1);
    world_commit(&world);
    ck_assert(image_broker(world.image, 1)->fenced);
    ck_assert(image_broker(world.image, 1)->in_controlled_shutdown);
    add_change_record(2, 0, -1, 0);
    struct fence_broker_record fence = {.id = 1, .epoch = 0};
    record_list_add(&world.records, &fence_broker_record_type, 0, &fence);
    world_commit(&world);
    ck_assert(!image_broker(world.image, 1)->fenced);
    ck_assert(image_broker(world.image, 0)->fenced);
    struct unfence_broker_record unfence = {.id = 1, .epoch = 0};
    record_list_add(&world.records, &unfence_broker_record_type, 0, &unfence);
    world_commit(&world);
    ck_assert(!image_broker(world.image, 0)->fenced);
}
END_TEST

START_TEST(a_change_is_of_one_registration)
{
    world_add_brokers(&world, 1);
    add_change_record(1, 7, 1, 0);
    ck_assert_int_eq(
        image_apply(world.image, record_list_get(&world.records, 0), &world.changes),
        STATUS_CORRUPT);
}
END_TEST

START_TEST(brokers_are_sorted_and_replaced)
{
    struct register_broker_record record = register_broker_record_default;
    for (int32_t id = 3; id >= 1; id--) {
        record.broker_id = id;
        record.rack = id == 2 ? view_text("old") : VIEW_NULL;
        record_list_add(&world.records, &register_broker_record_type, 0, &record);
    }
    record.broker_id = 2;
    record.rack = view_text("new");
    record_list_add(&world.records, &register_broker_record_type, 0, &record);
    struct unregister_broker_record gone = {.broker_id = 1};
    record_list_add(&world.records, &unregister_broker_record_type, 0, &gone);
    world_commit(&world);
    ck_assert(world.changes.brokers_changed);
    ck_assert_int_eq(image_broker_count(world.image), 2);
    ck_assert_int_eq(image_broker(world.image, 0)->broker_id, 2);
    ck_assert(view_is(image_broker(world.image, 0)->rack, "new"));
    ck_assert_int_eq(image_broker(world.image, 1)->broker_id, 3);
}
END_TEST

static enum status apply_all(void)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < world.records.count && status == STATUS_OK; i++) {
        status = image_apply(world.image, record_list_get(&world.records, i), &world.changes);
    }
    record_list_free(&world.records);
    return status;
}

/* Each on an image of its own, because a failed one must not be used further. */
static void corrupt(void)
{
    ck_assert_int_eq(apply_all(), STATUS_CORRUPT);
    tear_down();
    set_up();
}

START_TEST(records_that_contradict_the_image_are_corrupt)
{
    add_groups_record(1, 0, 5, SLOTS("\0\0"));
    corrupt();
    add_config_record("a", "retention.ms", "7");
    corrupt();
    add_remove_record(1);
    corrupt();
    add_topic_record("a", 1);
    add_topic_record("a", 2);
    corrupt();
    add_topic_record("a", 1);
    add_topic_record("b", 1);
    corrupt();
    add_topic_record("", 1);
    corrupt();
    add_topic_record("a", 1);
    add_groups_record(1, 1, 5, SLOTS("\0\0"));
    corrupt();
    add_topic_record("a", 1);
    add_groups_record(1, 0, 5, SLOTS("\0\1"));
    corrupt();
    add_topic_record("a", 1);
    add_groups_record(1, 0, 5, SLOTS("\0\0\0"));
    corrupt();
    add_topic_record("a", 1);
    add_groups_record(1, 0, 0, SLOTS("\0\0"));
    corrupt();
    struct producer_ids_record ids = {.next_producer_id = 1000};
    record_list_add(&world.records, &producer_ids_record_type, 0, &ids);
    ids.next_producer_id = 0;
    record_list_add(&world.records, &producer_ids_record_type, 0, &ids);
    corrupt();
    struct unregister_broker_record gone = {.broker_id = 1};
    record_list_add(&world.records, &unregister_broker_record_type, 0, &gone);
    corrupt();
}
END_TEST

static enum status apply_bytes(const char *bytes, size_t length)
{
    struct view record = {(const uint8_t *)bytes, length};
    return image_apply(world.image, record, &world.changes);
}

START_TEST(bytes_that_are_no_record_are_corrupt_and_later_kinds_unsupported)
{
    ck_assert_int_eq(apply_bytes("\1", 1), STATUS_CORRUPT);
    ck_assert_int_eq(apply_bytes("\1\2\0\5", 4), STATUS_CORRUPT);
    ck_assert_int_eq(apply_bytes("\1\2\0\2a1234567890123456\0x", 23), STATUS_CORRUPT);
    ck_assert_int_eq(apply_bytes("\1\2\0\2a1234567890123456\0", 22), STATUS_OK);
    ck_assert_int_eq(apply_bytes("\1\2\1\2a", 5), STATUS_UNSUPPORTED);
    ck_assert_int_eq(apply_bytes("\1\x79\0", 3), STATUS_UNSUPPORTED);
    ck_assert_int_eq(apply_bytes("\1\x0c\0\4abc\1\0", 9), STATUS_OK);
}
END_TEST

/* Every record of `from` applied to a fresh image. */
static void apply_snapshot(struct record_list *from, struct image *to)
{
    struct image_changes changes = {0};
    for (size_t i = 0; i < from->count; i++) {
        ck_assert_int_eq(image_apply(to, record_list_get(from, i), &changes), STATUS_OK);
    }
    image_finish(to, &changes);
    image_changes_free(&changes);
}

static void topics_are_equal(const struct topic_image *a, const struct topic_image *b)
{
    ck_assert_ptr_nonnull(b);
    ck_assert(uuid_equal(a->id, b->id));
    ck_assert_int_eq(a->partition_count, b->partition_count);
    ck_assert_mem_eq(a->slots, b->slots, (size_t)a->partition_count * sizeof *a->slots);
    ck_assert_uint_eq(a->group_count, b->group_count);
    ck_assert_uint_eq(a->override_count, b->override_count);
    for (uint32_t i = 0; i < a->group_count; i++) {
        ck_assert_uint_eq(a->groups[i].id, b->groups[i].id);
        ck_assert_int_eq(a->groups[i].replicas[0], b->groups[i].replicas[0]);
    }
    for (uint32_t i = 0; i < a->override_count; i++) {
        ck_assert_int_eq(a->overrides[i].key, b->overrides[i].key);
        ck_assert(view_equal(a->overrides[i].value, b->overrides[i].value));
    }
}

static void fill_image(void)
{
    world_add_brokers(&world, 3);
    world_create(&world, "a.b", 200, 2);
    world_create(&world, "gone", 3, 1);
    struct remove_topic_record gone = {.topic_id = world_topic(&world, "gone")->id};
    record_list_add(&world.records, &remove_topic_record_type, 0, &gone);
    add_config_record("a.b", "retention.ms", "7");
    struct config_record other = {.resource_type = 4,
                                  .resource_name = view_text("1"),
                                  .name = view_text("log.cleaner.threads"),
                                  .value = view_text("2")};
    record_list_add(&world.records, &config_record_type, 0, &other);
    other.value = view_text("3");
    record_list_add(&world.records, &config_record_type, 0, &other);
    other.resource_name = view_text("2");
    record_list_add(&world.records, &config_record_type, 0, &other);
    other.value = VIEW_NULL;
    record_list_add(&world.records, &config_record_type, 0, &other);
    struct cluster_record cluster = {.cluster_id = view_text("my-cluster")};
    record_list_add(&world.records, &cluster_record_type, 0, &cluster);
    world_commit(&world);
    int64_t first = 0;
    controller_allocate_producer_ids(&world.controller, 1, &world.records, &first);
    world_commit(&world);
}

START_TEST(a_snapshot_makes_the_same_image)
{
    fill_image();
    struct record_list records = {0};
    image_snapshot(world.image, &records);
    struct image *copy = image_new(world.config);
    apply_snapshot(&records, copy);
    record_list_free(&records);
    ck_assert_uint_eq(image_topic_count(copy), 1);
    topics_are_equal(world_topic(&world, "a.b"), image_topic(copy, view_text("a.b")));
    ck_assert_uint_eq(image_next_group_id(copy), image_next_group_id(world.image));
    ck_assert_int_eq(image_next_producer_id(copy), 1000);
    ck_assert(view_is(image_cluster_id(copy), "my-cluster"));
    ck_assert_int_eq(image_broker_count(copy), 3);
    ck_assert(view_is(image_broker(copy, 2)->rack, "r1"));
    ck_assert_int_eq(image_partition_count(copy), 200);
    ck_assert_uint_eq(copy->config_count, 1);
    ck_assert_str_eq(copy->configs[0].value, "3");
    image_free(copy);
}
END_TEST

START_TEST(producer_ids_are_given_out_once)
{
    int64_t first = -1;
    controller_allocate_producer_ids(&world.controller, 1, &world.records, &first);
    ck_assert_int_eq(first, 0);
    world_commit(&world);
    controller_allocate_producer_ids(&world.controller, 1, &world.records, &first);
    ck_assert_int_eq(first, 1000);
    world_commit(&world);
    ck_assert_int_eq(image_next_producer_id(world.image), 2000);
}
END_TEST

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A sanitizer makes everything slower by a known factor; the bound is for the plain build. */
START_TEST(ten_thousand_partitions_are_cheap)
{
    double before = cpu_ms();
    world_create(&world, "big", 10000, 1);
    double spent = cpu_ms() - before;
    const struct topic_image *topic = world_topic(&world, "big");
    printf("# 10,000 partitions: %.2f ms, %zu bytes\n", spent, topic_image_bytes(topic));
    ck_assert_uint_eq(topic->group_count, 64);
    ck_assert_uint_lt(topic_image_bytes(topic), 10000 * 4);
    ck_assert_double_lt(spent, 100.0);
}
END_TEST

START_TEST(ten_thousand_topics_are_cheap)
{
    enum { COUNT = 10000 };
    struct create_topics_request_creatable_topic *topics =
        arena_take(&world.arena, COUNT, sizeof *topics);
    for (int i = 0; i < COUNT; i++) {
        topics[i] = create_topics_request_creatable_topic_default;
        topics[i].name = arena_format(&world.arena, "topic-%05d", i);
        topics[i].num_partitions = 1;
        topics[i].replication_factor = 1;
    }
    struct create_topics_request request = {.topics = topics, .topics_count = COUNT};
    struct create_topics_response response;
    double before = cpu_ms();
    ck_assert_int_eq(controller_create_topics(&world.controller, &request, 7, &world.arena,
                                              &world.records, &response),
                     STATUS_OK);
    world_commit(&world);
    double spent = cpu_ms() - before;
    size_t bytes = topic_image_bytes(world_topic(&world, "topic-00000"));
    printf("# 10,000 topics: %.1f ms, %zu bytes each\n", spent, bytes);
    ck_assert_uint_eq(image_topic_count(world.image), COUNT);
    ck_assert_uint_lt(bytes, 200);
    ck_assert_double_lt(spent, 1000.0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image");
    TCase *tests = tcase_create("image");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_topic_in_several_records_is_one_change);
    tcase_add_test(tests, a_change_keeps_the_old_picture_for_who_holds_it);
    tcase_add_test(tests, overrides_are_sorted_replaced_and_taken_away);
    tcase_add_test(tests, topics_without_overrides_share_their_settings);
    tcase_add_test(tests, topics_follow_what_is_set_for_brokers);
    tcase_add_test(tests, settings_that_are_not_for_topics_leave_them_alone);
    tcase_add_test(tests, a_removed_topic_is_gone_and_its_name_is_free);
    tcase_add_test(tests, another_threads_index_follows_the_changes);
    tcase_add_test(tests, brokers_are_sorted_and_replaced);
    tcase_add_test(tests, the_difference_of_two_images);
    tcase_add_test(tests, a_registration_changes);
    tcase_add_test(tests, a_change_is_of_one_registration);
    tcase_add_test(tests, records_that_contradict_the_image_are_corrupt);
    tcase_add_test(tests, bytes_that_are_no_record_are_corrupt_and_later_kinds_unsupported);
    tcase_add_test(tests, a_snapshot_makes_the_same_image);
    tcase_add_test(tests, producer_ids_are_given_out_once);
    tcase_add_test(tests, ten_thousand_partitions_are_cheap);
    tcase_add_test(tests, ten_thousand_topics_are_cheap);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
