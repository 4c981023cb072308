/* DeleteTopics as a stock Kafka 4.4 answers it. */
#include "broker/controller/controller.h"

#include <string.h>

#include "protocol/codec.h"
#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

#define STATE delete_topics_request_delete_topic_state
#define RESULT delete_topics_response_deletable_topic_result

static struct world world;
static struct delete_topics_response response;
static struct uuid id_a;

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
    world_create(&world, "a", 1, 1);
    world_create(&world, "b", 2, 1);
    id_a = world_topic(&world, "a")->id;
}

static void tear_down(void)
{
    world_stop(&world);
}

static void send_states(struct STATE *states, int32_t count)
{
    struct delete_topics_request request = {.topics = states, .topics_count = count};
    ck_assert_int_eq(controller_delete_topics(&world.controller, &request, 6, &world.arena,
                                              &world.records, &response),
                     STATUS_OK);
    world_commit(&world);
}

static void send_names(struct view *names, int32_t count, int16_t version)
{
    struct delete_topics_request request = {.topic_names = names, .topic_names_count = count};
    ck_assert_int_eq(controller_delete_topics(&world.controller, &request, version, &world.arena,
                                              &world.records, &response),
                     STATUS_OK);
    world_commit(&world);
}

static void result_is(int32_t at, const char *name, struct uuid id, enum kafka_error error)
{
    ck_assert_int_lt(at, response.responses_count);
    struct RESULT *result = &response.responses[at];
    ck_assert(name == NULL ? result->name.data == NULL : view_is(result->name, name));
    ck_assert(uuid_equal(result->topic_id, id));
    ck_assert_msg(result->error_code == error, "%d", result->error_code);
    ck_assert_int_eq(result->error_message.data == NULL, error == KAFKA_NONE);
}

static const struct uuid no_id = {{0}};
static const struct uuid unknown_id = {{[3] = 7}};

START_TEST(by_name)
{
    struct view names[] = {view_text("a"), view_text("nope")};
    send_names(names, 2, 5);
    ck_assert_int_eq(response.responses_count, 2);
    result_is(0, "a", id_a, KAFKA_NONE);
    result_is(1, "nope", no_id, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    ck_assert_uint_eq(image_topic_count(world.image), 1);
    ck_assert_ptr_null(image_topic(world.image, view_text("a")));
}
END_TEST

START_TEST(by_name_or_id)
{
    struct STATE states[] = {{VIEW_NULL, id_a}, {view_text("b"), no_id}, {VIEW_NULL, unknown_id}};
    send_states(states, 3);
    result_is(0, "a", id_a, KAFKA_NONE);
    ck_assert_int_eq(response.responses[1].error_code, KAFKA_NONE);
    result_is(2, NULL, unknown_id, KAFKA_UNKNOWN_TOPIC_ID);
    ck_assert_uint_eq(image_topic_count(world.image), 0);
}
END_TEST

START_TEST(name_and_id_together_or_neither)
{
    struct STATE states[] = {{view_text("x"), id_a}, {VIEW_NULL, no_id}};
    send_states(states, 2);
    result_is(0, "x", id_a, KAFKA_INVALID_REQUEST);
    result_is(1, NULL, no_id, KAFKA_INVALID_REQUEST);
    ck_assert_uint_eq(image_topic_count(world.image), 2);
}
END_TEST

START_TEST(twice_the_same_is_answered_once_and_deletes_nothing)
{
    struct STATE states[] = {{view_text("b"), no_id}, {view_text("b"), no_id},
                             {VIEW_NULL, id_a},       {VIEW_NULL, id_a}};
    send_states(states, 4);
    ck_assert_int_eq(response.responses_count, 2);
    result_is(0, "b", no_id, KAFKA_INVALID_REQUEST);
    result_is(1, NULL, id_a, KAFKA_INVALID_REQUEST);
    ck_assert_uint_eq(image_topic_count(world.image), 2);
}
END_TEST

START_TEST(named_by_name_and_by_id_stays)
{
    struct STATE states[] = {{VIEW_NULL, id_a}, {view_text("a"), no_id}, {view_text("b"), no_id}};
    send_states(states, 3);
    ck_assert_int_eq(response.responses_count, 2);
    result_is(0, "a", id_a, KAFKA_INVALID_REQUEST);
    ck_assert_int_eq(response.responses[1].error_code, KAFKA_NONE);
    ck_assert_uint_eq(image_topic_count(world.image), 1);
}
END_TEST

START_TEST(deletion_can_be_switched_off)
{
    tear_down();
    world_start(&world, SETTINGS("delete.topic.enable=false"));
    world_create(&world, "a", 1, 1);
    struct view names[] = {view_text("a")};
    send_names(names, 1, 5);
    ck_assert_int_eq(response.responses[0].error_code, KAFKA_TOPIC_DELETION_DISABLED);
    send_names(names, 1, 2);
    ck_assert_int_eq(response.responses[0].error_code, KAFKA_INVALID_REQUEST);
    ck_assert_uint_eq(image_topic_count(world.image), 1);
}
END_TEST

START_TEST(answers_encode_in_every_version)
{
    struct view names[] = {view_text("nope")};
    for (int16_t version = 1; version <= 6; version++) {
        send_names(names, version < 6, version);
        struct buffer buffer = {0};
        ck_assert_int_eq(
            message_encode_to(&delete_topics_response_type, version, &response, &buffer),
            STATUS_OK);
        buffer_free(&buffer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("delete topics");
    TCase *tests = tcase_create("delete topics");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, by_name);
    tcase_add_test(tests, by_name_or_id);
    tcase_add_test(tests, name_and_id_together_or_neither);
    tcase_add_test(tests, twice_the_same_is_answered_once_and_deletes_nothing);
    tcase_add_test(tests, named_by_name_and_by_id_stays);
    tcase_add_test(tests, deletion_can_be_switched_off);
    tcase_add_test(tests, answers_encode_in_every_version);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
