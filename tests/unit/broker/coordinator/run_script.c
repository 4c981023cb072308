/* Runs coordinator scripts: commands with virtual time, and under each the narration it has to
 * give: answers, records and passing deadlines, as lines that begin with "> ". The first difference
 * is shown and fails the run; with --update the file is rewritten with what was narrated.
 *
 * Beside the requests (script_requests.c) a line may be: config key=value..., topic NAME
 * PARTITIONS, topic-deleted NAME, topic-forgotten NAME, wait MS, auto on|off (commit appended
 * batches at once), committed, failed ERROR, marker PID commit|abort, resign, restart (a replay of
 * the log leads), dump, same (dumps agree), # comment. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/coordinator/records.h"
#include "messages/coordinator_group.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"
#include "tests/unit/broker/coordinator/harness.h"
#include "tests/unit/broker/coordinator/script_requests.h"
#include "tests/unit/broker/coordinator/script_words.h"

enum { LINE_MAX_BYTES = 16 * 1024, VALUE_ARENA_BYTES = 1024 * 1024 };

struct script {
    struct harness harness;
    struct buffer narration; /* of the command in work */
    bool commits_at_once;
    int64_t deadline_ms; /* of the timers that run now; -1: none to be told */
    char *topic_names[HARNESS_TOPICS_MAX];
};

static void say(struct script *script, struct view text)
{
    if (script->deadline_ms >= 0) {
        char line[64];
        int length = snprintf(line, sizeof(line), "> at %lld\n", (long long)script->deadline_ms);
        buffer_append(&script->narration, line, (size_t)length);
        script->deadline_ms = -1;
    }
    buffer_append(&script->narration, "> ", 2);
    script_shorten(&script->narration, text);
    buffer_append(&script->narration, "\n", 1);
}

static void on_answer(struct harness *harness, struct harness_request *request,
                      const void *response)
{
    struct script *script = harness->user;
    const struct api *api = api_find(request->api);
    struct buffer text = {0};
    char head[96];
    int length = snprintf(head, sizeof(head), "%s: %s ", request->name, api->name);
    buffer_append(&text, head, (size_t)length);
    message_print_json(api->response, request->version, response, &text);
    say(script, buffer_view(&text));
    buffer_free(&text);
}

static void print_value(struct buffer *text, const struct coordinator_key *key, struct view value)
{
    struct arena arena;
    arena_init(&arena, VALUE_ARENA_BYTES);
    const struct message_type *type = key->kind == COORDINATOR_KEY_GROUP
                                          ? &group_metadata_value_type
                                          : &offset_commit_value_type;
    union {
        struct group_metadata_value group;
        struct offset_commit_value offset;
    } message;
    int16_t version = (int16_t)value.data[1];
    enum status status = message_decode_whole(type, version, view_slice(value, 2, value.length - 2),
                                              &arena, &message);
    assert(status == STATUS_OK);
    char head[16];
    int length = snprintf(head, sizeof(head), "v%d ", version);
    buffer_append(text, head, (size_t)length);
    message_print_json(type, version, &message, text);
    arena_free(&arena);
}

static void print_record(struct buffer *text, const struct coordinator_record *record)
{
    struct coordinator_key key = coordinator_read_key(record->key);
    char head[256];
    int length = key.kind == COORDINATOR_KEY_GROUP
                     ? snprintf(head, sizeof(head), "group %.*s = ", VIEW_PRINT(key.group))
                     : snprintf(head, sizeof(head), "offset %.*s %.*s %d = ", VIEW_PRINT(key.group),
                                VIEW_PRINT(key.topic), key.partition);
    buffer_append(text, head, (size_t)length);
    if (record->value.data == NULL) {
        buffer_append(text, "null", 4);
    } else {
        print_value(text, &key, record->value);
    }
}

static void on_append(struct harness *harness, const struct coordinator_batch *batch)
{
    struct script *script = harness->user;
    for (size_t i = 0; i < batch->count; i++) {
        struct buffer text = {0};
        const char *head = i > 0                     ? "     + "
                           : batch->producer_id >= 0 ? "append in transaction "
                                                     : "append ";
        buffer_append(&text, head, strlen(head));
        print_record(&text, &batch->records[i]);
        say(script, buffer_view(&text));
        buffer_free(&text);
    }
}

static void configure(struct script *script, const struct script_words *words)
{
    struct coordinator_config *config = &script->harness.config;
    config->min_session_timeout_ms = (int32_t)script_words_number(
        words, "min-session", config->min_session_timeout_ms);
    config->max_session_timeout_ms = (int32_t)script_words_number(
        words, "max-session", config->max_session_timeout_ms);
    config->initial_rebalance_delay_ms = (int32_t)script_words_number(
        words, "initial-delay", config->initial_rebalance_delay_ms);
    config->group_max_size =
        (int32_t)script_words_number(words, "max-size", config->group_max_size);
    config->offset_metadata_max_bytes = (int32_t)script_words_number(
        words, "metadata-max", config->offset_metadata_max_bytes);
    config->offsets_retention_ms =
        script_words_number(words, "retention", config->offsets_retention_ms);
    config->offsets_retention_check_interval_ms = script_words_number(
        words, "check-interval", config->offsets_retention_check_interval_ms);
    coordinator_configure(script->harness.machine, config);
}

static void say_lines(struct script *script, const struct buffer *text)
{
    size_t from = 0;
    for (size_t i = 0; i < text->length; i++) {
        if (text->data[i] == '\n') {
            say(script, (struct view){text->data + from, i - from});
            from = i + 1;
        }
    }
}

static void dump(struct script *script)
{
    struct buffer text = {0};
    coordinator_dump_durable(script->harness.machine, &text);
    say_lines(script, &text);
    buffer_free(&text);
}

static void same(struct script *script)
{
    struct buffer why = {0};
    if (harness_is_same(&script->harness, &why)) {
        say(script, VIEW_LITERAL("same"));
    } else {
        say(script, VIEW_LITERAL("different"));
        say_lines(script, &why);
    }
    buffer_free(&why);
}

static void before_tick(struct harness *harness, int64_t at_ms)
{
    struct script *script = harness->user;
    script->deadline_ms = at_ms;
}

static void add_topic(struct script *script, const struct script_words *words)
{
    size_t at = script->harness.topic_count;
    script->topic_names[at] = strdup(words->words[1]);
    harness_add_topic(&script->harness, script->topic_names[at], atoi(words->words[2]));
}

static void delete_topic(struct script *script, const struct script_words *words)
{
    struct harness *harness = &script->harness;
    for (size_t i = 0; i < harness->topic_count; i++) {
        if (view_is(harness->topics[i].name, words->words[1])) {
            coordinator_topic_deleted(harness->machine, harness->topics[i].name,
                                      harness->topics[i].id, harness->now_ms);
        }
    }
}

/* find_topic does not know it any more. */
static void forget_topic(struct script *script, const struct script_words *words)
{
    struct harness *harness = &script->harness;
    for (size_t i = 0; i < harness->topic_count; i++) {
        if (view_is(harness->topics[i].name, words->words[1])) {
            harness->topics[i] = (struct coordinator_topic){.name = VIEW_LITERAL("(forgotten)")};
        }
    }
}

/* Commands without a request. False when it is none of them. */
static bool run_plain(struct script *script, const struct script_words *words)
{
    const char *name = words->words[0];
    struct harness *harness = &script->harness;
    if (strcmp(name, "config") == 0) {
        configure(script, words);
    } else if (strcmp(name, "topic") == 0) {
        add_topic(script, words);
    } else if (strcmp(name, "wait") == 0) {
        harness_advance(harness, harness->now_ms + atoll(words->words[1]), script->commits_at_once,
                        before_tick);
    } else if (strcmp(name, "auto") == 0) {
        script->commits_at_once = strcmp(words->words[1], "on") == 0;
    } else if (strcmp(name, "committed") == 0) {
        assert(harness_commit_one(harness));
    } else if (strcmp(name, "failed") == 0) {
        assert(harness_fail_one(harness, (enum kafka_error)atoi(words->words[1])));
    } else if (strcmp(name, "marker") == 0) {
        harness_marker(harness, atoll(words->words[1]), strcmp(words->words[2], "commit") == 0);
    } else if (strcmp(name, "resign") == 0) {
        harness_resign(harness);
    } else if (strcmp(name, "restart") == 0) {
        harness_restart(harness);
    } else if (strcmp(name, "topic-forgotten") == 0) {
        forget_topic(script, words);
    } else if (strcmp(name, "topic-deleted") == 0) {
        delete_topic(script, words);
    } else if (strcmp(name, "dump") == 0) {
        dump(script);
    } else if (strcmp(name, "same") == 0) {
        same(script);
    } else {
        return false;
    }
    return true;
}

static void run_line(struct script *script, const char *line)
{
    char copy[LINE_MAX_BYTES];
    snprintf(copy, sizeof(copy), "%s", line);
    struct script_words words;
    script_words_split(&words, copy);
    script->narration.length = 0;
    if (words.count == 0) {
        return;
    }
    if (!run_plain(script, &words) && !script_send(&script->harness, &words)) {
        fprintf(stderr, "unknown command: %s\n", line);
        exit(2);
    }
    script->deadline_ms = -1;
    if (script->commits_at_once) {
        harness_commit_all(&script->harness);
    }
}

static void script_start(struct script *script)
{
    *script = (struct script){.commits_at_once = true, .deadline_ms = -1};
    harness_start(&script->harness);
    script->harness.user = script;
    script->harness.on_answer = on_answer;
    script->harness.on_append = on_append;
}

static void script_stop(struct script *script)
{
    script->narration.length = 0;
    harness_stop(&script->harness);
    buffer_free(&script->narration);
    for (size_t i = 0; i < HARNESS_TOPICS_MAX; i++) {
        free(script->topic_names[i]);
    }
}

static struct buffer read_file(const char *path)
{
    struct buffer text = {0};
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    char part[4096];
    for (size_t n = fread(part, 1, sizeof(part), file); n > 0;
         n = fread(part, 1, sizeof(part), file)) {
        buffer_append(&text, part, n);
    }
    fclose(file);
    buffer_append(&text, "", 1);
    return text;
}

/* Runs all commands of the text; the text as it should be. */
static struct buffer run_text(char *text)
{
    struct buffer result = {0};
    struct script script;
    script_start(&script);
    char *state = text;
    for (char *line = strsep(&state, "\n"); line != NULL; line = strsep(&state, "\n")) {
        if (strncmp(line, "> ", 2) == 0 || (state == NULL && *line == '\0')) {
            continue;
        }
        buffer_append(&result, line, strlen(line));
        buffer_append(&result, "\n", 1);
        if (*line != '#' && *line != '\0') {
            run_line(&script, line);
            buffer_append(&result, script.narration.data, script.narration.length);
        }
    }
    script_stop(&script);
    buffer_append(&result, "", 1);
    return result;
}

static int report_difference(const char *path, char *wanted, char *got)
{
    int number = 1;
    const char *command = "";
    char *a = strsep(&wanted, "\n");
    char *b = strsep(&got, "\n");
    while (a != NULL && b != NULL && strcmp(a, b) == 0) {
        command = *a != '>' ? a : command;
        number++;
        a = strsep(&wanted, "\n");
        b = strsep(&got, "\n");
    }
    if (a == NULL && b == NULL) {
        return 0;
    }
    printf("%s:%d: after: %s\n  wanted: %s\n  got:    %s\n", path, number, command,
           a == NULL ? "(end)" : a, b == NULL ? "(end)" : b);
    return 1;
}

static int run_file(const char *path, bool update)
{
    struct buffer wanted = read_file(path);
    struct buffer text = read_file(path);
    struct buffer got = run_text((char *)text.data);
    int failed = 0;
    if (update) {
        FILE *file = fopen(path, "w");
        assert(file != NULL);
        fwrite(got.data, 1, got.length - 1, file);
        fclose(file);
    } else {
        failed = report_difference(path, (char *)wanted.data, (char *)got.data);
    }
    buffer_free(&wanted);
    buffer_free(&text);
    buffer_free(&got);
    return failed;
}

int main(int argc, char **argv)
{
    bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    int failed = 0;
    for (int i = update ? 2 : 1; i < argc; i++) {
        failed |= run_file(argv[i], update);
    }
    return failed;
}
