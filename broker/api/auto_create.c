/* One command for all names of a request that are missing. */
#include "broker/api/auto_create.h"

#include <assert.h>
#include <string.h>

#include "broker/config/topic_name.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

void auto_create_begin(struct auto_create *create, struct request *request)
{
    *create = (struct auto_create){.request = request};
}

void auto_create_add(struct auto_create *create, struct view name)
{
    assert(name.data != NULL);
    if (create->count == create->capacity) {
        int32_t capacity = create->capacity == 0 ? 8 : create->capacity * 2;
        struct view *names = request_take(create->request, (size_t)capacity, sizeof *names);
        if (create->count > 0) {
            memcpy(names, create->names, (size_t)create->count * sizeof *names);
        }
        create->names = names;
        create->capacity = capacity;
    }
    create->names[create->count++] = name;
}

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct auto_create *create = container_of(command, struct auto_create, command);
    struct request *request = create->request;
    const struct controller controller = {image, command->wait.from->broker->config};
    size_t count = (size_t)create->count;
    struct refusal *refusals = request_take(request, count, sizeof *refusals);
    enum status status = controller_auto_create(&controller, create->names, count,
                                                &request->arena, records, refusals);
    assert(status == STATUS_OK);
    (void)status;
    for (size_t i = 0; i < count; i++) {
        create->errors[i] = (int16_t)refusals[i].error;
    }
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct auto_create *create = container_of(command, struct auto_create, command);
    for (int32_t i = 0; i < create->count && error != KAFKA_NONE; i++) {
        /* Retriable: the client asks again. */
        create->errors[i] = KAFKA_LEADER_NOT_AVAILABLE;
    }
    create->done(create);
}

void auto_create_go(struct auto_create *create, void (*done)(struct auto_create *create))
{
    assert(done != NULL);
    create->done = done;
    if (create->count == 0) {
        done(create);
        return;
    }
    create->errors = request_take(create->request, (size_t)create->count, sizeof *create->errors);
    create->command.run = run;
    create->command.done = ended;
    metadata_submit(create->request->home, &create->command);
}

int16_t auto_create_error(const struct auto_create *create, struct view name)
{
    for (int32_t i = 0; i < create->count; i++) {
        if (view_equal(create->names[i], name)) {
            return create->errors[i] != KAFKA_NONE ? create->errors[i]
                                                   : KAFKA_LEADER_NOT_AVAILABLE;
        }
    }
    struct view why;
    return topic_name_check(name, &create->request->arena, &why) == STATUS_OK
               ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
               : KAFKA_INVALID_TOPIC_EXCEPTION;
}
