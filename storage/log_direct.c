/* Copies into aligned memory, piece by piece: up to the next page of the file, as many whole pages
 * as there are, what is left. A log is written at its end alone, so that a page that goes
 * directly is not in the page cache; were it there, the kernel would drop it. */
#include "storage/log_direct.h"

#include <assert.h>
#include <string.h>

struct parts {
    const struct iovec *next;
    size_t taken; /* bytes of the first that are taken */
    size_t left;  /* bytes, all together */
};

static struct parts parts_of(const struct iovec *parts, int count)
{
    struct parts all = {.next = parts};
    for (int i = 0; i < count; i++) {
        all.left += parts[i].iov_len;
    }
    return all;
}

static void take(struct parts *parts, uint8_t *to, size_t length)
{
    assert(length <= parts->left);
    parts->left -= length;
    while (length > 0) {
        size_t there = parts->next->iov_len - parts->taken;
        size_t part = there < length ? there : length;
        memcpy(to, (const uint8_t *)parts->next->iov_base + parts->taken, part);
        to += part;
        length -= part;
        parts->taken += part;
        if (parts->taken == parts->next->iov_len) {
            parts->next++;
            parts->taken = 0;
        }
    }
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
    struct parts left = parts_of(parts, part_count);
    while (status == STATUS_OK && left.left > 0) {
        bool direct;
        struct iovec piece = {pages, next_piece(position, left.left, &direct)};
        take(&left, pages, piece.iov_len);
        status = file_write(direct ? direct_file : file, position, &piece, 1);
        position += piece.iov_len;
    }
    file_unref(direct_file);
    return status;
}
