/* Two images that share pages hold what two arrays hold, whatever is done to them. */
#include <string.h>

#include "tests/sim/sim_image.h"
#include "tests/unit/runner.h"

enum { MOST_BYTES = 5 * SIM_PAGE_BYTES, RUNS = 20, STEPS = 2000 };

struct pair {
    struct sim_image image;
    uint8_t bytes[MOST_BYTES];
    uint64_t size;
};

static uint64_t state;

static uint64_t draw(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

/* Zeros where nothing is drawn: pages end with them, or are nothing else. */
static uint64_t draw_bytes(uint8_t *bytes, uint64_t most)
{
    uint64_t length = draw(4) == 0 ? SIM_PAGE_BYTES : 1 + draw(most);
    length = length < most ? length : most;
    memset(bytes, 0, length);
    for (uint64_t i = draw(2) == 0 ? 0 : draw(length); i > 0; i--) {
        bytes[i - 1] = (uint8_t)draw(3);
    }
    return length;
}

static void note_put(struct pair *pair, uint64_t position, const uint8_t *bytes, uint64_t length)
{
    memcpy(pair->bytes + position, bytes, length);
    pair->size = pair->size > position + length ? pair->size : position + length;
}

static void resize(struct pair *pair)
{
    uint64_t size = draw(MOST_BYTES);
    sim_image_resize(&pair->image, size);
    memset(pair->bytes + size, 0, MOST_BYTES - size);
    pair->size = size;
}

static void check(const struct pair *pair)
{
    uint8_t bytes[MOST_BYTES];
    ck_assert_uint_eq(pair->image.size, pair->size);
    uint64_t from = pair->size == 0 ? 0 : draw(pair->size);
    uint64_t length = pair->size == from ? 0 : draw(pair->size - from) + 1;
    sim_image_get(&pair->image, from, bytes, length);
    ck_assert_mem_eq(bytes, pair->bytes + from, length);
    sim_image_get(&pair->image, 0, bytes, pair->size);
    ck_assert_mem_eq(bytes, pair->bytes, pair->size);
}

static void change(struct pair *a, struct pair *b)
{
    uint8_t bytes[MOST_BYTES];
    uint64_t position = draw(2) == 0 ? draw(4) * SIM_PAGE_BYTES : draw(MOST_BYTES);
    uint64_t length = draw_bytes(bytes, MOST_BYTES - position);
    switch (draw(8)) {
    case 0:
        resize(a);
        break;
    case 1:
        sim_image_copy(&b->image, &a->image);
        memcpy(b->bytes, a->bytes, MOST_BYTES);
        b->size = a->size;
        break;
    case 2:
    case 3:
    case 4:
        sim_image_put_both(&a->image, &b->image, position, bytes, length);
        note_put(a, position, bytes, length);
        note_put(b, position, bytes, length);
        break;
    default:
        sim_image_put(&a->image, position, bytes, length);
        note_put(a, position, bytes, length);
    }
}

START_TEST(images_hold_what_was_put)
{
    static struct pair pairs[2];
    memset(pairs, 0, sizeof pairs);
    state = (uint64_t)_i;
    for (int step = 0; step < STEPS; step++) {
        size_t first = draw(2);
        change(&pairs[first], &pairs[1 - first]);
        check(&pairs[0]);
        check(&pairs[1]);
    }
    sim_image_free(&pairs[0].image);
    sim_image_free(&pairs[1].image);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_image");
    TCase *tests = tcase_create("sim_image");
    tcase_add_loop_test(tests, images_hold_what_was_put, 0, RUNS);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
