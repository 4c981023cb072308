/* The index finds what was added and nothing else, whatever the order of adding and removing. */
#include "broker/controller/topic_index.h"

#include <stdio.h>
#include <string.h>

#include "io/random.h"
#include "tests/unit/runner.h"

enum { TOPICS = 500, STEPS = 20000 };

static struct config *config;
static struct settings_share *share;

static void set_up(void)
{
    char why[CONFIG_WHY_BYTES];
    struct config_sources sources = {0};
    ck_assert_int_eq(config_load(&sources, &config, why), STATUS_OK);
    share = settings_share_new(config, NULL, 0);
}

static void tear_down(void)
{
    settings_share_unref(share);
    config_free(config);
}

static struct topic_image *make(const char *name, uint8_t id)
{
    static const int32_t replicas[] = {1};
    static const uint16_t slots[] = {0};
    struct partition_group group = {7, replicas, 1};
    struct topic_parts parts = {.name = view_text(name), .slots = slots, .partition_count = 1,
                                .groups = &group, .group_count = 1};
    parts.id.bytes[0] = id;
    return topic_image_new(&parts, settings_share_ref(share));
}

START_TEST(an_empty_index_finds_nothing)
{
    struct topic_index index;
    topic_index_init(&index, TOPIC_INDEX_NAME);
    uint32_t cursor = 0;
    ck_assert_ptr_null(topic_index_find(&index, view_text("a")));
    ck_assert_ptr_null(topic_index_next(&index, &cursor));
    topic_index_free(&index);
    topic_index_init(&index, TOPIC_INDEX_ID);
    ck_assert_ptr_null(topic_index_find_id(&index, (struct uuid){{1}}));
}
END_TEST

START_TEST(colliding_names_are_found_while_one_is_left)
{
    struct topic_index index;
    topic_index_init(&index, TOPIC_INDEX_COLLISION);
    struct topic_image *dotted = make("a.b", 1);
    struct topic_image *lined = make("a_b", 2);
    topic_index_add(&index, dotted);
    topic_index_add(&index, lined);
    ck_assert_ptr_nonnull(topic_index_find(&index, view_text("a.b")));
    topic_index_remove(&index, dotted);
    ck_assert_ptr_eq(topic_index_find(&index, view_text("a.b")), lined);
    topic_index_remove(&index, lined);
    ck_assert_ptr_null(topic_index_find(&index, view_text("a_b")));
    topic_image_unref(dotted);
    topic_image_unref(lined);
    topic_index_free(&index);
}
END_TEST

/* A small id space makes long runs of neighbours, whose removal is the hard case. */
START_TEST(random_adding_and_removing_agrees_with_a_plain_list)
{
    uint64_t seed = random_below(UINT64_MAX);
    printf("# seed %llu\n", (unsigned long long)seed);
    struct topic_index by_name;
    struct topic_index by_id;
    topic_index_init(&by_name, TOPIC_INDEX_NAME);
    topic_index_init(&by_id, TOPIC_INDEX_ID);
    struct topic_image *topics[TOPICS] = {NULL};
    uint32_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t at = (uint32_t)(seed >> 33) % TOPICS;
        char name[32];
        snprintf(name, sizeof name, "topic-%u", at);
        struct topic_parts parts = {.name = view_text(name)};
        memcpy(parts.id.bytes, &at, sizeof at);
        parts.id.bytes[8] = (uint8_t)(at % 16);
        if (topics[at] == NULL) {
            topics[at] = topic_image_new(&parts, settings_share_ref(share));
            topic_index_add(&by_name, topics[at]);
            topic_index_add(&by_id, topics[at]);
            count++;
        } else {
            topic_index_remove(&by_name, topics[at]);
            topic_index_remove(&by_id, topics[at]);
            topic_image_unref(topics[at]);
            topics[at] = NULL;
            count--;
        }
        uint32_t other = (uint32_t)(seed >> 20) % TOPICS;
        snprintf(name, sizeof name, "topic-%u", other);
        struct uuid id = {{0}};
        memcpy(id.bytes, &other, sizeof other);
        id.bytes[8] = (uint8_t)(other % 16);
        ck_assert_ptr_eq(topic_index_find(&by_name, view_text(name)), topics[other]);
        ck_assert_ptr_eq(topic_index_find_id(&by_id, id), topics[other]);
        ck_assert_uint_eq(by_name.count, count);
    }
    uint32_t cursor = 0;
    uint32_t seen = 0;
    while (topic_index_next(&by_name, &cursor) != NULL) {
        seen++;
    }
    ck_assert_uint_eq(seen, count);
    topic_index_free(&by_name);
    topic_index_free(&by_id);
    for (int i = 0; i < TOPICS; i++) {
        topic_image_unref(topics[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topic index");
    TCase *tests = tcase_create("topic index");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_empty_index_finds_nothing);
    tcase_add_test(tests, colliding_names_are_found_while_one_is_left);
    tcase_add_test(tests, random_adding_and_removing_agrees_with_a_plain_list);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
