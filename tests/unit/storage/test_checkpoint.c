/* A checkpoint comes back as it was, or not at all. */
#include "storage/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "io/file.h"
#include "io/file_whole.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

static struct checkpoint_partition partitions[] = {
    {{{1}}, 0, 123456789012, 5}, {{{1}}, 7, 0, 0}, {{{2}}, 0, INT64_MAX, 1}};

static void write_it(const char *directory)
{
    struct checkpoint checkpoint = {.group = 42, .index = (uint64_t)1 << 60, .term = 3,
        .partitions = partitions, .partition_count = 3};
    ck_assert_int_eq(checkpoint_write(support_path(directory, "groups"), &checkpoint), STATUS_OK);
}

START_TEST(everything_comes_back)
{
    const char *directory = support_directory();
    struct checkpoint read;
    write_it(directory);
    write_it(directory);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 42, &read), STATUS_OK);
    ck_assert_uint_eq(read.index, (uint64_t)1 << 60);
    ck_assert_uint_eq(read.term, 3);
    ck_assert_uint_eq(read.partition_count, 3);
    const struct checkpoint_partition *found = checkpoint_find(&read, partitions[0].topic_id, 0);
    ck_assert_int_eq(found->next_offset, 123456789012);
    ck_assert_int_eq(found->log_start, 5);
    ck_assert_int_eq(checkpoint_find(&read, partitions[2].topic_id, 0)->next_offset, INT64_MAX);
    ck_assert_ptr_null(checkpoint_find(&read, partitions[2].topic_id, 7));
    checkpoint_free(&read);
    ck_assert_int_eq(checkpoint_remove(support_path(directory, "groups"), 42), STATUS_OK);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 42, &read),
        STATUS_NOT_FOUND);
    ck_assert_int_eq(checkpoint_remove(support_path(directory, "groups"), 42), STATUS_OK);
    support_clean(directory);
}
END_TEST

START_TEST(any_flipped_bit_is_noticed)
{
    const char *directory = support_directory();
    char path[256];
    snprintf(path, sizeof path, "%s/groups/42/checkpoint", directory);
    write_it(directory);
    for (uint64_t i = 0; i < support_size(path); i++) {
        struct checkpoint read;
        uint8_t mask = (uint8_t)(1 << _i);
        support_flip_bits(path, i, mask);
        enum status status = checkpoint_read(support_path(directory, "groups"), 42, &read);
        /* White space may turn into other white space. */
        ck_assert_msg(status == STATUS_CORRUPT || status == STATUS_UNSUPPORTED
            || (status == STATUS_OK && read.index == (uint64_t)1 << 60), "byte %d: %s", (int)i,
            status_text(status));
        ck_assert(status == STATUS_OK || read.partitions == NULL);
        ck_assert(status != STATUS_OK || read.partitions[0].next_offset == 123456789012);
        checkpoint_free(&read);
        support_flip_bits(path, i, mask);
    }
    support_clean(directory);
}
END_TEST

START_TEST(another_groups_or_versions_file_is_not_taken)
{
    const char *directory = support_directory();
    struct checkpoint read;
    write_it(directory);
    ck_assert_int_eq(file_rename(support_path(directory, "groups/42"),
        support_path(directory, "groups/43")), STATUS_OK);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 43, &read), STATUS_CORRUPT);
    ck_assert_int_eq(file_replace(support_path(directory, "groups/43/checkpoint"),
        VIEW_LITERAL("{\"version\": 2, \"new\": true}"), true), STATUS_OK);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 43, &read),
        STATUS_UNSUPPORTED);
    ck_assert_int_eq(file_replace(support_path(directory, "groups/43/checkpoint"), VIEW_EMPTY,
        true), STATUS_OK);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 43, &read), STATUS_CORRUPT);
    support_clean(directory);
}
END_TEST

START_TEST(members_come_back_when_there_are_some)
{
    const char *directory = support_directory();
    struct checkpoint_member members[] = {{3, 1}, {1, 4}};
    struct checkpoint written = {.group = 42, .index = 9, .term = 3, .members = members,
        .member_count = 2, .members_index = 7};
    struct checkpoint read;
    ck_assert_int_eq(checkpoint_write(support_path(directory, "groups"), &written), STATUS_OK);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 42, &read), STATUS_OK);
    ck_assert_uint_eq(read.member_count, 2);
    ck_assert_uint_eq(read.members_index, 7);
    ck_assert_int_eq(read.members[0].id, 3);
    ck_assert_int_eq(read.members[1].id, 1);
    ck_assert_uint_eq(read.members[1].flags, 4);
    checkpoint_free(&read);
    write_it(directory);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 42, &read), STATUS_OK);
    ck_assert_uint_eq(read.member_count, 0);
    checkpoint_free(&read);
    written.members_index = 10; /* beyond what it vouches for */
    ck_assert_int_eq(checkpoint_write(support_path(directory, "groups"), &written), STATUS_OK);
    ck_assert_int_eq(checkpoint_read(support_path(directory, "groups"), 42, &read),
        STATUS_CORRUPT);
    support_clean(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("checkpoint");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, everything_comes_back);
    tcase_add_loop_test(tests, any_flipped_bit_is_noticed, 0, 8);
    tcase_add_test(tests, members_come_back_when_there_are_some);
    tcase_add_test(tests, another_groups_or_versions_file_is_not_taken);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
