/* Runs one Check suite and prints TAP, so that meson counts every test by itself. */
#ifndef OTTLA_TESTS_UNIT_RUNNER_H
#define OTTLA_TESTS_UNIT_RUNNER_H

#include <check.h>
#include <stdlib.h>

/* Takes the suite, runs all its tests, writes TAP to standard output; the process exit code. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
