/* The coordinator's surroundings in memory. Happy path: requests go in, batches are queued,
 * committed ones go to the log. A broken promise of the machine aborts with what was broken. */
#include "tests/unit/broker/coordinator/harness.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"

enum { REQUEST_ARENA_BYTES = 64 * 1024 * 1024 };

static struct view own(struct view view)
{
    if (view.data == NULL) {
        return VIEW_NULL;
    }
    uint8_t *bytes = memory_new(view.length + 1);
    memcpy(bytes, view.data, view.length);
    return (struct view){bytes, view.length};
}

static void disown(struct view view)
{
    free((void *)(uintptr_t)view.data);
}

static void on_append(void *owner, const struct coordinator_batch *batch)
{
    struct harness *harness = owner;
    struct harness_batch *kept = memory_new_zero(1, sizeof(*kept));
    kept->id = batch->id;
    kept->count = batch->count;
    kept->records = memory_new_zero(batch->count, sizeof(*kept->records));
    for (size_t i = 0; i < batch->count; i++) {
        kept->records[i].key = own(batch->records[i].key);
        kept->records[i].value = own(batch->records[i].value);
        kept->records[i].producer_id = batch->producer_id;
    }
    list_push_back(&harness->batches, &kept->link);
    if (harness->on_append != NULL) {
        harness->on_append(harness, batch);
    }
}

static bool is_waiting(const struct harness *harness, const void *token)
{
    for (struct list_link *link = list_first(&harness->requests); link != NULL;
         link = list_next(&harness->requests, link)) {
        if (container_of(link, struct harness_request, link) == token) {
            return true;
        }
    }
    return false;
}

static void on_answer(void *owner, void *token, enum api_key api, const void *response)
{
    struct harness *harness = owner;
    if (!is_waiting(harness, token)) {
        fprintf(stderr, "answer to a request that does not wait\n");
        abort();
    }
    struct harness_request *request = token;
    assert(request->api == api);
    struct buffer bytes = {0};
    enum status status =
        message_encode_to(api_find(api)->response, request->version, response, &bytes);
    assert(status == STATUS_OK);
    buffer_free(&bytes);
    list_remove(&request->link);
    if (harness->on_answer != NULL) {
        harness->on_answer(harness, request, response);
    }
    arena_free(&request->arena);
    free(request);
}

static enum kafka_error on_find_topic(void *owner, void *token, enum api_key api, struct view name,
                                      struct uuid id, struct coordinator_topic *topic)
{
    (void)token;
    (void)api;
    const struct harness *harness = owner;
    for (size_t i = 0; i < harness->topic_count; i++) {
        const struct coordinator_topic *known = &harness->topics[i];
        if (name.data == NULL ? uuid_equal(known->id, id) : view_equal(known->name, name)) {
            *topic = *known;
            return KAFKA_NONE;
        }
    }
    return name.data == NULL ? KAFKA_UNKNOWN_TOPIC_ID : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
}

static struct uuid on_new_uuid(void *owner)
{
    struct harness *harness = owner;
    struct uuid uuid = {{0}};
    store_be64(uuid.bytes + 8, ++harness->ids);
    return uuid;
}

static struct coordinator *new_machine(const struct harness *harness)
{
    struct coordinator_host host = {
        .owner = (void *)(uintptr_t)harness,
        .append = on_append,
        .answer = on_answer,
        .find_topic = on_find_topic,
        .new_uuid = on_new_uuid,
    };
    return coordinator_new(&harness->config, &host);
}

void harness_start(struct harness *harness)
{
    *harness = (struct harness){0};
    list_init(&harness->requests);
    list_init(&harness->batches);
    coordinator_config_init(&harness->config);
    harness->machine = new_machine(harness);
    coordinator_loaded(harness->machine, 0);
}

static void batch_free(struct harness_batch *batch, bool with_records)
{
    for (size_t i = 0; with_records && i < batch->count; i++) {
        disown(batch->records[i].key);
        disown(batch->records[i].value);
    }
    free(batch->records);
    free(batch);
}

static struct harness_batch *pop_batch(struct harness *harness)
{
    struct list_link *link = list_pop_front(&harness->batches);
    return link == NULL ? NULL : container_of(link, struct harness_batch, link);
}

void harness_resign(struct harness *harness)
{
    coordinator_resign(harness->machine);
    for (struct harness_batch *batch = pop_batch(harness); batch != NULL;
         batch = pop_batch(harness)) {
        batch_free(batch, true);
    }
    if (!list_is_empty(&harness->requests)) {
        const struct harness_request *lost =
            container_of(list_first(&harness->requests), struct harness_request, link);
        fprintf(stderr, "request %s was never answered\n", lost->name);
        abort();
    }
}

void harness_stop(struct harness *harness)
{
    harness_resign(harness);
    coordinator_free(harness->machine);
    for (size_t i = 0; i < harness->log_count; i++) {
        disown(harness->log[i].key);
        disown(harness->log[i].value);
    }
    free(harness->log);
    *harness = (struct harness){0};
}

void harness_add_topic(struct harness *harness, const char *name, int32_t partition_count)
{
    assert(harness->topic_count < HARNESS_TOPICS_MAX);
    struct coordinator_topic *topic = &harness->topics[harness->topic_count++];
    topic->name = view_text(name);
    topic->partition_count = partition_count;
    memset(topic->id.bytes, (int)harness->topic_count, UUID_BYTES);
}

struct harness_request *harness_request_new(struct harness *harness, const char *name,
                                            enum api_key api, int16_t version)
{
    struct harness_request *request = memory_new_zero(1, sizeof(*request));
    snprintf(request->name, sizeof(request->name), "%s", name);
    request->api = api;
    request->version = version;
    arena_init(&request->arena, REQUEST_ARENA_BYTES);
    list_push_back(&harness->requests, &request->link);
    return request;
}

void harness_send(struct harness *harness, struct harness_request *request, const char *client,
                  const void *message)
{
    struct coordinator_context context = {
        .now_ms = harness->now_ms,
        .version = request->version,
        .client_id = view_text(client),
        .client_host = VIEW_LITERAL("/127.0.0.1"),
        .token = request,
        .arena = &request->arena,
    };
    coordinator_request(harness->machine, &context, request->api, message);
}

static void log_add(struct harness *harness, struct harness_record record)
{
    if (harness->log_count == harness->log_capacity) {
        harness->log_capacity = harness->log_capacity == 0 ? 64 : harness->log_capacity * 2;
        harness->log = memory_resize(harness->log, harness->log_capacity, sizeof(*harness->log));
    }
    harness->log[harness->log_count++] = record;
}

bool harness_commit_one(struct harness *harness)
{
    struct harness_batch *batch = pop_batch(harness);
    if (batch == NULL) {
        return false;
    }
    for (size_t i = 0; i < batch->count; i++) {
        log_add(harness, batch->records[i]);
    }
    uint64_t id = batch->id;
    batch_free(batch, false);
    coordinator_committed(harness->machine, id, harness->now_ms);
    return true;
}

bool harness_fail_one(struct harness *harness, enum kafka_error error)
{
    struct harness_batch *batch = pop_batch(harness);
    if (batch == NULL) {
        return false;
    }
    uint64_t id = batch->id;
    batch_free(batch, true);
    coordinator_failed(harness->machine, id, error, harness->now_ms);
    return true;
}

void harness_commit_all(struct harness *harness)
{
    while (harness_commit_one(harness)) {
    }
}

void harness_marker(struct harness *harness, int64_t producer_id, bool commit)
{
    log_add(harness, (struct harness_record){
                         .producer_id = producer_id, .is_marker = true, .commits = commit});
    coordinator_replay_marker(harness->machine, producer_id, commit);
}

void harness_advance(struct harness *harness, int64_t to_ms, bool committing,
                     void (*before)(struct harness *harness, int64_t at_ms))
{
    assert(to_ms >= harness->now_ms);
    for (;;) {
        int64_t next_ms = coordinator_next_deadline_ms(harness->machine);
        if (next_ms > to_ms) {
            break;
        }
        harness->now_ms = next_ms > harness->now_ms ? next_ms : harness->now_ms;
        if (before != NULL) {
            before(harness, harness->now_ms);
        }
        coordinator_tick(harness->machine, harness->now_ms);
        if (committing) {
            harness_commit_all(harness);
        }
    }
    harness->now_ms = to_ms;
}

static void replay_one(struct coordinator *machine, const struct harness_record *record)
{
    if (record->is_marker) {
        coordinator_replay_marker(machine, record->producer_id, record->commits);
    } else if (record->producer_id >= 0) {
        coordinator_replay_transactional(machine, record->producer_id, record->key, record->value);
    } else {
        coordinator_replay(machine, record->key, record->value);
    }
}

struct coordinator *harness_replay(const struct harness *harness)
{
    struct coordinator *machine = new_machine(harness);
    for (size_t i = 0; i < harness->log_count; i++) {
        replay_one(machine, &harness->log[i]);
    }
    return machine;
}

void harness_restart(struct harness *harness)
{
    harness_resign(harness);
    coordinator_free(harness->machine);
    harness->machine = harness_replay(harness);
    coordinator_loaded(harness->machine, harness->now_ms);
}

/* The next line of the text, without its end; null when there is none. */
static const char *next_line(const char **at, size_t *length)
{
    const char *line = *at;
    if (*line == '\0') {
        return NULL;
    }
    *length = strcspn(line, "\n");
    *at = line + *length + (line[*length] == '\n');
    return line;
}

/* Skips the member lines of a group. */
static void skip_members(const char **at)
{
    while (strncmp(*at, "  member ", 9) == 0) {
        size_t length;
        (void)next_line(at, &length);
    }
}

static bool is_at_rest(const char *line, size_t length)
{
    return strncmp(line, "group ", 6) != 0 || memmem(line, length, " generation ", 12) != NULL;
}

/* Whether the live lines are the durable ones, groups on the move left out. */
static bool lines_agree(const char *live, const char *durable)
{
    size_t live_length;
    size_t durable_length;
    for (;;) {
        const char *a = next_line(&live, &live_length);
        const char *b = next_line(&durable, &durable_length);
        if (a == NULL || b == NULL) {
            return a == b;
        }
        if (!is_at_rest(a, live_length)) {
            if (strncmp(b, "group ", 6) != 0) {
                return false;
            }
            skip_members(&durable);
        } else if (live_length != durable_length || memcmp(a, b, live_length) != 0) {
            return false;
        }
    }
}

/* With a zero behind it, outside the length. */
static const char *as_text(struct buffer *buffer)
{
    *buffer_extend(buffer, 1) = '\0';
    buffer->length--;
    return (const char *)buffer->data;
}

bool harness_is_same(const struct harness *harness, struct buffer *why)
{
    struct coordinator *replica = harness_replay(harness);
    struct buffer durable = {0};
    struct buffer replayed = {0};
    struct buffer live = {0};
    coordinator_dump_durable(harness->machine, &durable);
    coordinator_dump_durable(replica, &replayed);
    coordinator_dump_live(harness->machine, &live);
    bool same = view_equal(buffer_view(&durable), buffer_view(&replayed));
    bool lives = !coordinator_is_active(harness->machine) || !list_is_empty(&harness->batches) ||
                 lines_agree(as_text(&live), as_text(&durable));
    if (!same || !lives) {
        buffer_append(why, durable.data, durable.length);
        const char *head = same ? "--- live\n" : "--- replayed\n";
        buffer_append(why, head, strlen(head));
        struct buffer *other = same ? &live : &replayed;
        buffer_append(why, other->data, other->length);
    }
    buffer_free(&durable);
    buffer_free(&replayed);
    buffer_free(&live);
    coordinator_free(replica);
    return same && lives;
}
