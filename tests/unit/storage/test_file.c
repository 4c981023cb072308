/* The kernel's files behind the seam: what is promised there holds on a real disk. */
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file_whole.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

enum { MANY_PARTS = 200 };

START_TEST(written_parts_are_read_back)
{
    const char *directory = support_directory();
    struct file *file;
    struct iovec parts[MANY_PARTS];
    uint8_t bytes[MANY_PARTS * 3];
    uint8_t back[sizeof bytes + 10];
    size_t got;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    size_t at = 0;
    for (size_t i = 0; i < MANY_PARTS; i++) { /* some are empty */
        size_t length = i % 4 == 0 ? 0 : i % 4;
        parts[i] = (struct iovec){bytes + at, length};
        at += length;
    }
    ck_assert_int_eq(file_open(support_path(directory, "f"), FILE_WRITE | FILE_CREATE, &file),
        STATUS_OK);
    ck_assert_int_eq(file_write(file, 100, parts, MANY_PARTS), STATUS_OK);
    ck_assert_int_eq(file_sync(file), STATUS_OK);
    ck_assert_int_eq(file_read(file, 100, back, sizeof back, &got), STATUS_OK);
    ck_assert_uint_eq(got, at);
    ck_assert_int_eq(memcmp(back, bytes, at), 0);
    ck_assert_int_eq(file_read(file, 0, back, 100, &got), STATUS_OK);
    ck_assert_uint_eq(got, 100);
    ck_assert_uint_eq(back[99], 0);
    ck_assert_int_eq(file_read(file, 5000, back, 10, &got), STATUS_OK);
    ck_assert_uint_eq(got, 0);
    ck_assert_int_eq(file_truncate(file, 101), STATUS_OK);
    ck_assert_uint_eq(support_size(support_path(directory, "f")), 101);
    ck_assert_int_ge(file_descriptor(file), 0);
    file_unref(file_ref(file));
    file_unref(file);
    support_clean(directory);
}
END_TEST

START_TEST(reserved_space_reads_as_zeroes)
{
    const char *directory = support_directory();
    struct file *file;
    uint8_t bytes[512];
    size_t got;
    memset(bytes, 1, sizeof bytes);
    ck_assert_int_eq(file_open(support_path(directory, "f"), FILE_WRITE | FILE_CREATE, &file),
        STATUS_OK);
    ck_assert_int_eq(file_reserve(file, 1 << 20), STATUS_OK);
    ck_assert_int_eq(file_read(file, (1 << 20) - 512, bytes, sizeof bytes, &got), STATUS_OK);
    ck_assert_uint_eq(got, 512);
    ck_assert_uint_eq(bytes[0] | bytes[511], 0);
    file_unref(file);
    support_clean(directory);
}
END_TEST

START_TEST(what_is_missing_is_an_answer)
{
    const char *directory = support_directory();
    struct file *file;
    struct buffer content = {0};
    ck_assert_int_eq(file_open(support_path(directory, "f"), FILE_READ, &file), STATUS_NOT_FOUND);
    ck_assert_ptr_null(file);
    ck_assert_int_eq(file_remove(support_path(directory, "f")), STATUS_NOT_FOUND);
    ck_assert_int_eq(file_rename(support_path(directory, "f"), support_path(directory, "g")),
        STATUS_NOT_FOUND);
    ck_assert_int_eq(file_read_whole(support_path(directory, "f"), 10, &content),
        STATUS_NOT_FOUND);
    ck_assert_int_eq(file_make_directory(support_path(directory, "a/b")), STATUS_NOT_FOUND);
    ck_assert_int_eq(file_remove_tree(support_path(directory, "a")), STATUS_OK);
    ck_assert(!file_exists(support_path(directory, "a")));
    ck_assert_int_eq(file_make_path(support_path(directory, "a/b/c")), STATUS_OK);
    ck_assert_int_eq(file_make_path(support_path(directory, "a/b/c")), STATUS_OK);
    ck_assert(file_exists(support_path(directory, "a/b/c")));
    support_clean(directory);
}
END_TEST

START_TEST(replacement_is_whole_and_limited_in_reading)
{
    const char *directory = support_directory();
    struct buffer content = {0};
    const char *path = support_path(directory, "f");
    ck_assert_int_eq(file_replace(path, VIEW_LITERAL("first, longer"), true), STATUS_OK);
    ck_assert_int_eq(file_replace(path, VIEW_LITERAL("second"), false), STATUS_OK);
    ck_assert_int_eq(file_read_whole(path, 6, &content), STATUS_OK);
    ck_assert(view_is(buffer_view(&content), "second"));
    ck_assert_int_eq(file_read_whole(path, 5, &content), STATUS_LIMIT);
    ck_assert_uint_eq(content.length, 6);
    ck_assert(!file_exists(support_path(directory, "f.tmp")));
    buffer_free(&content);
    support_clean(directory);
}
END_TEST

struct seen {
    int files;
    int directories;
};

static bool note(void *context, const char *name, bool is_directory)
{
    struct seen *seen = context;
    ck_assert_str_ne(name, ".");
    seen->directories += is_directory ? 1 : 0;
    seen->files += is_directory ? 0 : 1;
    return seen->files < 2;
}

START_TEST(listing_tells_files_from_directories_and_stops_when_told)
{
    const char *directory = support_directory();
    struct seen seen = {0};
    ck_assert_int_eq(file_make_directory(support_path(directory, "d")), STATUS_OK);
    ck_assert_int_eq(file_replace(support_path(directory, "f"), VIEW_EMPTY, false), STATUS_OK);
    ck_assert_int_eq(file_list(directory, note, &seen), STATUS_OK);
    ck_assert_int_eq(seen.files, 1);
    ck_assert_int_eq(seen.directories, 1);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        ck_assert_int_eq(file_replace(support_path(directory, name), VIEW_EMPTY, false), STATUS_OK);
    }
    seen = (struct seen){0};
    ck_assert_int_eq(file_list(directory, note, &seen), STATUS_OK);
    ck_assert_int_eq(seen.files, 2);
    support_clean(directory);
}
END_TEST

START_TEST(direct_durable_writes_work_or_say_so)
{
    const char *directory = support_directory();
    struct file *file;
    void *page = aligned_alloc(FILE_ALIGNMENT, FILE_ALIGNMENT);
    size_t got;
    ck_assert_ptr_nonnull(page);
    memset(page, 9, FILE_ALIGNMENT);
    enum status status = file_open(support_path(directory, "f"),
        FILE_WRITE | FILE_CREATE | FILE_DIRECT | FILE_DURABLE, &file);
    ck_assert(status == STATUS_OK || status == STATUS_UNSUPPORTED);
    if (status == STATUS_OK) {
        struct iovec part = {page, FILE_ALIGNMENT};
        ck_assert_int_eq(file_write(file, FILE_ALIGNMENT, &part, 1), STATUS_OK);
        memset(page, 0, FILE_ALIGNMENT);
        ck_assert_int_eq(file_read(file, FILE_ALIGNMENT, page, FILE_ALIGNMENT, &got), STATUS_OK);
        ck_assert_uint_eq(((uint8_t *)page)[4095], 9);
        file_unref(file);
    }
    free(page);
    support_clean(directory);
}
END_TEST

START_TEST(full_device_is_no_space)
{
    struct file *file;
    struct iovec part = {(void *)(uintptr_t)"x", 1};
    if (file_open("/dev/full", FILE_WRITE, &file) == STATUS_OK) {
        ck_assert_int_eq(file_write(file, 0, &part, 1), STATUS_NO_SPACE);
        file_unref(file);
    }
}
END_TEST

START_TEST(lock_is_held_until_the_last_reference_goes)
{
    const char *directory = support_directory();
    struct file *first;
    struct file *second;
    uint64_t free_bytes;
    uint64_t total_bytes;
    ck_assert_int_eq(file_lock(support_path(directory, "l"), &first), STATUS_OK);
    ck_assert_int_eq(file_lock(support_path(directory, "l"), &second), STATUS_BUSY);
    ck_assert_ptr_null(second);
    file_unref(first);
    ck_assert_int_eq(file_lock(support_path(directory, "l"), &second), STATUS_OK);
    file_unref(second);
    ck_assert_int_eq(file_space(directory, &free_bytes, &total_bytes), STATUS_OK);
    ck_assert_uint_le(free_bytes, total_bytes);
    ck_assert_uint_gt(total_bytes, 0);
    ck_assert_int_eq(file_sync_all(directory), STATUS_OK);
    support_clean(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *tests = tcase_create("file");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, written_parts_are_read_back);
    tcase_add_test(tests, reserved_space_reads_as_zeroes);
    tcase_add_test(tests, what_is_missing_is_an_answer);
    tcase_add_test(tests, replacement_is_whole_and_limited_in_reading);
    tcase_add_test(tests, listing_tells_files_from_directories_and_stops_when_told);
    tcase_add_test(tests, direct_durable_writes_work_or_say_so);
    tcase_add_test(tests, full_device_is_no_space);
    tcase_add_test(tests, lock_is_held_until_the_last_reference_goes);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
