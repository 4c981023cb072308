/* The durable layer: what records make of it, and what transactions hold back. */
#include "broker/coordinator/offset_store.h"

#include "tests/unit/runner.h"

static struct view GROUP, TOPIC;

static void put(struct offset_store *store, const char *topic, int32_t partition, int64_t value,
                int64_t producer_id)
{
    struct coordinator_offset offset = {.offset = value,
                                        .leader_epoch = -1,
                                        .expire_timestamp_ms = -1,
                                        .metadata = VIEW_LITERAL("m")};
    struct buffer key = {0};
    struct buffer bytes = {0};
    coordinator_write_offset_key(&key, GROUP, view_text(topic), partition);
    coordinator_write_offset_value(&bytes, &offset);
    if (producer_id < 0) {
        offset_store_apply(store, buffer_view(&key), buffer_view(&bytes));
    } else {
        offset_store_apply_open(store, producer_id, buffer_view(&key), buffer_view(&bytes));
    }
    buffer_free(&key);
    buffer_free(&bytes);
}

static void drop(struct offset_store *store, int32_t partition)
{
    struct buffer key = {0};
    coordinator_write_offset_key(&key, GROUP, TOPIC, partition);
    offset_store_apply(store, buffer_view(&key), VIEW_NULL);
    buffer_free(&key);
}

static int64_t get(const struct offset_store *store, int32_t partition)
{
    const struct stored_offset *offset =
        offset_store_find(offset_store_group(store, GROUP), TOPIC, partition);
    return offset == NULL ? -1 : offset->value.offset;
}

static void setup(void)
{
    GROUP = view_text("g");
    TOPIC = view_text("t");
}

START_TEST(offsets_are_found_whatever_their_order)
{
    struct offset_store store = {0};
    static const int32_t order[] = {5, 0, 3, 9, 1};
    for (size_t i = 0; i < 5; i++) {
        put(&store, "t", order[i], 100 + order[i], -1);
    }
    put(&store, "t", 3, 200, -1);
    ck_assert_uint_eq(store.offset_count, 5);
    ck_assert_int_eq(get(&store, 3), 200);
    ck_assert_int_eq(get(&store, 9), 109);
    ck_assert_int_eq(get(&store, 4), -1);
    const struct stored_topic *topic = offset_store_topic(offset_store_group(&store, GROUP), TOPIC);
    for (size_t i = 1; i < topic->count; i++) {
        ck_assert_int_lt(topic->offsets[i - 1].partition, topic->offsets[i].partition);
    }
    offset_store_free(&store);
}
END_TEST

START_TEST(a_group_is_gone_with_its_last_record)
{
    struct offset_store store = {0};
    put(&store, "t", 0, 1, -1);
    put(&store, "t", 1, 2, -1);
    drop(&store, 0);
    ck_assert_int_eq(get(&store, 1), 2);
    drop(&store, 7);
    drop(&store, 1);
    ck_assert_ptr_null(offset_store_group(&store, GROUP));
    ck_assert_uint_eq(store.offset_count, 0);
    offset_store_free(&store);
}
END_TEST

START_TEST(a_group_value_stays_without_offsets)
{
    struct offset_store store = {0};
    struct buffer key = {0};
    struct buffer value = {0};
    struct group_metadata_value group = group_metadata_value_default;
    coordinator_write_group_key(&key, GROUP);
    coordinator_write_group_value(&value, &group);
    offset_store_apply(&store, buffer_view(&key), buffer_view(&value));
    put(&store, "t", 0, 1, -1);
    drop(&store, 0);
    ck_assert(view_equal(offset_store_group(&store, GROUP)->value, buffer_view(&value)));
    offset_store_apply(&store, buffer_view(&key), VIEW_NULL);
    ck_assert_ptr_null(offset_store_group(&store, GROUP));
    buffer_free(&key);
    buffer_free(&value);
    offset_store_free(&store);
}
END_TEST

START_TEST(unreadable_records_change_nothing)
{
    struct offset_store store = {0};
    put(&store, "t", 0, 1, -1);
    struct buffer key = {0};
    coordinator_write_offset_key(&key, GROUP, TOPIC, 0);
    offset_store_apply(&store, buffer_view(&key), view_text("zz"));
    offset_store_apply(&store, view_text("?"), view_text("zz"));
    offset_store_apply_open(&store, 1, view_text("?"), view_text("zz"));
    ck_assert_int_eq(get(&store, 0), 1);
    ck_assert_ptr_null(store.transactions);
    buffer_free(&key);
    offset_store_free(&store);
}
END_TEST

START_TEST(transactions_count_only_when_committed)
{
    struct offset_store store = {0};
    put(&store, "t", 0, 1, -1);
    put(&store, "t", 0, 5, 7);
    put(&store, "t", 1, 6, 7);
    ck_assert_int_eq(get(&store, 0), 1);
    ck_assert(offset_store_is_open(&store, GROUP, TOPIC, 0));
    ck_assert(!offset_store_is_open(&store, GROUP, TOPIC, 2));
    ck_assert(offset_store_has_open(&store, GROUP));
    offset_store_end_transaction(&store, 8, true, NULL, NULL);
    ck_assert_int_eq(get(&store, 0), 1);
    offset_store_end_transaction(&store, 7, true, NULL, NULL);
    ck_assert_int_eq(get(&store, 0), 5);
    ck_assert_int_eq(get(&store, 1), 6);
    ck_assert(!offset_store_has_open(&store, GROUP));
    put(&store, "t", 0, 9, 7);
    offset_store_end_transaction(&store, 7, false, NULL, NULL);
    ck_assert_int_eq(get(&store, 0), 5);
    offset_store_free(&store);
}
END_TEST

START_TEST(the_newest_record_wins_not_the_latest_marker)
{
    struct offset_store store = {0};
    put(&store, "t", 0, 10, 7);
    put(&store, "t", 0, 20, -1);
    offset_store_end_transaction(&store, 7, true, NULL, NULL);
    ck_assert_int_eq(get(&store, 0), 20);
    put(&store, "t", 0, 30, 7);
    put(&store, "t", 0, 31, 7);
    offset_store_end_transaction(&store, 7, true, NULL, NULL);
    ck_assert_int_eq(get(&store, 0), 31);
    offset_store_free(&store);
}
END_TEST

START_TEST(a_tombstone_takes_what_is_open_along)
{
    struct offset_store store = {0};
    put(&store, "t", 0, 10, 7);
    put(&store, "t", 1, 11, 7);
    put(&store, "t", 0, 12, 8);
    drop(&store, 0);
    ck_assert(!offset_store_is_open(&store, GROUP, TOPIC, 0));
    offset_store_end_transaction(&store, 7, true, NULL, NULL);
    offset_store_end_transaction(&store, 8, true, NULL, NULL);
    ck_assert_int_eq(get(&store, 0), -1);
    ck_assert_int_eq(get(&store, 1), 11);
    offset_store_free(&store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator offset store");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, NULL);
    tcase_add_test(all, offsets_are_found_whatever_their_order);
    tcase_add_test(all, a_group_is_gone_with_its_last_record);
    tcase_add_test(all, a_group_value_stays_without_offsets);
    tcase_add_test(all, unreadable_records_change_nothing);
    tcase_add_test(all, transactions_count_only_when_committed);
    tcase_add_test(all, the_newest_record_wins_not_the_latest_marker);
    tcase_add_test(all, a_tombstone_takes_what_is_open_along);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
