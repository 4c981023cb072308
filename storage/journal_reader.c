/* A window that can hold the longest frame slides over the file. What does not look like a frame is
 * skipped page by page, so that a damaged frame of unknown length does not hide what follows. */
#include "storage/journal_reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "io/file_whole.h"
#include "storage/journal_ring.h"

/* A window grows up to what a processor's cache holds, and beyond that only for a frame that is
 * larger. */
enum { WINDOW_BYTES_MIN = 16 * 1024, WINDOW_BYTES_MOST = 256 * 1024 };

_Static_assert((int)WINDOW_BYTES_MOST <= (int)JOURNAL_FRAME_MAX, "the memory is for one frame");

enum status journal_reader_open(struct journal_reader *reader, const char *directory,
    uint32_t number, uint64_t size_bytes)
{
    char name[JOURNAL_NAME_MAX];
    char path[FILE_PATH_MAX];
    journal_ring_name(number, name);
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    assert(length > 0 && (size_t)length < sizeof path);
    *reader = (struct journal_reader){.size_bytes = size_bytes,
        .window_bytes = WINDOW_BYTES_MIN};
    enum status status = file_open(path, FILE_READ, &reader->file);
    if (status == STATUS_OK) {
        reader->window = memory_new(JOURNAL_FRAME_MAX);
    }
    return status;
}

void journal_reader_close(struct journal_reader *reader)
{
    file_unref(reader->file);
    free(reader->window);
    reader->file = NULL;
    reader->window = NULL;
}

static bool window_holds(const struct journal_reader *reader, uint64_t position, size_t length)
{
    return position >= reader->window_position
        && position + length <= reader->window_position + reader->window_length;
}

/* Reads on from the position, at least `length` bytes if there are as many. */
static void load_window(struct journal_reader *reader, uint64_t position, size_t length)
{
    uint64_t left = reader->size_bytes - position;
    size_t wanted = reader->window_bytes < length ? length : reader->window_bytes;
    wanted = left < wanted ? (size_t)left : wanted;
    assert(wanted <= JOURNAL_FRAME_MAX);
    reader->window_position = position;
    reader->status = file_read(reader->file, position, reader->window, wanted,
        &reader->window_length);
    if (reader->status != STATUS_OK) {
        reader->window_length = 0;
    }
    if (reader->window_bytes < WINDOW_BYTES_MOST) {
        reader->window_bytes *= 2;
    }
}

struct view journal_reader_view(struct journal_reader *reader, uint64_t position, size_t length)
{
    assert(length <= JOURNAL_FRAME_MAX);
    if (reader->status != STATUS_OK || position >= reader->size_bytes) {
        return VIEW_EMPTY;
    }
    uint64_t left = reader->size_bytes - position;
    length = length < left ? length : (size_t)left;
    if (!window_holds(reader, position, length)) {
        load_window(reader, position, length);
        length = length < reader->window_length ? length : reader->window_length;
    }
    return (struct view){reader->window + (position - reader->window_position), length};
}

uint64_t journal_found_end(const struct journal_found *found)
{
    return found->position + journal_page_align(found->header.length);
}

bool journal_reader_find(struct journal_reader *reader, uint64_t position, uint64_t generation,
    uint64_t after, struct journal_found *found)
{
    assert(position % JOURNAL_PAGE == 0);
    for (; position + JOURNAL_PAGE <= reader->size_bytes; position += JOURNAL_PAGE) {
        struct view page = journal_reader_view(reader, position, JOURNAL_PAGE);
        if (page.length < JOURNAL_PAGE) {
            return false;
        }
        if (!journal_frame_load(page.data, &found->header)) {
            continue;
        }
        if (found->header.version != JOURNAL_FORMAT_VERSION) {
            reader->status = STATUS_UNSUPPORTED;
            return false;
        }
        found->position = position;
        if ((generation == 0 || found->header.generation == generation)
            && found->header.sequence > after && journal_found_end(found) <= reader->size_bytes) {
            return true;
        }
    }
    return false;
}
