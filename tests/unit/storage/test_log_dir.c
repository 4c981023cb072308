/* The data directory keeps its identity and lets one broker in. */
#include "storage/log_dir.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"
#include "io/file_whole.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

START_TEST(identity_is_made_once_in_kafkas_format)
{
    const char *directory = support_directory();
    struct log_dir *dir;
    struct log_dir_settings settings = {support_path(directory, "a/b"), 3, NULL};
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert(log_dir_is_new(dir));
    struct log_dir_identity first = *log_dir_identity(dir);
    ck_assert_uint_eq(strlen(first.cluster_id), 22);
    log_dir_close(dir);
    struct buffer text = support_read(support_path(directory, "a/b/meta.properties"));
    buffer_append(&text, "", 1);
    ck_assert_ptr_nonnull(strstr((char *)text.data, "version=1\n"));
    ck_assert_ptr_nonnull(strstr((char *)text.data, "node.id=3\n"));
    ck_assert_ptr_nonnull(strstr((char *)text.data, "directory.id="));
    buffer_free(&text);
    settings.path = support_path(directory, "a/b");
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert(!log_dir_is_new(dir));
    ck_assert_str_eq(log_dir_identity(dir)->cluster_id, first.cluster_id);
    ck_assert(uuid_equal(log_dir_identity(dir)->directory_id, first.directory_id));
    log_dir_close(dir);
    support_clean(directory);
}
END_TEST

START_TEST(a_new_directory_with_peers_is_incomplete_until_it_is_said_to_be_complete)
{
    const char *directory = support_directory();
    struct log_dir *dir;
    struct log_dir_settings settings = {support_path(directory, "a"), 3, NULL, true};
    for (int i = 0; i < 2; i++) { /* also after a crash */
        ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
        ck_assert(log_dir_is_incomplete(dir));
        log_dir_close(dir);
    }
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert_int_eq(log_dir_complete(dir), STATUS_OK);
    ck_assert(!log_dir_is_incomplete(dir));
    log_dir_close(dir);
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert(!log_dir_is_incomplete(dir));
    ck_assert_int_eq(log_dir_complete(dir), STATUS_OK);
    log_dir_close(dir);
    settings = (struct log_dir_settings){support_path(directory, "b"), 3, NULL, false};
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert(!log_dir_is_incomplete(dir));
    log_dir_close(dir);
    support_clean(directory);
}
END_TEST

START_TEST(formatted_or_not)
{
    const char *directory = support_directory();
    const char *path = support_path(directory, "d");
    struct log_dir *dir;
    struct log_dir_settings settings = {path, 3, "c"};
    ck_assert(!log_dir_is_formatted(path));
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    log_dir_close(dir);
    ck_assert(log_dir_is_formatted(path));
    support_clean(directory);
}
END_TEST

START_TEST(foreign_directory_is_refused)
{
    const char *directory = support_directory();
    struct log_dir *dir;
    struct log_dir_settings settings = {directory, 3, "cluster-one"};
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    log_dir_close(dir);
    settings.node_id = 4;
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_INVALID);
    settings.node_id = 3;
    settings.cluster_id = "cluster-two";
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_INVALID);
    settings.cluster_id = "";
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert_str_eq(log_dir_identity(dir)->cluster_id, "cluster-one");
    log_dir_close(dir);
    ck_assert_int_eq(file_replace(support_path(directory, "meta.properties"),
        VIEW_LITERAL("node.id=3\n"), true), STATUS_OK);
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_INVALID);
    support_clean(directory);
}
END_TEST

START_TEST(file_of_a_stock_broker_is_read)
{
    const char *directory = support_directory();
    struct log_dir *dir;
    struct log_dir_settings settings = {directory, 1, NULL};
    ck_assert_int_eq(file_replace(support_path(directory, "meta.properties"), VIEW_LITERAL(
        "#\n#Thu Jan 01 00:00:00 UTC 2026\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n"
        "directory.id=AQIDBAUGBwgJCgsMDQ4PEA\nnode.id=1\nversion=1\n"), true), STATUS_OK);
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert_str_eq(log_dir_identity(dir)->cluster_id, "MkU3OEVBNTcwNTJENDM2Qk");
    ck_assert_int_eq(log_dir_identity(dir)->directory_id.bytes[15], 16);
    log_dir_close(dir);
    support_clean(directory);
}
END_TEST

START_TEST(second_process_is_refused_until_the_first_lets_go)
{
    const char *directory = support_directory();
    struct log_dir *dir;
    struct log_dir_settings settings = {directory, 3, NULL};
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    pid_t child = fork();
    if (child == 0) {
        struct log_dir *second;
        _exit(log_dir_open(&settings, &second) == STATUS_BUSY ? 0 : 1);
    }
    int result = -1;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    log_dir_close(dir);
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    log_dir_close(dir);
    support_clean(directory);
}
END_TEST

struct found {
    int count;
    int32_t partitions;
    bool dashed;
};

static void note(void *context, const struct log_dir_partition *partition)
{
    struct found *found = context;
    found->count++;
    found->partitions += partition->partition;
    found->dashed = found->dashed || (strcmp(partition->topic, "my-topic-1") == 0
        && partition->topic_id.bytes[0] == 1);
}

START_TEST(partitions_are_found_and_leftovers_removed)
{
    const char *directory = support_directory();
    struct log_dir *dir;
    struct log_dir_settings settings = {directory, 3, NULL};
    struct found found = {0};
    ck_assert_int_eq(log_dir_open(&settings, &dir), STATUS_OK);
    ck_assert_int_eq(file_make_path(log_dir_journal_path(dir)), STATUS_OK);
    ck_assert_int_eq(file_make_directory(support_path(directory, "t-0")), STATUS_OK);
    ck_assert_int_eq(file_make_directory(support_path(directory, "my-topic-1-12")), STATUS_OK);
    ck_assert_int_eq(file_replace(support_path(directory, "my-topic-1-12/partition.metadata"),
        VIEW_LITERAL("version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA"), false), STATUS_OK);
    ck_assert_int_eq(file_make_directory(support_path(directory, "t-1")), STATUS_OK);
    ck_assert_int_eq(log_dir_discard_partition(dir, "t", 1), STATUS_OK);
    ck_assert_int_eq(log_dir_each_partition(dir, note, &found), STATUS_OK);
    ck_assert_int_eq(found.count, 2);
    ck_assert_int_eq(found.partitions, 12);
    ck_assert(found.dashed);
    ck_assert_int_eq(log_dir_remove_leftovers(dir), STATUS_OK);
    ck_assert(file_exists(support_path(directory, "t-0")));
    ck_assert_int_eq(log_dir_probe(dir, 1), STATUS_OK);
    ck_assert_int_eq(log_dir_probe(dir, UINT64_MAX), STATUS_NO_SPACE);
    log_dir_close(dir);
    support_clean(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_dir");
    TCase *tests = tcase_create("log_dir");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, identity_is_made_once_in_kafkas_format);
    tcase_add_test(tests,
                   a_new_directory_with_peers_is_incomplete_until_it_is_said_to_be_complete);
    tcase_add_test(tests, formatted_or_not);
    tcase_add_test(tests, foreign_directory_is_refused);
    tcase_add_test(tests, file_of_a_stock_broker_is_read);
    tcase_add_test(tests, second_process_is_refused_until_the_first_lets_go);
    tcase_add_test(tests, partitions_are_found_and_leftovers_removed);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
