/* A group id belongs to the partition that every Kafka broker computes: Java's String.hashCode. */
#include "broker/group/offsets_group.h"

#include "tests/unit/runner.h"

/* Expected: (s.hashCode() & 0x7fffffff) % 50, computed with a JDK. */
START_TEST(partition_is_javas)
{
    ck_assert_int_eq(offsets_partition_for(view_text(""), 50), 0);
    ck_assert_int_eq(offsets_partition_for(view_text("a"), 50), 97 % 50);
    ck_assert_int_eq(offsets_partition_for(view_text("my-group"), 50), 36);
    ck_assert_int_eq(offsets_partition_for(view_text("console-consumer-12345"), 50), 6);
    ck_assert_int_eq(offsets_partition_for(view_text("gr\xc3\xbc\xc3\x9f-\xe2\x82\xac"), 50),
                     43);
    ck_assert_int_eq(offsets_partition_for(view_text("\xf0\x9f\x98\x80"), 50), 49);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("offsets_group");
    TCase *tests = tcase_create("offsets_group");
    tcase_add_test(tests, partition_is_javas);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
