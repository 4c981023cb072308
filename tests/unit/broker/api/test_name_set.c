/* A name is in the set once, however many there are. */
#include "broker/api/name_set.h"

#include "tests/unit/runner.h"

START_TEST(repetitions_are_seen)
{
    struct arena arena;
    struct name_set set;
    arena_init(&arena, 1 << 24);
    name_set_init(&set, 5000, &arena);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            struct view name = arena_format(&arena, "topic-%d", i);
            ck_assert_int_eq(name_set_add(&set, name), round == 0);
        }
    }
    ck_assert(name_set_add(&set, VIEW_EMPTY));
    ck_assert(!name_set_add(&set, VIEW_EMPTY));
    arena_free(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("name_set");
    TCase *tests = tcase_create("name_set");
    tcase_add_test(tests, repetitions_are_seen);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
