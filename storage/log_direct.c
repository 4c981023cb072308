/* Up to the next page of the file, as many whole pages as there are, what is left. Whole pages are
 * written from where they lie when memory and position differ by whole sectors, as they do in what
 * other nodes send. Sectors in which one part ends and the next begins, and all that lies
 * otherwise, are copied together. A log is written at its end alone, so that a page that goes
 * directly is not in the page cache; were it there, the kernel would drop it. */
#include "storage/log_direct.h"

#include <assert.h>
#include <string.h>

enum {
    SECTOR_BYTES = 512,
    IN_PLACE_BYTES = 4 * 1024, /* less is copied */
    PIECE_PARTS = 250
};

struct parts {
    const struct iovec *next;
    size_t taken; /* bytes of the first that are taken */
    size_t left;  /* bytes, all together */
};

/* What is written at once: sectors in place and in between what was copied. */
struct piece {
    struct iovec parts[PIECE_PARTS];
    int part_count;
    uint8_t *pages;
    size_t copied;     /* bytes in `pages` */
    size_t part_start; /* of them, where the part begins that comes next */
};

static struct parts parts_of(const struct iovec *parts, int count)
{
    struct parts all = {.next = parts};
    for (int i = 0; i < count; i++) {
        all.left += parts[i].iov_len;
    }
    return all;
}

/* The rest of the first part; goes on to the next when it is taken whole. */
static const uint8_t *take(struct parts *parts, size_t length)
{
    const uint8_t *bytes = (const uint8_t *)parts->next->iov_base + parts->taken;
    assert(length <= parts->next->iov_len - parts->taken && length <= parts->left);
    parts->left -= length;
    parts->taken += length;
    if (parts->taken == parts->next->iov_len) {
        parts->next++;
        parts->taken = 0;
    }
    return bytes;
}

static void copy(struct piece *piece, struct parts *parts, size_t length)
{
    memcpy(piece->pages + piece->copied, take(parts, length), length);
    piece->copied += length;
}

static void end_part(struct piece *piece)
{
    if (piece->copied > piece->part_start) {
        piece->parts[piece->part_count++] = (struct iovec){
            piece->pages + piece->part_start, piece->copied - piece->part_start};
        piece->part_start = piece->copied;
    }
}

/* How much of the next `length` bytes of one part can go in place, behind the `*before` bytes up to
 * the next sector of the file. */
static size_t in_place(const struct piece *piece, const uint8_t *bytes, uint64_t position,
    size_t length, size_t *before)
{
    *before = (size_t)(-position % SECTOR_BYTES);
    bool lies_well = ((uintptr_t)bytes + *before) % SECTOR_BYTES == 0;
    if (!lies_well || length < *before + IN_PLACE_BYTES || piece->part_count + 3 > PIECE_PARTS) {
        return 0;
    }
    return (length - *before) / SECTOR_BYTES * SECTOR_BYTES;
}

/* Makes a piece of the next `length` bytes; these and `position` are whole sectors if any of it may
 * go in place. */
static void fill(struct piece *piece, struct parts *parts, uint64_t position, size_t length,
    bool may_be_in_place)
{
    uint64_t end = position + length;
    while (position < end) {
        const uint8_t *bytes = (const uint8_t *)parts->next->iov_base + parts->taken;
        size_t there = parts->next->iov_len - parts->taken;
        there = there < end - position ? there : (size_t)(end - position);
        size_t before = 0;
        size_t placed = may_be_in_place ? in_place(piece, bytes, position, there, &before) : 0;
        if (placed == 0) {
            copy(piece, parts, there);
            position += there;
            continue;
        }
        copy(piece, parts, before);
        end_part(piece);
        piece->parts[piece->part_count++] = (struct iovec){
            (void *)(uintptr_t)take(parts, placed), placed};
        position += before + placed;
    }
    end_part(piece);
}

/* How much the next piece has; `*direct`: it is made of whole pages. */
static size_t next_piece(uint64_t position, size_t left, bool *direct)
{
    size_t into = position % FILE_ALIGNMENT;
    size_t whole = left - left % FILE_ALIGNMENT;
    *direct = into == 0 && whole > 0;
    if (*direct) {
        return whole < LOG_DIRECT_BYTES ? whole : LOG_DIRECT_BYTES;
    }
    return into > 0 && FILE_ALIGNMENT - into < left ? FILE_ALIGNMENT - into : left;
}

enum status log_direct_write(const char *path, struct file *file, uint64_t position,
    const struct iovec *parts, int part_count, uint8_t *pages)
{
    struct file *direct_file;
    enum status status = file_open(path, FILE_WRITE | FILE_DIRECT, &direct_file);
    if (status != STATUS_OK) {
        return file_write(file, position, parts, part_count);
    }
    bool takes_sectors = file_direct_unit(direct_file) <= SECTOR_BYTES;
    struct parts left = parts_of(parts, part_count);
    while (status == STATUS_OK && left.left > 0) {
        bool direct;
        struct piece piece = {.pages = pages};
        size_t length = next_piece(position, left.left, &direct);
        fill(&piece, &left, position, length, direct && takes_sectors);
        status = file_write(direct ? direct_file : file, position, piece.parts, piece.part_count);
        position += length;
    }
    file_unref(direct_file);
    return status;
}
