/* Sessions remember what is fetched, in order, and never more of them than there are slots. */
#include "broker/api/fetch_session.h"

#include "tests/unit/runner.h"

static struct fetch_request request_of(struct fetch_request_fetch_topic *topic,
                                       struct fetch_request_fetch_partition *partitions, int count)
{
    topic->topic = view_text("t");
    topic->partitions = partitions;
    topic->partitions_count = count;
    struct fetch_request request = fetch_request_default;
    request.topics = topic;
    request.topics_count = 1;
    return request;
}

START_TEST(partitions_are_added_changed_and_forgotten)
{
    struct fetch_sessions sessions;
    struct fetch_request_fetch_topic topic = {0};
    struct fetch_request_fetch_partition partitions[3] = {
        {.partition = 2, .fetch_offset = 5}, {.partition = 0}, {.partition = 1}};
    struct fetch_request request = request_of(&topic, partitions, 3);
    fetch_sessions_init(&sessions, 10);
    struct fetch_session *session = fetch_session_new(&sessions, false);
    fetch_session_update(&sessions, session, &request);
    ck_assert_uint_eq(HASH_COUNT(session->partitions), 3);
    ck_assert_int_eq(session->partitions->asked.partition, 2);
    partitions[0].fetch_offset = 9;
    int32_t gone[] = {0};
    struct fetch_request_forgotten_topic forgotten = {
        .topic = view_text("t"), .partitions = gone, .partitions_count = 1};
    request = request_of(&topic, partitions, 1);
    request.forgotten_topics_data = &forgotten;
    request.forgotten_topics_data_count = 1;
    fetch_session_update(&sessions, session, &request);
    ck_assert_uint_eq(HASH_COUNT(session->partitions), 2);
    ck_assert_int_eq(session->partitions->asked.fetch_offset, 9);
    fetch_sessions_free(&sessions);
    ck_assert_uint_eq(sessions.count, 0);
}
END_TEST

START_TEST(slots_are_bounded_and_busy_ones_stay)
{
    struct fetch_sessions sessions;
    fetch_sessions_init(&sessions, 2);
    struct fetch_session *first = fetch_session_new(&sessions, true);
    int32_t first_id = first->id;
    struct fetch_session *second = fetch_session_new(&sessions, true);
    second->busy = true;
    struct fetch_session *third = fetch_session_new(&sessions, true);
    ck_assert_ptr_nonnull(third);
    ck_assert_ptr_null(fetch_session_find(&sessions, first_id));
    third->busy = true;
    ck_assert_ptr_null(fetch_session_new(&sessions, true));
    ck_assert_uint_eq(sessions.count, 2);
    fetch_sessions_free(&sessions);
}
END_TEST

START_TEST(epochs_skip_what_has_a_meaning)
{
    ck_assert_int_eq(fetch_session_next_epoch(1), 2);
    ck_assert_int_eq(fetch_session_next_epoch(INT32_MAX), 1);
}
END_TEST

START_TEST(a_session_goes_over_to_another_cache)
{
    struct fetch_sessions here;
    struct fetch_sessions there;
    struct fetch_request_fetch_topic topic = {0};
    struct fetch_request_fetch_partition partitions[1] = {{.partition = 2, .fetch_offset = 5}};
    struct fetch_request request = request_of(&topic, partitions, 1);
    fetch_sessions_init(&here, 2);
    fetch_sessions_init(&there, 1);
    struct fetch_session *session = fetch_session_new(&here, false);
    int32_t id = session->id;
    fetch_session_update(&here, session, &request);
    session->busy = true;
    ck_assert_ptr_null(fetch_session_take(&here, id)); /* a request of it is under way */
    session->busy = false;
    ck_assert_ptr_null(fetch_session_take(&here, id + 1));
    ck_assert_ptr_eq(fetch_session_take(&here, id), session);
    ck_assert_ptr_null(fetch_session_find(&here, id));
    ck_assert_uint_eq(here.count, 0);
    int32_t unused = fetch_session_new(&there, false)->id;
    fetch_session_put(&there, session);
    ck_assert_ptr_null(fetch_session_find(&there, unused));
    ck_assert_ptr_eq(fetch_session_find(&there, id), session);
    ck_assert_int_eq(session->partitions->asked.fetch_offset, 5);
    ck_assert_uint_eq(there.count, 1);
    session->busy = true;
    fetch_session_put(&there, fetch_session_take(&here, fetch_session_new(&here, false)->id));
    ck_assert_uint_eq(there.count, 1); /* no room: it ended */
    fetch_sessions_free(&here);
    fetch_sessions_free(&there);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fetch_session");
    TCase *tests = tcase_create("fetch_session");
    tcase_add_test(tests, partitions_are_added_changed_and_forgotten);
    tcase_add_test(tests, slots_are_bounded_and_busy_ones_stay);
    tcase_add_test(tests, a_session_goes_over_to_another_cache);
    tcase_add_test(tests, epochs_skip_what_has_a_meaning);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
