/* Record bytes: those that a stock 4.4.0 broker wrote into __consumer_offsets are read, and written
 * again to the same bytes. */
#include "broker/coordinator/records.h"

#include "base/view.h"
#include "tests/unit/broker/coordinator/hex.h"
#include "tests/unit/runner.h"

static const char OFFSET_KEY[] =
    "000100196170702d73747265616d732d61745f6c656173745f6f6e63650002696e00000001";
static const char OFFSET_VALUE[] =
    "00040000000000000009000000000d41674141416149704745357a000001a229195fcf010010aee30299a9234359ab"
    "36f1cb4bbf7b16";
static const char GROUP_KEY[] = "00020009672d636c6173736963";
static const char NEW_GROUP_VALUE[] = "0003000000000000ffffffff000001a2291853f100000000";
static const char EMPTY_GROUP_VALUE[] =
    "00030008636f6e73756d657200000002ffffffff000001a22918867500000000";
static const char STABLE_GROUP_VALUE[] =
    "00030008636f6e73756d657200000001000572616e6765003a726f6c652d636f6e73756d65722d636c61737369632d"
    "65303464383636622d663939652d343233662d623263642d353961646338613337373336000001a229185409000000"
    "01003a726f6c652d636f6e73756d65722d636c61737369632d65303464383636622d663939652d343233662d623263"
    "642d353961646338613337373336ffff0015726f6c652d636f6e73756d65722d636c6173736963000a2f3132372e30"
    "2e302e31000493e00000afc8000000180003000000010002696effffffff00000000ffffffffffff0000001a000300"
    "0000010002696e000000020000000000000001ffffffff";
static const char STABLE_LEADER[] = "role-consumer-classic-e04d866b-f99e-423f-b2cd-59adc8a37736";

START_TEST(offset_records_of_the_reference_are_read_and_written_alike)
{
    struct view key = hex_bytes(OFFSET_KEY);
    struct view value = hex_bytes(OFFSET_VALUE);
    struct coordinator_key name = coordinator_read_key(key);
    ck_assert_int_eq(name.kind, COORDINATOR_KEY_OFFSET);
    ck_assert(view_is(name.group, "app-streams-at_least_once"));
    ck_assert(view_is(name.topic, "in"));
    ck_assert_int_eq(name.partition, 1);
    struct coordinator_offset offset;
    ck_assert(coordinator_read_offset_value(value, &offset));
    ck_assert_int_eq(offset.offset, 9);
    ck_assert_int_eq(offset.leader_epoch, 0);
    ck_assert_int_eq(offset.commit_timestamp_ms, 1795985858511);
    ck_assert_int_eq(offset.expire_timestamp_ms, -1);
    ck_assert_int_eq(offset.topic_id.bytes[0], 0xae);
    struct buffer written = {0};
    coordinator_write_offset_key(&written, name.group, name.topic, name.partition);
    ck_assert(view_equal(buffer_view(&written), key));
    written.length = 0;
    coordinator_write_offset_value(&written, &offset);
    ck_assert(view_equal(buffer_view(&written), value));
    buffer_free(&written);
    hex_free(key);
    hex_free(value);
}
END_TEST

static void group_value_comes_back(const char *hex)
{
    struct view value = hex_bytes(hex);
    struct arena arena;
    arena_init(&arena, 1024 * 1024);
    struct group_metadata_value group;
    ck_assert(coordinator_read_group_value(value, &arena, &group));
    struct buffer written = {0};
    coordinator_write_group_value(&written, &group);
    ck_assert(view_equal(buffer_view(&written), value));
    buffer_free(&written);
    arena_free(&arena);
    hex_free(value);
}

START_TEST(group_records_of_the_reference_are_read_and_written_alike)
{
    struct view key = hex_bytes(GROUP_KEY);
    ck_assert_int_eq(coordinator_read_key(key).kind, COORDINATOR_KEY_GROUP);
    ck_assert(view_is(coordinator_read_key(key).group, "g-classic"));
    struct buffer written = {0};
    coordinator_write_group_key(&written, view_text("g-classic"));
    ck_assert(view_equal(buffer_view(&written), key));
    buffer_free(&written);
    hex_free(key);
    group_value_comes_back(NEW_GROUP_VALUE);
    group_value_comes_back(EMPTY_GROUP_VALUE);
    group_value_comes_back(STABLE_GROUP_VALUE);
}
END_TEST

START_TEST(the_members_of_a_group_record_are_read)
{
    struct view value = hex_bytes(STABLE_GROUP_VALUE);
    struct arena arena;
    arena_init(&arena, 1024 * 1024);
    struct group_metadata_value group;
    ck_assert(coordinator_read_group_value(value, &arena, &group));
    ck_assert(view_is(group.protocol_type, "consumer"));
    ck_assert(view_is(group.protocol, "range"));
    ck_assert(view_is(group.leader, STABLE_LEADER));
    ck_assert_int_eq(group.generation, 1);
    ck_assert_int_eq(group.members_count, 1);
    ck_assert(view_is(group.members[0].member_id, STABLE_LEADER));
    ck_assert(view_is(group.members[0].client_host, "/127.0.0.1"));
    ck_assert_int_eq(group.members[0].session_timeout, 45000);
    ck_assert_int_eq(group.members[0].rebalance_timeout, 300000);
    arena_free(&arena);
    hex_free(value);
}
END_TEST

START_TEST(a_commit_with_an_expiry_of_its_own_is_version_1)
{
    struct coordinator_offset offset = {.offset = 7,
                                        .commit_timestamp_ms = 1,
                                        .expire_timestamp_ms = 5001,
                                        .leader_epoch = -1,
                                        .metadata = VIEW_EMPTY};
    struct buffer written = {0};
    coordinator_write_offset_value(&written, &offset);
    ck_assert_int_eq(written.data[1], 1);
    struct coordinator_offset read;
    ck_assert(coordinator_read_offset_value(buffer_view(&written), &read));
    ck_assert_int_eq(read.expire_timestamp_ms, 5001);
    ck_assert_int_eq(read.offset, 7);
    buffer_free(&written);
}
END_TEST

START_TEST(foreign_and_broken_bytes_are_told_apart_from_records)
{
    static const char *const keys[] = {
        "",
        "00",
        "0003000a672d636f6e73756d6572", /* ConsumerGroupMetadataKey */
        "ffff0001",
        "0001000567",   /* cut off */
        "00020005676e", /* cut off */
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct view key = hex_bytes(keys[i]);
        ck_assert_int_eq(coordinator_read_key(key).kind, COORDINATOR_KEY_OTHER);
        hex_free(key);
    }
    static const char *const values[] = {"", "00", "0004", "0063000000", "ffff0000"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct view value = hex_bytes(values[i]);
        struct coordinator_offset offset;
        struct group_metadata_value group;
        struct arena arena;
        arena_init(&arena, 4096);
        ck_assert(!coordinator_read_offset_value(value, &offset));
        ck_assert(!coordinator_read_group_value(value, &arena, &group));
        arena_free(&arena);
        hex_free(value);
    }
}
END_TEST

START_TEST(keys_of_type_0_are_offsets_too)
{
    struct view key = hex_bytes("0000000167000174" "00000003");
    struct coordinator_key name = coordinator_read_key(key);
    ck_assert_int_eq(name.kind, COORDINATOR_KEY_OFFSET);
    ck_assert(view_is(name.topic, "t"));
    ck_assert_int_eq(name.partition, 3);
    hex_free(key);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator records");
    TCase *all = tcase_create("all");
    tcase_add_test(all, offset_records_of_the_reference_are_read_and_written_alike);
    tcase_add_test(all, group_records_of_the_reference_are_read_and_written_alike);
    tcase_add_test(all, the_members_of_a_group_record_are_read);
    tcase_add_test(all, a_commit_with_an_expiry_of_its_own_is_version_1);
    tcase_add_test(all, foreign_and_broken_bytes_are_told_apart_from_records);
    tcase_add_test(all, keys_of_type_0_are_offsets_too);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
