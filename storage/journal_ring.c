/* Files NNNNNNNN.journal, opened for direct durable writes where the file system takes them, else
 * for durable writes through the page cache. A file's last page says whether it was filled once;
 * only then it never needs filling again. Every failed write is handed up as it is; the journal
 * then stops. A failed growth is remembered and tried again when the journal asks. */
#include "storage/journal_ring.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "io/file_whole.h"
#include "storage/journal_format.h"

enum {
    FILL_STEP_BYTES = 64 * 1024, /* a frame that comes meanwhile waits for one step */
    LARGE_FRAME_BYTES = 128 * 1024,
    FILL_AHEAD_BYTES = 4 * 1024 * 1024,
    DEFAULT_FILE_BYTES = 16 * 1024 * 1024,
    DEFAULT_FILES = 32,
    FILES_MIN = 3
};

void journal_ring_name(uint32_t number, char name[JOURNAL_NAME_MAX])
{
    int length = snprintf(name, JOURNAL_NAME_MAX, "%08u.journal", (unsigned)number);
    assert(length > 0 && length < JOURNAL_NAME_MAX);
}

static void path_of(const struct journal_ring *ring, uint32_t number, char path[FILE_PATH_MAX])
{
    char name[JOURNAL_NAME_MAX];
    journal_ring_name(number, name);
    int length = snprintf(path, FILE_PATH_MAX, "%s/%s", ring->directory, name);
    assert(length > 0 && length < FILE_PATH_MAX);
}

/* Opens a file of the ring past the page cache where the file system takes that. */
static enum status open_direct(struct journal_ring *ring, uint32_t number, unsigned flags,
    struct file **file)
{
    char path[FILE_PATH_MAX];
    path_of(ring, number, path);
    enum status status = STATUS_UNSUPPORTED;
    if (ring->direct) {
        status = file_open(path, flags | FILE_WRITE | FILE_DIRECT, file);
    }
    if (status == STATUS_UNSUPPORTED) {
        ring->direct = false;
        status = file_open(path, flags | FILE_WRITE, file);
    }
    return status;
}

/* Opens a file of the ring the way frames are written. */
static enum status open_for_frames(struct journal_ring *ring, uint32_t number, unsigned more,
    struct file **file)
{
    if (ring->flush == JOURNAL_FLUSH_INTERVAL || planted(PLANT_JOURNAL_NOT_SYNCED)) {
        char path[FILE_PATH_MAX];
        path_of(ring, number, path);
        return file_open(path, FILE_WRITE | more, file);
    }
    return open_direct(ring, number, more | FILE_DURABLE, file);
}

/* Pages of zeroes, aligned for direct writes. */
static const uint8_t *zeroes(struct journal_ring *ring)
{
    if (ring->zeroes == NULL) {
        ring->zeroes = aligned_alloc(JOURNAL_PAGE, FILL_STEP_BYTES);
        assert(ring->zeroes != NULL);
        memset(ring->zeroes, 0, FILL_STEP_BYTES);
    }
    return ring->zeroes;
}

static enum status write_bytes(struct file *file, uint64_t position, const uint8_t *bytes,
    size_t length)
{
    assert(position % JOURNAL_PAGE == 0 && length % JOURNAL_PAGE == 0);
    assert((uintptr_t)bytes % JOURNAL_PAGE == 0);
    struct iovec part = {(void *)(uintptr_t)bytes, length};
    return file_write(file, position, &part, 1);
}

/* Whether the last page says that the file was written whole. */
static enum status read_filled(struct journal_file *file, bool *filled)
{
    uint8_t *page = aligned_alloc(JOURNAL_PAGE, JOURNAL_PAGE);
    assert(page != NULL);
    size_t got = 0;
    enum status status = file_read(file->file, file->size_bytes, page, JOURNAL_PAGE, &got);
    uint32_t magic = 0;
    if (got == JOURNAL_PAGE) {
        memcpy(&magic, page, sizeof magic);
    }
    *filled = magic == JOURNAL_FILLED_MAGIC;
    free(page);
    return status;
}

static enum status write_filled(struct journal_file *file)
{
    uint8_t *page = aligned_alloc(JOURNAL_PAGE, JOURNAL_PAGE);
    assert(page != NULL);
    memset(page, 0, JOURNAL_PAGE);
    uint32_t magic = JOURNAL_FILLED_MAGIC;
    memcpy(page, &magic, sizeof magic);
    enum status status = write_bytes(file->file, file->size_bytes, page, JOURNAL_PAGE);
    free(page);
    return status;
}

/* Adds the slot for a number; numbers in between that are not there stay without a file. */
static struct journal_file *add_slot(struct journal_ring *ring, uint32_t number)
{
    assert(number < JOURNAL_RING_FILES_MAX);
    if (number >= ring->file_count) {
        ring->files = memory_resize(ring->files, number + 1, sizeof *ring->files);
        for (uint32_t i = ring->file_count; i <= number; i++) {
            ring->files[i] = (struct journal_file){.number = i};
        }
        ring->file_count = number + 1;
    }
    return &ring->files[number];
}

static bool note_name(void *context, const char *name, bool is_directory)
{
    struct journal_ring *ring = context;
    unsigned number = 0;
    char tail[16] = "";
    char exact[JOURNAL_NAME_MAX];
    if (is_directory || sscanf(name, "%8u.%15s", &number, tail) != 2
        || number >= JOURNAL_RING_FILES_MAX) {
        return true;
    }
    journal_ring_name(number, exact);
    if (strcmp(exact, name) == 0) {
        add_slot(ring, number)->generation = UINT64_MAX; /* there is a file; opened below */
    }
    return true;
}

/* Makes file `number`, empty or in place of one that a crash left too short. */
static enum status make_file(struct journal_ring *ring, uint32_t number)
{
    struct file *file;
    enum status status = open_for_frames(ring, number, FILE_CREATE | FILE_EMPTY, &file);
    if (status != STATUS_OK) {
        return status;
    }
    status = file_reserve(file, ring->file_bytes);
    if (status == STATUS_OK) {
        status = file_sync(file);
    }
    if (status == STATUS_OK) {
        status = file_sync_directory(ring->directory);
    }
    if (status != STATUS_OK) {
        char path[FILE_PATH_MAX];
        path_of(ring, number, path);
        file_unref(file);
        enum status removed = file_remove(path);
        (void)removed; /* what is left is too short, and made again at the next open */
        return status;
    }
    struct journal_file *slot = add_slot(ring, number);
    file_unref(slot->file);
    file_unref(slot->filler);
    *slot = (struct journal_file){.file = file, .number = number,
        .size_bytes = ring->file_bytes - JOURNAL_PAGE};
    return STATUS_OK;
}

/* A crash came while it was made. Without space the ring does without it. */
static enum status make_again(struct journal_ring *ring, struct journal_file *slot)
{
    enum status status = make_file(ring, slot->number);
    if (status == STATUS_NO_SPACE) {
        file_unref(slot->file);
        slot->file = NULL;
        status = STATUS_OK;
    }
    return status;
}

/* Frames say how many files there are, and one of those that is not there is a loss. */
static void forget_last_without_file(struct journal_ring *ring)
{
    while (ring->file_count > 0 && ring->files[ring->file_count - 1].file == NULL) {
        ring->file_count--;
    }
}

static enum status open_existing(struct journal_ring *ring, struct journal_file *slot)
{
    slot->generation = 0;
    enum status status = open_for_frames(ring, slot->number, 0, &slot->file);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t size = 0;
    status = file_size(slot->file, &size);
    if (status != STATUS_OK) {
        return status;
    }
    size -= size % JOURNAL_PAGE;
    if (size < 2 * JOURNAL_PAGE) {
        return make_again(ring, slot);
    }
    slot->size_bytes = size - JOURNAL_PAGE;
    bool filled = false;
    status = read_filled(slot, &filled);
    slot->filled_bytes = filled ? slot->size_bytes : 0;
    return status;
}

static enum status open_files(struct journal_ring *ring)
{
    enum status status = file_list(ring->directory, note_name, ring);
    for (uint32_t i = 0; i < ring->file_count && status == STATUS_OK; i++) {
        if (ring->files[i].generation == UINT64_MAX) {
            status = open_existing(ring, &ring->files[i]);
        }
    }
    if (status == STATUS_OK && ring->file_count == 0) {
        ring->is_new = true;
        status = make_file(ring, 0);
    } else if (status == STATUS_OK) {
        forget_last_without_file(ring);
        status = ring->file_count == 0 ? STATUS_NO_SPACE : STATUS_OK;
    }
    return status;
}

enum status journal_ring_open(struct journal_ring *ring, const struct journal_settings *settings)
{
    *ring = (struct journal_ring){.flush = settings->flush, .direct = true};
    ring->file_bytes = settings->file_bytes == 0 ? DEFAULT_FILE_BYTES : settings->file_bytes;
    assert(ring->file_bytes % JOURNAL_PAGE == 0 && ring->file_bytes >= 16 * JOURNAL_PAGE);
    uint64_t files = settings->size_bytes == 0 ? DEFAULT_FILES
                                               : settings->size_bytes / ring->file_bytes;
    files = files < FILES_MIN ? FILES_MIN : files;
    ring->file_limit = files > JOURNAL_RING_FILES_MAX ? JOURNAL_RING_FILES_MAX : (uint32_t)files;
    int length = snprintf(ring->directory, sizeof ring->directory, "%s", settings->directory);
    assert(length > 0 && (size_t)length < sizeof ring->directory);
    enum status status = STATUS_OK;
    if (!file_exists(ring->directory)) {
        status = file_make_directory(ring->directory);
        if (status == STATUS_OK) {
            status = file_sync_parent(ring->directory);
        }
    }
    if (status == STATUS_OK) {
        status = open_files(ring);
    }
    if (status != STATUS_OK) {
        journal_ring_close(ring);
    }
    return status;
}

void journal_ring_close(struct journal_ring *ring)
{
    for (uint32_t i = 0; i < ring->file_count; i++) {
        file_unref(ring->files[i].file);
        file_unref(ring->files[i].filler);
    }
    free(ring->files);
    free(ring->zeroes);
    ring->files = NULL;
    ring->zeroes = NULL;
    ring->file_count = 0;
}

struct journal_file *journal_ring_current(struct journal_ring *ring)
{
    assert(ring->current < ring->file_count);
    return &ring->files[ring->current];
}

struct journal_file *journal_ring_find(struct journal_ring *ring, uint64_t generation)
{
    assert(generation > 0);
    for (uint32_t i = 0; i < ring->file_count; i++) {
        if (ring->files[i].file != NULL && ring->files[i].generation == generation) {
            return &ring->files[i];
        }
    }
    return NULL;
}

uint64_t journal_ring_room(struct journal_ring *ring)
{
    struct journal_file *file = journal_ring_current(ring);
    return ring->position >= file->size_bytes ? 0 : file->size_bytes - ring->position;
}

/* Whether no durable frame calls the file needed. */
static bool is_free(const struct journal_ring *ring, uint32_t number)
{
    const struct journal_file *file = &ring->files[number];
    return file->file != NULL && file->size_bytes > 0 && number != ring->current &&
           file->generation < ring->durable_oldest;
}

/* A free file; filled ones first, null when there is none. */
static struct journal_file *free_file(struct journal_ring *ring)
{
    struct journal_file *best = NULL;
    for (uint32_t i = 0; i < ring->file_count; i++) {
        struct journal_file *file = &ring->files[i];
        if (is_free(ring, i) && (best == NULL || file->filled_bytes > best->filled_bytes)) {
            best = file;
        }
    }
    return best;
}

uint32_t journal_ring_free_count(const struct journal_ring *ring)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ring->file_count; i++) {
        count += is_free(ring, i);
    }
    return count;
}

/* The first number without a file. */
static uint32_t missing_number(const struct journal_ring *ring)
{
    uint32_t number = 0;
    while (number < ring->file_count && ring->files[number].file != NULL) {
        number++;
    }
    return number;
}

bool journal_ring_may_grow(struct journal_ring *ring)
{
    return missing_number(ring) < ring->file_limit;
}

enum status journal_ring_grow(struct journal_ring *ring)
{
    if (!journal_ring_may_grow(ring)) {
        return STATUS_LIMIT;
    }
    enum status status = make_file(ring, missing_number(ring));
    ring->growth_failed = status != STATUS_OK;
    return status;
}

void journal_ring_switch(struct journal_ring *ring)
{
    struct journal_file *next = free_file(ring);
    assert(next != NULL);
    ring->generation++;
    next->generation = ring->generation;
    ring->current = next->number;
    ring->position = 0;
}

/* All of it was written: makes that durable, then says so in the last page. */
static enum status end_filling(struct journal_file *file)
{
    assert(file->filled_bytes == file->size_bytes);
    enum status status = STATUS_OK;
    if (file->filler != NULL) {
        status = file_sync(file->filler);
        file_unref(file->filler);
        file->filler = NULL;
    }
    return status == STATUS_OK ? write_filled(file) : status;
}

/* Writes one step of zeroes behind what is filled, and the last page at the end. The zeroes need
 * not be durable before that, so a step is a plain write: with a sync for each the next frame
 * would wait several times as long. */
static enum status fill_step(struct journal_ring *ring, struct journal_file *file)
{
    assert(file->filled_bytes < file->size_bytes);
    enum status status = STATUS_OK;
    if (file->filler == NULL) {
        status = open_direct(ring, file->number, 0, &file->filler);
    }
    uint64_t left = file->size_bytes - file->filled_bytes;
    size_t step = left < FILL_STEP_BYTES ? (size_t)left : FILL_STEP_BYTES;
    if (status == STATUS_OK) {
        status = write_bytes(file->filler, file->filled_bytes, zeroes(ring), step);
    }
    if (status != STATUS_OK) {
        return status;
    }
    file->filled_bytes += step;
    return file->filled_bytes == file->size_bytes ? end_filling(file) : STATUS_OK;
}

/* How far the next file is to be filled by now: it is begun in the middle of the current one and
 * ready at its end. In one go it would keep the disk, and all nodes that share one, from frames. */
static uint64_t due_bytes(struct journal_ring *ring, const struct journal_file *next)
{
    assert(next->number != ring->current);
    uint64_t half = journal_ring_current(ring)->size_bytes / 2;
    uint64_t behind_half = ring->position > half ? ring->position - half : 0;
    uint64_t due = behind_half == 0 ? 0 : behind_half * 2 + FILL_STEP_BYTES;
    return due < next->size_bytes ? due : next->size_bytes;
}

enum status journal_ring_fill(struct journal_ring *ring, bool *worked)
{
    *worked = false;
    if (ring->flush == JOURNAL_FLUSH_INTERVAL) {
        return STATUS_OK; /* the page cache does not care */
    }
    struct journal_file *file = journal_ring_current(ring);
    uint64_t due = ring->position + FILL_AHEAD_BYTES;
    due = due < file->size_bytes ? due : file->size_bytes;
    if (file->filled_bytes >= due) {
        file = free_file(ring);
        due = file == NULL ? 0 : due_bytes(ring, file);
    }
    if (file == NULL || file->filled_bytes >= due) {
        return STATUS_OK;
    }
    *worked = true;
    return fill_step(ring, file);
}

/* The ring's files are all in one file system. */
bool journal_ring_takes_sectors(struct journal_ring *ring)
{
    return file_direct_unit(journal_ring_current(ring)->file) <= JOURNAL_SECTOR;
}

enum status journal_ring_write(struct journal_ring *ring, const struct iovec *parts, int part_count,
    size_t padded_bytes)
{
    struct journal_file *file = journal_ring_current(ring);
    assert(file->generation == ring->generation && ring->generation > 0);
    assert(padded_bytes > 0 && padded_bytes <= journal_ring_room(ring));
    assert(padded_bytes % JOURNAL_PAGE == 0 && ring->position % JOURNAL_PAGE == 0);
    uint64_t end = ring->position + padded_bytes;
    /* Small frames pay for unwritten space each; large ones fill it themselves. */
    while (ring->flush == JOURNAL_FLUSH_DURABLE && file->filled_bytes < end
        && padded_bytes < LARGE_FRAME_BYTES) {
        enum status filled = fill_step(ring, file);
        if (filled != STATUS_OK) {
            return filled;
        }
    }
    enum status status = file_write(file->file, ring->position, parts, part_count);
    if (status == STATUS_OK) {
        ring->position = end;
        file->filled_bytes = file->filled_bytes < end ? end : file->filled_bytes;
        assert(file->filled_bytes <= file->size_bytes);
    }
    if (status == STATUS_OK && file->filler != NULL && file->filled_bytes == file->size_bytes) {
        status = end_filling(file); /* by frames */
    }
    return status;
}

enum status journal_ring_sync(struct journal_ring *ring)
{
    return file_sync(journal_ring_current(ring)->file);
}

enum status journal_ring_erase(struct journal_ring *ring, struct journal_file *file,
    uint64_t position)
{
    assert(position + JOURNAL_PAGE <= file->size_bytes);
    enum status status = write_bytes(file->file, position, zeroes(ring), JOURNAL_PAGE);
    if (status == STATUS_OK && ring->flush == JOURNAL_FLUSH_INTERVAL) {
        status = file_sync(file->file);
    }
    return status;
}
