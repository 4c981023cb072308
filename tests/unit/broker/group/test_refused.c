/* What comes behind a refused batch is refused alike, until that one comes again. */
#include "broker/group/refused.h"

#include <string.h>

#include "messages/errors.h"
#include "tests/unit/runner.h"

/* One step of a story. */
struct step {
    const char *what; /* "note", "ask", "take" */
    int64_t producer;
    int16_t epoch;
    int32_t sequence;
    int32_t count;
    uint64_t at_ms;
    int16_t error;    /* noted, or expected */
};

static void play(const struct step *steps, size_t count)
{
    struct refused *refused = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        struct producer_batch batch = {.producer_id = step->producer,
                                       .epoch = step->epoch,
                                       .base_sequence = step->sequence,
                                       .record_count = step->count};
        if (strcmp(step->what, "note") == 0) {
            refused_note(&refused, &batch, step->error, step->at_ms);
        } else if (strcmp(step->what, "take") == 0) {
            refused_taken(&refused, &batch);
        } else {
            ck_assert_msg(refused_error(refused, &batch, step->at_ms) == step->error,
                          "step %zu", i);
        }
    }
    refused_free(&refused);
    ck_assert_ptr_null(refused);
}

#define PLAY(...) \
    do { \
        const struct step steps[] = {__VA_ARGS__}; \
        play(steps, sizeof steps / sizeof steps[0]); \
    } while (0)

enum { FEW = KAFKA_NOT_ENOUGH_REPLICAS, MOVED = KAFKA_NOT_LEADER_OR_FOLLOWER };

START_TEST(nothing_was_refused)
{
    PLAY({"ask", 1, 0, 5, 1, 0, KAFKA_NONE}, {"take", 1, 0, 5, 1, 0, 0});
}
END_TEST

START_TEST(what_is_behind_gets_the_error_of_the_first)
{
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"note", 1, 0, 7, 2, 11, MOVED},
         {"ask", 1, 0, 7, 2, 12, FEW}, {"ask", 1, 0, 100, 2, 12, FEW},
         {"ask", 1, 0, 5, 2, 12, KAFKA_NONE}, /* the one itself */
         {"ask", 1, 0, 3, 2, 12, KAFKA_NONE}, /* before it */
         {"ask", 2, 0, 7, 2, 12, KAFKA_NONE}, /* another producer */
         {"ask", 1, 1, 7, 2, 12, KAFKA_NONE}); /* another epoch */
}
END_TEST

START_TEST(an_earlier_one_takes_its_place)
{
    PLAY({"note", 1, 0, 7, 2, 10, FEW}, {"note", 1, 0, 5, 2, 11, MOVED},
         {"ask", 1, 0, 6, 1, 12, MOVED});
}
END_TEST

START_TEST(sequences_wrap)
{
    PLAY({"note", 1, 0, INT32_MAX - 1, 2, 10, FEW}, {"ask", 1, 0, 0, 1, 11, FEW},
         {"take", 1, 0, INT32_MAX - 1, 2, 0, 0}, {"ask", 1, 0, 0, 1, 11, KAFKA_NONE});
}
END_TEST

START_TEST(it_ends_when_the_batch_is_taken)
{
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"take", 1, 0, 3, 2, 0, 0}, {"ask", 1, 0, 9, 1, 11, FEW},
         {"take", 2, 0, 5, 2, 0, 0}, {"ask", 1, 0, 9, 1, 11, FEW},
         {"take", 1, 0, 4, 2, 0, 0}, /* made anew with other bounds */
         {"ask", 1, 0, 9, 1, 11, KAFKA_NONE});
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"take", 1, 0, 8, 1, 0, 0},
         {"ask", 1, 0, 9, 1, 11, KAFKA_NONE});
}
END_TEST

START_TEST(it_ends_with_the_epoch)
{
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"take", 1, 1, 0, 1, 0, 0},
         {"ask", 1, 0, 9, 1, 11, KAFKA_NONE});
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"note", 1, 1, 0, 1, 11, MOVED},
         {"note", 1, 0, 2, 1, 12, FEW}, {"ask", 1, 0, 9, 1, 13, KAFKA_NONE},
         {"ask", 1, 1, 1, 1, 13, MOVED});
}
END_TEST

START_TEST(a_producer_that_gave_up_is_told_in_the_end)
{
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"ask", 1, 0, 9, 1, 9 + REFUSED_MS, FEW},
         {"ask", 1, 0, 9, 1, 10 + REFUSED_MS, KAFKA_NONE});
    /* Refused again it counts anew; so does what is refused when the first is long gone. */
    PLAY({"note", 1, 0, 5, 2, 10, FEW}, {"note", 1, 0, 5, 2, 20, FEW},
         {"ask", 1, 0, 9, 1, 19 + REFUSED_MS, FEW},
         {"note", 1, 0, 7, 2, 20 + REFUSED_MS, MOVED},
         {"ask", 1, 0, 9, 1, 21 + REFUSED_MS, MOVED},
         {"ask", 1, 0, 6, 1, 21 + REFUSED_MS, KAFKA_NONE});
}
END_TEST

START_TEST(the_one_refused_longest_ago_makes_room)
{
    struct refused *refused = NULL;
    struct producer_batch batch = {.record_count = 1};
    for (int64_t id = 0; id <= REFUSED_MOST; id++) {
        batch.producer_id = id;
        batch.base_sequence = 1;
        refused_note(&refused, &batch, FEW, 10);
    }
    for (int64_t id = 0; id <= REFUSED_MOST; id++) {
        batch.producer_id = id;
        batch.base_sequence = 2;
        ck_assert_int_eq(refused_error(refused, &batch, 11), id == 0 ? KAFKA_NONE : FEW);
        ck_assert_int_eq(refused_knows(refused, &batch), id != 0);
        batch.epoch = 1;
        ck_assert(!refused_knows(refused, &batch));
        batch.epoch = 0;
    }
    refused_free(&refused);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("refused");
    TCase *tests = tcase_create("refused");
    tcase_add_test(tests, nothing_was_refused);
    tcase_add_test(tests, what_is_behind_gets_the_error_of_the_first);
    tcase_add_test(tests, an_earlier_one_takes_its_place);
    tcase_add_test(tests, sequences_wrap);
    tcase_add_test(tests, it_ends_when_the_batch_is_taken);
    tcase_add_test(tests, it_ends_with_the_epoch);
    tcase_add_test(tests, a_producer_that_gave_up_is_told_in_the_end);
    tcase_add_test(tests, the_one_refused_longest_ago_makes_room);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
