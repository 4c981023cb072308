/* The table of APIs says what a stock 4.4 broker says. */
#include "protocol/api_table.h"

#include "messages/errors.h"
#include "protocol/codec.h"
#include "tests/unit/runner.h"

START_TEST(unknown_keys_have_no_api)
{
    ck_assert_ptr_null(api_find(-1));
    ck_assert_ptr_null(api_find(API_KEY_COUNT));
    ck_assert_ptr_null(api_find(INT32_MAX));
    ck_assert_ptr_null(api_find(API_LEADER_AND_ISR));
    ck_assert_ptr_null(api_find(API_CONTROLLED_SHUTDOWN));
    ck_assert_str_eq(api_find(API_PRODUCE)->name, "Produce");
}
END_TEST

START_TEST(every_api_is_whole)
{
    int served = 0;
    for (int32_t key = 0; key < API_KEY_COUNT; key++) {
        const struct api *api = api_find(key);
        if (api == NULL) {
            continue;
        }
        served++;
        ck_assert_int_eq(api->key, key);
        ck_assert_int_eq(api->request->id, key);
        ck_assert_int_eq(api->response->id, key);
        ck_assert_int_eq(api->request->first_version, api->response->first_version);
        ck_assert_int_eq(api->request->last_version, api->response->last_version);
        ck_assert_int_eq(api->first_version, api->request->first_version);
        ck_assert_int_eq(api->last_version, api->request->last_version);
        ck_assert_int_le(api->last_advertised_version, api->last_version);
    }
    ck_assert_int_eq(served, 91);
}
END_TEST

START_TEST(private_apis_stand_apart)
{
    ck_assert_int_lt(API_KEY_COUNT, API_PRIVATE_FIRST);
    ck_assert(!api_is_private(API_KEY_COUNT - 1));
    ck_assert_ptr_null(api_find(API_PRIVATE_FIRST - 1));
    ck_assert_ptr_null(api_find(API_PRIVATE_FIRST + API_PRIVATE_COUNT));
    ck_assert_str_eq(api_find(API_PEER_HELLO)->name, "PeerHello");
    for (int32_t key = API_PRIVATE_FIRST; key < API_PRIVATE_FIRST + API_PRIVATE_COUNT; key++) {
        const struct api *api = api_find(key);
        ck_assert(api_is_private(key));
        if (api == NULL) {
            continue;
        }
        ck_assert_int_eq(api->key, key);
        ck_assert_int_eq(api->request->id, key);
        ck_assert_int_eq(api->response->id, key);
        ck_assert_int_eq(api->last_version, api->response->last_version);
        ck_assert_int_eq(api->last_advertised_version, -1);
        ck_assert_int_eq(api->flags, API_CLUSTER_ACTION);
    }
}
END_TEST

START_TEST(advertised_like_the_stock_broker)
{
    int advertised = 0;
    for (int32_t key = 0; key < API_KEY_COUNT; key++) {
        const struct api *api = api_find(key);
        advertised += api != NULL && api->last_advertised_version >= 0;
    }
    ck_assert_int_eq(advertised, 77);
    ck_assert_int_eq(api_find(API_PRODUCE)->first_advertised_version, 0);
    ck_assert_int_eq(api_find(API_PRODUCE)->first_version, 3);
    ck_assert_int_eq(api_find(API_INIT_PRODUCER_ID)->last_advertised_version, 5);
    ck_assert_int_eq(api_find(API_INIT_PRODUCER_ID)->last_version, 6);
    ck_assert_int_eq(api_find(API_FETCH)->first_advertised_version, 4);
    ck_assert_int_eq(api_find(API_VOTE)->last_advertised_version, -1);
    ck_assert_int_eq(api_find(API_PUSH_TELEMETRY)->last_advertised_version, -1);
}
END_TEST

START_TEST(header_versions)
{
    ck_assert_int_eq(api_request_header_version(api_find(API_PRODUCE), 8), 1);
    ck_assert_int_eq(api_request_header_version(api_find(API_PRODUCE), 9), 2);
    ck_assert_int_eq(api_response_header_version(api_find(API_PRODUCE), 8), 0);
    ck_assert_int_eq(api_response_header_version(api_find(API_PRODUCE), 9), 1);
    ck_assert_int_eq(api_request_header_version(api_find(API_API_VERSIONS), 3), 2);
    ck_assert_int_eq(api_request_header_version(api_find(API_API_VERSIONS), 99), 2);
    ck_assert_int_eq(api_response_header_version(api_find(API_API_VERSIONS), 3), 0);
    ck_assert_int_eq(api_request_header_version(api_find(API_SASL_HANDSHAKE), 1), 1);
    ck_assert_int_eq(api_response_header_version(api_find(API_SASL_HANDSHAKE), 1), 0);
}
END_TEST

START_TEST(errors_have_names)
{
    ck_assert_str_eq(kafka_error_name(KAFKA_NONE), "NONE");
    ck_assert_str_eq(kafka_error_name(KAFKA_NOT_LEADER_OR_FOLLOWER), "NOT_LEADER_OR_FOLLOWER");
    ck_assert_str_eq(kafka_error_name(-7), "UNKNOWN");
    ck_assert(kafka_error_is_retriable(KAFKA_NOT_LEADER_OR_FOLLOWER));
    ck_assert(kafka_error_is_retriable(KAFKA_REQUEST_TIMED_OUT));
    ck_assert(!kafka_error_is_retriable(KAFKA_INVALID_RECORD));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_table");
    TCase *tests = tcase_create("api_table");
    tcase_add_test(tests, unknown_keys_have_no_api);
    tcase_add_test(tests, every_api_is_whole);
    tcase_add_test(tests, private_apis_stand_apart);
    tcase_add_test(tests, advertised_like_the_stock_broker);
    tcase_add_test(tests, header_versions);
    tcase_add_test(tests, errors_have_names);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
