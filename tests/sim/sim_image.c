/* Pages with reference counts, copied when they are written while they are shared. Of a page that
 * ends with zeros only a part is there: most frames of a journal are a small part of a page. */
#include "tests/sim/sim_image.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SMALLEST_BYTES = 256 };

struct sim_page {
    unsigned references;
    unsigned length;             /* zeros follow; a power of two */
    uint8_t bytes[];
};

static size_t pages_of(uint64_t size)
{
    return (size_t)((size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);
}

/* Puts a page, which may be null, in the place of another. */
static void set_page(struct sim_image *image, size_t number, struct sim_page *page)
{
    struct sim_page *before = image->pages[number];
    if (page != NULL) {
        page->references++;
    }
    image->pages[number] = page;
    if (before != NULL && --before->references == 0) {
        free(before);
    }
}

/* The page for writing its first bytes, and not less than it has; what it had does not matter when
 * it is written whole. */
static struct sim_page *own_page(struct sim_image *image, size_t number, size_t length, bool whole)
{
    struct sim_page *page = image->pages[number];
    if (page != NULL && page->references == 1 &&
        (whole ? page->length == length : page->length >= length)) {
        return page;
    }
    size_t kept = page == NULL || whole ? 0 : page->length;
    length = length < kept ? kept : length;
    struct sim_page *made = memory_new(sizeof *made + length);
    made->references = 0;
    made->length = (unsigned)length;
    if (kept > 0) {
        memcpy(made->bytes, page->bytes, kept);
    }
    if (!whole) {
        memset(made->bytes + kept, 0, length - kept);
    }
    set_page(image, number, made);
    return made;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* How much of a page has to be there for so many bytes at its beginning. */
static size_t length_for(size_t end)
{
    size_t length = SMALLEST_BYTES;
    while (length < end) {
        length *= 2;
    }
    return length;
}

/* The same for a whole page, which is not all zeros. */
static size_t length_of(const uint8_t *bytes)
{
    size_t length = SIM_PAGE_BYTES;
    while (length > SMALLEST_BYTES && is_zero(bytes + length / 2, length / 2)) {
        length /= 2;
    }
    return length;
}

void sim_image_resize(struct sim_image *image, uint64_t size)
{
    size_t count = pages_of(size);
    size_t before = pages_of(image->size);
    if (count > image->page_capacity) {
        size_t capacity = image->page_capacity * 2 > count ? image->page_capacity * 2 : count;
        image->pages = memory_resize(image->pages, capacity, sizeof *image->pages);
        image->page_capacity = capacity;
    }
    for (size_t i = before; i < count; i++) {
        image->pages[i] = NULL;
    }
    for (size_t i = count; i < before; i++) {
        set_page(image, i, NULL);
    }
    size_t used = (size_t)(size % SIM_PAGE_BYTES);
    const struct sim_page *last = count > 0 ? image->pages[count - 1] : NULL;
    if (size < image->size && used > 0 && last != NULL && last->length > used) {
        struct sim_page *page = own_page(image, count - 1, last->length, false);
        memset(page->bytes + used, 0, page->length - used);
    }
    image->size = size;
}

/* The part of the bytes that lies in one page. */
struct part {
    size_t page;
    size_t at;      /* in the page */
    size_t length;
};

static struct part part_of(uint64_t position, uint64_t length)
{
    size_t at = (size_t)(position % SIM_PAGE_BYTES);
    size_t room = SIM_PAGE_BYTES - at;
    return (struct part){(size_t)(position / SIM_PAGE_BYTES), at,
        length < room ? (size_t)length : room};
}

static void put_part(struct sim_image *image, const struct part *part, const uint8_t *bytes)
{
    bool whole = part->length == SIM_PAGE_BYTES;
    if ((whole || image->pages[part->page] == NULL) && is_zero(bytes, part->length)) {
        set_page(image, part->page, NULL);
        return;
    }
    size_t length = whole ? length_of(bytes) : length_for(part->at + part->length);
    struct sim_page *page = own_page(image, part->page, length, whole);
    memcpy(page->bytes + part->at, bytes, whole ? length : part->length);
}

static void grow(struct sim_image *image, uint64_t size)
{
    if (size > image->size) {
        sim_image_resize(image, size);
    }
}

void sim_image_put(struct sim_image *image, uint64_t position, const uint8_t *bytes,
    uint64_t length)
{
    grow(image, length > 0 ? position + length : 0);
    while (length > 0) {
        struct part part = part_of(position, length);
        put_part(image, &part, bytes);
        position += part.length;
        bytes += part.length;
        length -= part.length;
    }
}

void sim_image_put_both(struct sim_image *a, struct sim_image *b, uint64_t position,
    const uint8_t *bytes, uint64_t length)
{
    grow(a, length > 0 ? position + length : 0);
    grow(b, length > 0 ? position + length : 0);
    while (length > 0) {
        struct part part = part_of(position, length);
        if (a->pages[part.page] == b->pages[part.page] || part.length == SIM_PAGE_BYTES) {
            set_page(b, part.page, NULL);
            put_part(a, &part, bytes);
            set_page(b, part.page, a->pages[part.page]);
        } else {
            put_part(a, &part, bytes);
            put_part(b, &part, bytes);
        }
        position += part.length;
        bytes += part.length;
        length -= part.length;
    }
}

void sim_image_get(const struct sim_image *image, uint64_t position, uint8_t *bytes,
    uint64_t length)
{
    assert(position + length <= image->size);
    while (length > 0) {
        struct part part = part_of(position, length);
        const struct sim_page *page = image->pages[part.page];
        size_t there = page == NULL || page->length <= part.at ? 0 : page->length - part.at;
        there = there < part.length ? there : part.length;
        if (there > 0) {
            memcpy(bytes, page->bytes + part.at, there);
        }
        memset(bytes + there, 0, part.length - there);
        position += part.length;
        bytes += part.length;
        length -= part.length;
    }
}

void sim_image_copy(struct sim_image *to, const struct sim_image *from)
{
    sim_image_resize(to, from->size);
    for (size_t i = 0; i < pages_of(from->size); i++) {
        if (to->pages[i] != from->pages[i]) {
            set_page(to, i, from->pages[i]);
        }
    }
}

void sim_image_mix(struct sim_image *to, const struct sim_image *from, bool (*wants)(void))
{
    for (size_t i = 0; i < pages_of(to->size) && i < pages_of(from->size); i++) {
        if (to->pages[i] == from->pages[i]) {
            continue;
        }
        uint64_t end = (uint64_t)(i + 1) * SIM_PAGE_BYTES;
        end = end < to->size ? end : to->size;
        for (uint64_t at = (uint64_t)i * SIM_PAGE_BYTES; at < end; at += SIM_SECTOR_BYTES) {
            uint8_t sector[SIM_SECTOR_BYTES];
            uint64_t length = end - at < SIM_SECTOR_BYTES ? end - at : SIM_SECTOR_BYTES;
            if (at + length <= from->size && wants()) {
                sim_image_get(from, at, sector, length);
                sim_image_put(to, at, sector, length);
            }
        }
    }
}

void sim_image_free(struct sim_image *image)
{
    sim_image_resize(image, 0);
    free(image->pages);
    *image = (struct sim_image){0};
}
