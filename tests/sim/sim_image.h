/* An image of a simulated file: pages that images share until one of them is written.
 *
 * A file has two images that are mostly equal (what a reader sees and what is stored), and large
 * files of zeros: so a page is shared where both have the same, and absent where it is all zeros.
 * To copy an image costs a comparison for each page, whatever its size.
 */
#ifndef OTTLA_TESTS_SIM_SIM_IMAGE_H
#define OTTLA_TESTS_SIM_SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_SECTOR_BYTES = 512, SIM_PAGE_BYTES = 4096 };

struct sim_page;

/* All zero: an empty image. */
struct sim_image {
    struct sim_page **pages;     /* null: zeros; behind the size there are none */
    size_t page_capacity;
    uint64_t size;
};

/* Changes the size; new bytes are zeros. */
void sim_image_resize(struct sim_image *image, uint64_t size);

/* Bytes at a position; the image grows as needed. */
void sim_image_put(struct sim_image *image, uint64_t position, const uint8_t *bytes,
    uint64_t length);

/* The same bytes into two images, which share the pages that are equal then. */
void sim_image_put_both(struct sim_image *a, struct sim_image *b, uint64_t position,
    const uint8_t *bytes, uint64_t length);

/* Copies bytes out of it; all of them lie inside. */
void sim_image_get(const struct sim_image *image, uint64_t position, uint8_t *bytes,
    uint64_t length);

/* Makes `to` equal to `from`. */
void sim_image_copy(struct sim_image *to, const struct sim_image *from);

/* Takes over each sector of `from` that may differ, lies inside both and is wanted, as `wants` says
 * for one after the other. */
void sim_image_mix(struct sim_image *to, const struct sim_image *from, bool (*wants)(void));

/* Releases its pages; it is empty then. */
void sim_image_free(struct sim_image *image);

#endif
