/* The machine as a whole, where scripts do not reach: replays of foreign bytes, subscriptions that
 * protect offsets, metrics, small arenas, and the answers for a partition that is not served. */
#include "broker/coordinator/coordinator.h"

#include <string.h>

#include "messages/delete_groups.h"
#include "messages/describe_groups.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/leave_group.h"
#include "messages/list_groups.h"
#include "messages/offset_commit.h"
#include "messages/offset_delete.h"
#include "messages/offset_fetch.h"
#include "messages/sync_group.h"
#include "messages/txn_offset_commit.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"
#include "tests/unit/broker/coordinator/harness.h"
#include "tests/unit/broker/coordinator/hex.h"
#include "tests/unit/runner.h"

static const char GROUP_KEY[] = "00020009672d636c6173736963";
static const char GROUP_VALUE[] =
    "00030008636f6e73756d657200000001000572616e6765003a726f6c652d636f6e73756d65722d636c61737369632d"
    "65303464383636622d663939652d343233662d623263642d353961646338613337373336000001a229185409000000"
    "01003a726f6c652d636f6e73756d65722d636c61737369632d65303464383636622d663939652d343233662d623263"
    "642d353961646338613337373336ffff0015726f6c652d636f6e73756d65722d636c6173736963000a2f3132372e30"
    "2e302e31000493e00000afc8000000180003000000010002696effffffff00000000ffffffffffff0000001a000300"
    "0000010002696e000000020000000000000001ffffffff";
static const char OFFSET_KEY[] = "00010009672d636c61737369630002696e00000000";
static const char OTHER_OFFSET_KEY[] = "00010009672d636c617373696300036f757400000000";
static const char OFFSET_VALUE[] =
    "00040000000000000009000000000d41674141416149704745357a000001a229195fcf010010aee30299a9234359ab"
    "36f1cb4bbf7b16";
static const int64_t COMMITTED_MS = 1795985858511;

static void replay_hex(struct coordinator *machine, const char *key, const char *value)
{
    struct view key_bytes = hex_bytes(key);
    struct view value_bytes = hex_bytes(value);
    coordinator_replay(machine, key_bytes, value_bytes);
    hex_free(key_bytes);
    hex_free(value_bytes);
}

/* A machine that has replayed records of the reference: a stable group subscribed to "in", with an
 * offset of that topic and one of "out". It leads, one second after the commit. */
static void start_with_records(struct harness *harness)
{
    harness_start(harness);
    coordinator_resign(harness->machine);
    replay_hex(harness->machine, GROUP_KEY, GROUP_VALUE);
    replay_hex(harness->machine, OFFSET_KEY, OFFSET_VALUE);
    replay_hex(harness->machine, OTHER_OFFSET_KEY, OFFSET_VALUE);
    replay_hex(harness->machine, "0003000a672d636f6e73756d6572", "000000000000000200");
    replay_hex(harness->machine, "ffff", "00");
    harness->now_ms = COMMITTED_MS + 1000;
    harness->config.offsets_retention_ms = 2000;
    harness->config.offsets_retention_check_interval_ms = 5000;
    coordinator_configure(harness->machine, &harness->config);
    coordinator_loaded(harness->machine, harness->now_ms);
}

START_TEST(records_of_the_reference_are_loaded)
{
    struct harness harness;
    start_with_records(&harness);
    struct coordinator_counts counts;
    coordinator_count(harness.machine, &counts);
    ck_assert_uint_eq(counts.groups, 1);
    ck_assert_uint_eq(counts.stable, 1);
    ck_assert_uint_eq(counts.members, 1);
    ck_assert_uint_eq(counts.offsets, 2);
    ck_assert(coordinator_is_active(harness.machine));
    ck_assert_int_eq(coordinator_next_deadline_ms(harness.machine), harness.now_ms + 5000);
    harness_stop(&harness);
}
END_TEST

START_TEST(offsets_of_subscribed_topics_do_not_expire)
{
    struct harness harness;
    start_with_records(&harness);
    harness_advance(&harness, harness.now_ms + 5000, true, NULL);
    struct coordinator_counts counts;
    coordinator_count(harness.machine, &counts);
    ck_assert_uint_eq(counts.offsets, 1);
    ck_assert_uint_eq(counts.expired_offsets, 1);
    ck_assert_uint_eq(harness.log_count, 1);
    struct view key = hex_bytes(OTHER_OFFSET_KEY);
    ck_assert(view_equal(harness.log[0].key, key));
    ck_assert_ptr_null(harness.log[0].value.data);
    hex_free(key);
    /* The member's session of 45 s ends; since then no topic is read, and the age counts anew. */
    harness_advance(&harness, harness.now_ms + 40000, true, NULL);
    coordinator_count(harness.machine, &counts);
    ck_assert_uint_eq(counts.empty, 1);
    ck_assert_uint_eq(counts.rebalances, 1);
    ck_assert_uint_eq(counts.offsets, 1);
    harness_advance(&harness, harness.now_ms + 5000, true, NULL);
    coordinator_count(harness.machine, &counts);
    ck_assert_uint_eq(counts.groups, 0);
    harness_stop(&harness);
}
END_TEST

static int16_t deleted_error;

static void keep_deletion_error(struct harness *harness, struct harness_request *request,
                                const void *response)
{
    (void)harness;
    (void)request;
    const struct offset_delete_response *deletion = response;
    deleted_error = deletion->topics[0].partitions[0].error_code;
}

static int16_t delete_offset(struct harness *harness, const char *topic)
{
    struct harness_request *request =
        harness_request_new(harness, "d", API_OFFSET_DELETE, 0);
    struct offset_delete_request_offset_delete_request_partition partition = {0};
    struct offset_delete_request_offset_delete_request_topic topics = {
        .name = view_text(topic), .partitions = &partition, .partitions_count = 1};
    struct offset_delete_request message = {
        .group_id = view_text("g-classic"), .topics = &topics, .topics_count = 1};
    deleted_error = 99;
    harness->on_answer = keep_deletion_error;
    harness_send(harness, request, "c", &message);
    harness_commit_all(harness);
    return deleted_error;
}

START_TEST(offsets_of_subscribed_topics_cannot_be_deleted)
{
    struct harness harness;
    start_with_records(&harness);
    harness_add_topic(&harness, "in", 1);
    harness_add_topic(&harness, "out", 1);
    ck_assert_int_eq(delete_offset(&harness, "in"), KAFKA_GROUP_SUBSCRIBED_TO_TOPIC);
    ck_assert_int_eq(delete_offset(&harness, "out"), KAFKA_NONE);
    struct coordinator_counts counts;
    coordinator_count(harness.machine, &counts);
    ck_assert_uint_eq(counts.offsets, 1);
    harness_stop(&harness);
}
END_TEST

static int answers;

static void count_answer(struct harness *harness, struct harness_request *request,
                         const void *response)
{
    (void)harness;
    (void)request;
    (void)response;
    answers++;
}

/* A request of random content for each API and version, with an arena that is soon full. */
START_TEST(random_requests_with_little_memory_are_answered)
{
    static const enum api_key apis[] = {
        API_OFFSET_FETCH, API_OFFSET_COMMIT, API_DESCRIBE_GROUPS, API_LIST_GROUPS,
        API_DELETE_GROUPS, API_OFFSET_DELETE, API_LEAVE_GROUP, API_HEARTBEAT,
        API_TXN_OFFSET_COMMIT, API_SYNC_GROUP, API_JOIN_GROUP};
    uint64_t seed = (uint64_t)_i;
    struct harness harness;
    start_with_records(&harness);
    harness_add_topic(&harness, "in", 1);
    harness.on_answer = count_answer;
    answers = 0;
    int sent = 0;
    for (size_t a = 0; a < sizeof(apis) / sizeof(apis[0]); a++) {
        const struct api *api = api_find(apis[a]);
        for (int16_t v = api->request->first_version; v <= api->request->last_version; v++) {
            struct harness_request *request = harness_request_new(&harness, "r", apis[a], v);
            struct arena content;
            arena_init(&content, 1024 * 1024);
            void *message = arena_take(&content, 1, api->request->body->size_bytes);
            ck_assert(message_random(api->request, v, &seed, &content, message));
            request->arena.limit_bytes = (size_t)(seed % 4096) + 1;
            harness_send(&harness, request, "c", message);
            arena_free(&content);
            sent++;
            if (seed % 2 == 0) {
                harness_commit_all(&harness);
            }
        }
    }
    harness_commit_all(&harness);
    harness_resign(&harness);
    ck_assert_int_eq(answers, sent);
    harness_stop(&harness);
}
END_TEST

/* Whether the refusal of a random request can be sent, and says the error where it has a place. */
static void check_refusal(enum api_key key, int16_t version, uint64_t *seed)
{
    const struct api *api = api_find(key);
    struct arena arena;
    arena_init(&arena, 16 * 1024 * 1024);
    void *request = arena_take(&arena, 1, api->request->body->size_bytes);
    void *response = arena_take(&arena, 1, api->response->body->size_bytes);
    ck_assert(message_random(api->request, version, seed, &arena, request));
    coordinator_refuse(key, version, request, KAFKA_COORDINATOR_LOAD_IN_PROGRESS, &arena, response);
    struct buffer bytes = {0};
    ck_assert_int_eq(message_encode_to(api->response, version, response, &bytes), STATUS_OK);
    bytes.length = 0;
    message_print_json(api->response, version, response, &bytes);
    buffer_append(&bytes, "", 1);
    const char *text = (const char *)bytes.data;
    bool has_place = strstr(text, "errorCode") != NULL;
    bool has_error = strstr(text, "\"errorCode\":14") != NULL;
    bool has_none = strstr(text, "\"errorCode\":0") != NULL;
    ck_assert_msg(has_place == has_error && !has_none, "%s v%d: %s", api->name, version, text);
    buffer_free(&bytes);
    arena_free(&arena);
}

START_TEST(a_refusal_says_the_error_in_every_version)
{
    uint64_t seed = (uint64_t)_i + 1;
    for (int key = 0; key < API_KEY_COUNT; key++) {
        if (!coordinator_serves((enum api_key)key)) {
            continue;
        }
        const struct api *api = api_find(key);
        for (int16_t v = api->request->first_version; v <= api->request->last_version; v++) {
            check_refusal((enum api_key)key, v, &seed);
        }
    }
}
END_TEST

START_TEST(a_commit_that_stores_nothing_leaves_no_group_behind)
{
    struct harness harness;
    harness_start(&harness);
    harness_add_topic(&harness, "in", 1);
    harness.config.offset_metadata_max_bytes = 1;
    coordinator_configure(harness.machine, &harness.config);
    struct harness_request *request = harness_request_new(&harness, "c", API_OFFSET_COMMIT, 9);
    struct offset_commit_request_offset_commit_request_partition partition =
        offset_commit_request_offset_commit_request_partition_default;
    partition.committed_metadata = view_text("long");
    struct offset_commit_request_offset_commit_request_topic topic = {
        .name = view_text("in"), .partitions = &partition, .partitions_count = 1};
    struct offset_commit_request message = offset_commit_request_default;
    message.group_id = view_text("g");
    message.topics = &topic;
    message.topics_count = 1;
    harness_send(&harness, request, "c", &message);
    struct coordinator_counts counts;
    coordinator_count(harness.machine, &counts);
    ck_assert_uint_eq(counts.empty, 0);
    ck_assert(list_is_empty(&harness.batches) && list_is_empty(&harness.requests));
    harness_stop(&harness);
}
END_TEST

START_TEST(an_old_fetch_is_refused_in_each_partition)
{
    int32_t partitions[] = {3, 4};
    struct offset_fetch_request_offset_fetch_request_topic topic = {
        .name = view_text("t"), .partition_indexes = partitions, .partition_indexes_count = 2};
    struct offset_fetch_request request = offset_fetch_request_default;
    request.topics = &topic;
    request.topics_count = 1;
    struct offset_fetch_response response;
    struct arena arena;
    arena_init(&arena, 4096);
    coordinator_refuse(API_OFFSET_FETCH, 1, &request, KAFKA_NOT_COORDINATOR, &arena, &response);
    ck_assert_int_eq(response.topics_count, 1);
    ck_assert_int_eq(response.topics[0].partitions_count, 2);
    ck_assert_int_eq(response.topics[0].partitions[1].partition_index, 4);
    ck_assert_int_eq(response.topics[0].partitions[1].error_code, KAFKA_NOT_COORDINATOR);
    ck_assert_int_eq(response.topics[0].partitions[1].committed_offset, -1);
    coordinator_refuse(API_OFFSET_FETCH, 2, &request, KAFKA_NOT_COORDINATOR, &arena, &response);
    ck_assert_int_eq(response.topics_count, 0);
    ck_assert_int_eq(response.error_code, KAFKA_NOT_COORDINATOR);
    arena_free(&arena);
}
END_TEST

START_TEST(only_the_group_apis_are_served)
{
    int count = 0;
    for (int key = 0; key < API_KEY_COUNT; key++) {
        count += coordinator_serves((enum api_key)key);
    }
    ck_assert_int_eq(count, 11);
    ck_assert(!coordinator_serves(API_CONSUMER_GROUP_HEARTBEAT));
    ck_assert(!coordinator_serves(API_FIND_COORDINATOR));
}
END_TEST

START_TEST(time_does_not_run_backwards)
{
    struct harness harness;
    start_with_records(&harness);
    harness_resign(&harness);
    harness.config.offsets_retention_check_interval_ms = 1000000;
    coordinator_configure(harness.machine, &harness.config);
    int64_t now_ms = harness.now_ms;
    coordinator_loaded(harness.machine, now_ms);
    coordinator_tick(harness.machine, now_ms + 1000);
    coordinator_tick(harness.machine, 5);
    /* The id that is handed out now lasts from the newest time on, whatever the request says. */
    harness.now_ms = 5;
    struct harness_request *request = harness_request_new(&harness, "j", API_JOIN_GROUP, 9);
    struct join_group_request_join_group_request_protocol protocol = {view_text("range"),
                                                                      VIEW_EMPTY};
    struct join_group_request message = join_group_request_default;
    message.group_id = view_text("new");
    message.protocol_type = view_text("consumer");
    message.session_timeout_ms = 6000;
    message.protocols = &protocol;
    message.protocols_count = 1;
    harness_send(&harness, request, "c", &message);
    harness_commit_all(&harness);
    ck_assert_int_eq(coordinator_next_deadline_ms(harness.machine), now_ms + 7000);
    harness_stop(&harness);
}
END_TEST

/* Forward: what is due in four seconds is not due at once; back: it does not wait for an hour. */
START_TEST(a_clock_that_is_set_moves_the_deadlines)
{
    static const int64_t by_ms[] = {3600000, -3600000};
    struct harness harness;
    start_with_records(&harness);
    int64_t due_ms = harness.now_ms + 5000;
    coordinator_tick(harness.machine, harness.now_ms + 1000);
    coordinator_clock_set(harness.machine, by_ms[_i]);
    due_ms += by_ms[_i];
    ck_assert_int_eq(coordinator_next_deadline_ms(harness.machine), due_ms);
    coordinator_tick(harness.machine, due_ms - 1);
    ck_assert_int_eq(coordinator_next_deadline_ms(harness.machine), due_ms);
    coordinator_tick(harness.machine, due_ms);
    ck_assert_int_eq(coordinator_next_deadline_ms(harness.machine), due_ms + 5000);
    harness_stop(&harness);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, records_of_the_reference_are_loaded);
    tcase_add_test(all, offsets_of_subscribed_topics_do_not_expire);
    tcase_add_test(all, offsets_of_subscribed_topics_cannot_be_deleted);
    tcase_add_loop_test(all, random_requests_with_little_memory_are_answered, 1, 41);
    tcase_add_loop_test(all, a_refusal_says_the_error_in_every_version, 0, 10);
    tcase_add_test(all, a_commit_that_stores_nothing_leaves_no_group_behind);
    tcase_add_test(all, an_old_fetch_is_refused_in_each_partition);
    tcase_add_test(all, only_the_group_apis_are_served);
    tcase_add_test(all, time_does_not_run_backwards);
    tcase_add_loop_test(all, a_clock_that_is_set_moves_the_deadlines, 0, 2);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
