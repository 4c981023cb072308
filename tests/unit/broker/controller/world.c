/* See world.h. */
#include "tests/unit/broker/controller/world.h"

#include <stdio.h>

void world_start(struct world *world, const char *const *settings)
{
    char why[CONFIG_WHY_BYTES];
    int count = 0;
    while (settings[count] != NULL) {
        count++;
    }
    struct config_sources sources = {.overrides = settings, .override_count = count};
    *world = (struct world){0};
    arena_init(&world->arena, (size_t)1 << 30);
    ck_assert_msg(config_load(&sources, &world->config, why) == STATUS_OK, "%s", why);
    world->image = image_new(world->config);
    world->controller = (struct controller){world->image};
}

void world_stop(struct world *world)
{
    image_changes_free(&world->changes);
    record_list_free(&world->records);
    image_free(world->image);
    config_free(world->config);
    arena_free(&world->arena);
}

void world_add_brokers(struct world *world, int count)
{
    for (int i = 1; i <= count; i++) {
        struct register_broker_record record = register_broker_record_default;
        record.broker_id = i;
        record.fenced = false;
        record.rack = view_text("r1");
        record_list_add(&world->records, &register_broker_record_type, 3, &record);
    }
    world_commit(world);
}

void world_commit(struct world *world)
{
    image_changes_free(&world->changes);
    for (size_t i = 0; i < world->records.count; i++) {
        ck_assert_int_eq(
            image_apply(world->image, record_list_get(&world->records, i), &world->changes),
            STATUS_OK);
    }
    image_finish(world->image, &world->changes);
    record_list_free(&world->records);
}

void world_create(struct world *world, const char *name, int32_t partitions, int16_t replication)
{
    struct create_topics_request_creatable_topic topic = {
        .name = view_text(name), .num_partitions = partitions, .replication_factor = replication};
    struct create_topics_request request = {.topics = &topic, .topics_count = 1};
    struct create_topics_response response;
    ck_assert_int_eq(controller_create_topics(&world->controller, &request, 7, &world->arena,
                                              &world->records, &response),
                     STATUS_OK);
    ck_assert_msg(response.topics[0].error_code == 0, "%.*s",
                  VIEW_PRINT(response.topics[0].error_message));
    world_commit(world);
}

struct topic_image *world_topic(struct world *world, const char *name)
{
    struct topic_image *topic = image_topic(world->image, view_text(name));
    ck_assert_ptr_nonnull(topic);
    return topic;
}
