/* Written whole and renamed, so that a crash leaves the old one. Texts of what is read live in the
 * arena. */
#include "broker/server/quorum_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/file_whole.h"

enum { FILE_MOST_BYTES = 64 * 1024, VOTER_BYTES = 320 };

static void path_of(const char *directory, char path[FILE_PATH_MAX])
{
    int length = snprintf(path, FILE_PATH_MAX, "%s/" QUORUM_FILE, directory);
    assert(length > 0 && length < FILE_PATH_MAX);
}

bool quorum_file_exists(const char *directory)
{
    char path[FILE_PATH_MAX];
    path_of(directory, path);
    return file_exists(path);
}

/* The rest of the line that begins so; the null view without one. */
static struct view line_after(struct view text, const char *start)
{
    size_t skip = strlen(start);
    assert(skip > 0);
    size_t at = 0;
    while (at < text.length) {
        struct view rest = view_slice(text, at, text.length - at);
        const uint8_t *end = memchr(rest.data, '\n', rest.length);
        size_t length = end == NULL ? rest.length : (size_t)(end - rest.data);
        if (length >= skip && memcmp(rest.data, start, skip) == 0) {
            return view_slice(rest, skip, length - skip);
        }
        at += length + 1;
    }
    return VIEW_NULL;
}

static enum status read_list(struct view text, struct arena *arena, struct quorum_list *list)
{
    assert(arena != NULL);
    list->count = 0;
    list->voters = arena_take(arena, QUORUM_VOTER_LIMIT, sizeof *list->voters);
    if (list->voters == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t at = 0; at < text.length && list->count < QUORUM_VOTER_LIMIT;) {
        struct view rest = view_slice(text, at, text.length - at);
        const uint8_t *end = memchr(rest.data, ',', rest.length);
        size_t length = end == NULL ? rest.length : (size_t)(end - rest.data);
        if (!quorum_voter_parse(view_slice(rest, 0, length), &list->voters[list->count++])) {
            return STATUS_CORRUPT;
        }
        at += length + 1;
    }
    return list->count > 0 ? STATUS_OK : STATUS_CORRUPT;
}

enum status quorum_file_read(const char *directory, struct arena *arena,
                             struct quorum_list *first, struct quorum_list *now)
{
    char path[FILE_PATH_MAX];
    struct buffer bytes = {0};
    assert(first != NULL && now != NULL);
    path_of(directory, path);
    enum status status = file_read_whole(path, FILE_MOST_BYTES, &bytes);
    if (status == STATUS_OK) {
        struct view text = arena_copy(arena, buffer_view(&bytes));
        status = read_list(line_after(text, "first="), arena, first);
        status = status == STATUS_OK ? read_list(line_after(text, "now="), arena, now) : status;
    }
    buffer_free(&bytes);
    return status;
}

static void add_list(struct buffer *bytes, const char *name, struct quorum_list list)
{
    assert(list.count > 0 && list.voters != NULL);
    buffer_append(bytes, name, strlen(name));
    for (int i = 0; i < list.count; i++) {
        char text[VOTER_BYTES];
        bool is_v6 = memchr(list.voters[i].host.data, ':', list.voters[i].host.length) != NULL;
        int length = snprintf(text, sizeof text, "%s%d@%s%.*s%s:%u", i > 0 ? "," : "",
                              list.voters[i].node_id, is_v6 ? "[" : "",
                              VIEW_PRINT(list.voters[i].host), is_v6 ? "]" : "",
                              list.voters[i].port);
        buffer_append(bytes, text, (size_t)length < sizeof text ? (size_t)length : 0);
    }
    buffer_append(bytes, "\n", 1);
}

static void add_lists(struct buffer *bytes, struct quorum_list first, struct quorum_list now)
{
    add_list(bytes, "first=", first);
    add_list(bytes, "now=", now);
}

enum status quorum_file_write(const char *directory, struct quorum_list first,
                              struct quorum_list now)
{
    char path[FILE_PATH_MAX];
    struct buffer bytes = {0};
    path_of(directory, path);
    add_lists(&bytes, first, now);
    enum status status = file_replace(path, buffer_view(&bytes), true);
    buffer_free(&bytes);
    return status;
}

struct quorum_write {
    struct log_job job;
    char path[FILE_PATH_MAX];
    struct buffer bytes;
};

/* On the log writer's thread. */
static enum status write_it(struct log_job *job)
{
    struct quorum_write *write = container_of(job, struct quorum_write, job);
    return file_replace(write->path, buffer_view(&write->bytes), true);
}

static void written(struct log_job *job, enum status status)
{
    struct quorum_write *write = container_of(job, struct quorum_write, job);
    if (status != STATUS_OK) {
        log_warn("cluster", "%s cannot be written: %s", write->path, status_text(status));
    }
    buffer_free(&write->bytes);
    free(write);
}

void quorum_file_submit(struct log_writer *writer, struct log_shard *shard, const char *directory,
                        struct quorum_list first, struct quorum_list now)
{
    struct quorum_write *write = memory_new_zero(1, sizeof *write);
    assert(writer != NULL && shard != NULL);
    path_of(directory, write->path);
    add_lists(&write->bytes, first, now);
    write->job = (struct log_job){.run = write_it, .done = written};
    log_writer_submit(writer, shard, &write->job);
}
