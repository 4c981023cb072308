/* What the simulated disk keeps of names when the power goes. The other tests rely on it. */
#include "io/file.h"
#include "tests/sim/sim_file.h"
#include "tests/unit/runner.h"

enum { WAYS = 50 };

static void make_file(const char *path)
{
    struct file *file;
    ck_assert_int_eq(file_open(path, FILE_WRITE | FILE_CREATE, &file), STATUS_OK);
    file_unref(file);
}

static void start(uint64_t seed)
{
    sim_disk_reset(seed);
    ck_assert_int_eq(file_make_directory("/data"), STATUS_OK);
    ck_assert_int_eq(file_make_directory("/data/t-0"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/data"), STATUS_OK);
}

static void cut_power(void)
{
    sim_disk_crash();
    sim_disk_restart();
}

START_TEST(names_of_a_synced_directory_are_kept)
{
    start((uint64_t)_i);
    make_file("/data/t-0/a");
    ck_assert_int_eq(file_sync_directory("/data/t-0"), STATUS_OK);
    make_file("/data/t-0/b");
    ck_assert_int_eq(file_rename("/data/t-0", "/data/t-1"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/data"), STATUS_OK);
    cut_power();
    ck_assert(!file_exists("/data/t-0"));
    ck_assert(file_exists("/data/t-1/a"));
    sim_disk_reset(0);
}
END_TEST

START_TEST(directory_has_nothing_of_one_that_had_its_name)
{
    start((uint64_t)_i);
    make_file("/data/t-0/a");
    ck_assert_int_eq(file_rename("/data/t-0", "/data/t-0.delete"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/data"), STATUS_OK);
    ck_assert_int_eq(file_make_directory("/data/t-0"), STATUS_OK);
    make_file("/data/t-0/b");
    ck_assert_int_eq(file_sync_directory("/data/t-0"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/data"), STATUS_OK);
    cut_power();
    ck_assert(file_exists("/data/t-0/b"));
    ck_assert(!file_exists("/data/t-0/a"));
    sim_disk_reset(0);
}
END_TEST

START_TEST(sync_behind_a_rename_reaches_the_renamed_directory)
{
    start((uint64_t)_i);
    make_file("/data/t-0/a");
    ck_assert_int_eq(file_rename("/data/t-0", "/data/t-1"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/data/t-1"), STATUS_OK);
    cut_power();
    ck_assert(file_exists("/data/t-0/a") || file_exists("/data/t-1/a"));
    sim_disk_reset(0);
}
END_TEST

START_TEST(removed_directory_leaves_nothing_on_the_disk)
{
    struct file *file;
    char bytes[] = "0123456789";
    struct iovec part = {bytes, sizeof bytes};
    start((uint64_t)_i);
    ck_assert_int_eq(file_open("/data/t-0/a", FILE_WRITE | FILE_CREATE, &file), STATUS_OK);
    ck_assert_int_eq(file_write(file, 0, &part, 1), STATUS_OK);
    file_unref(file);
    ck_assert_int_eq(file_rename("/data/t-0/a", "/data/t-0/b"), STATUS_OK);
    ck_assert_int_eq(file_remove("/data/t-0/b"), STATUS_OK);
    ck_assert_int_eq(file_remove("/data/t-0"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/data"), STATUS_OK);
    ck_assert_uint_eq(sim_disk_used(), 0);
    cut_power();
    ck_assert(!file_exists("/data/t-0"));
    sim_disk_reset(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_disk");
    TCase *tests = tcase_create("sim_disk");
    tcase_add_loop_test(tests, names_of_a_synced_directory_are_kept, 0, WAYS);
    tcase_add_loop_test(tests, directory_has_nothing_of_one_that_had_its_name, 0, WAYS);
    tcase_add_loop_test(tests, sync_behind_a_rename_reaches_the_renamed_directory, 0, WAYS);
    tcase_add_loop_test(tests, removed_directory_leaves_nothing_on_the_disk, 0, WAYS);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
