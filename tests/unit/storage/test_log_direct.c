/* Pieces of every size and place come out in the file one behind the other, on a simulated disk
 * that takes direct writes of whole sectors alone; and what lies well goes from where it lies. */
#include "storage/log_direct.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"
#include "tests/unit/runner.h"

enum { ARENA_BYTES = 4 * 1024 * 1024, SECTOR = 512 };

static uint8_t *arena;      /* what is written lies in it */
static size_t in_place;     /* bytes of it that went by themselves */

enum status __real_file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count);
enum status __wrap_file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count);

enum status __wrap_file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count)
{
    for (int i = 0; i < part_count; i++) {
        const uint8_t *base = parts[i].iov_base;
        in_place += base >= arena && base < arena + ARENA_BYTES ? parts[i].iov_len : 0;
    }
    return __real_file_write(file, position, parts, part_count);
}

static struct file *begin(void)
{
    struct file *file;
    sim_disk_reset(7);
    sim_clock_reset(7);
    in_place = 0;
    arena = aligned_alloc(FILE_ALIGNMENT, ARENA_BYTES);
    for (size_t i = 0; i < ARENA_BYTES; i++) {
        arena[i] = (uint8_t)(i * 7 + (i >> 9) * 13 + (i >> 17));
    }
    ck_assert_int_eq(file_open("/log", FILE_WRITE | FILE_CREATE, &file), STATUS_OK);
    return file;
}

static void end(struct file *file)
{
    file_unref(file);
    free(arena);
    sim_disk_reset(0);
}

/* Writes them and looks at what is in the file. */
static void write_and_check(struct file *file, uint64_t position, const struct iovec *parts,
    int count)
{
    uint8_t *pages = aligned_alloc(FILE_ALIGNMENT, LOG_DIRECT_BYTES);
    ck_assert_int_eq(log_direct_write("/log", file, position, parts, count, pages), STATUS_OK);
    for (int i = 0; i < count; i++) {
        uint8_t *read = malloc(parts[i].iov_len);
        size_t got;
        ck_assert_int_eq(file_read(file, position, read, parts[i].iov_len, &got), STATUS_OK);
        ck_assert_uint_eq(got, parts[i].iov_len);
        ck_assert(memcmp(read, parts[i].iov_base, got) == 0);
        position += got;
        free(read);
    }
    uint64_t size;
    ck_assert_int_eq(file_size(file, &size), STATUS_OK);
    ck_assert_uint_eq(size, position);
    free(pages);
}

/* Batches behind something else each, as in a frame that was made for this file's positions. */
static int lay_out(struct iovec *parts, uint64_t position, const size_t *lengths, int count,
    size_t off)
{
    size_t at = 40;
    for (int i = 0; i < count; i++) {
        at += (position - at) % SECTOR + off;
        parts[i] = (struct iovec){arena + at, lengths[i]};
        at += lengths[i] + 21;
        position += lengths[i];
    }
    ck_assert_uint_le(at, ARENA_BYTES);
    return count;
}

START_TEST(what_lies_well_is_not_copied)
{
    static const size_t lengths[] = {262143, 70000, 300001, 261684, 900000, 5};
    struct iovec parts[6];
    struct file *file = begin();
    size_t total = 0;
    int count = lay_out(parts, 0, lengths, 6, 0);
    for (int i = 0; i < count; i++) {
        total += lengths[i];
    }
    write_and_check(file, 0, parts, count);
    /* But for a sector or two where one ends, and the last page. */
    ck_assert_uint_ge(in_place, total - 6 * 2 * SECTOR - FILE_ALIGNMENT);
    end(file);
}
END_TEST

START_TEST(what_lies_otherwise_is_copied)
{
    static const size_t lengths[] = {262143, 70000};
    struct iovec parts[2];
    struct file *file = begin();
    int count = lay_out(parts, 0, lengths, 2, 16);
    write_and_check(file, 0, parts, count);
    ck_assert_uint_eq(in_place, 0);
    end(file);
}
END_TEST

START_TEST(any_mixture_comes_out_right)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct iovec parts[400];
        struct file *file = begin();
        uint64_t position = seed % 3 == 0 ? 0 : seed * 1237;
        uint64_t end_position = position;
        srand(seed);
        /* Up to where it begins there is something already. */
        struct iovec before = {arena, position};
        ck_assert_int_eq(file_write(file, 0, &before, 1), STATUS_OK);
        size_t at = 0;
        int count = 0;
        while (count < 400 && at + 150000 < ARENA_BYTES) {
            size_t length = 1 + (size_t)rand() % (rand() % 3 == 0 ? 100000 : 6000);
            at += (end_position - at) % SECTOR + (rand() % 4 == 0 ? (size_t)rand() % 600 : 0);
            parts[count++] = (struct iovec){arena + at, length};
            at += length + (rand() % 5 == 0 ? 0 : 30);
            end_position += length;
        }
        write_and_check(file, position, parts, count);
        ck_assert_uint_gt(in_place, 0);
        end(file);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_direct");
    TCase *tests = tcase_create("log_direct");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_lies_well_is_not_copied);
    tcase_add_test(tests, what_lies_otherwise_is_copied);
    tcase_add_test(tests, any_mixture_comes_out_right);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
