/* The table of services is sorted, and each key in it is one that the protocol knows. */
#include "broker/api/service.h"

#include "messages/api_keys.h"
#include "protocol/api_table.h"
#include "tests/unit/runner.h"

START_TEST(every_service_is_found_by_its_key)
{
    size_t count;
    const struct service *services = service_table(&count);
    ck_assert_uint_gt(count, 20);
    for (size_t i = 0; i < count; i++) {
        ck_assert_ptr_eq(service_find(services[i].key), &services[i]);
        ck_assert_ptr_nonnull(api_find(services[i].key));
        ck_assert_int_eq(api_find(services[i].key)->first_advertised_version < 0,
                         api_is_private(services[i].key) || !service_for_brokers(services[i].key));
        ck_assert(i == 0 || services[i - 1].key < services[i].key);
    }
}
END_TEST

START_TEST(what_changes_the_metadata_is_passed_on)
{
    ck_assert_ptr_nonnull(service_find(API_ALTER_CONFIGS)->refuse);
    ck_assert_ptr_nonnull(service_find(API_INCREMENTAL_ALTER_CONFIGS)->refuse);
    ck_assert_ptr_nonnull(service_find(API_ALTER_PARTITION_REASSIGNMENTS)->refuse);
    ck_assert_ptr_nonnull(service_find_inside(API_PEER_MOVED));
    ck_assert_ptr_nonnull(service_find_inside(API_PEER_TRANSFER));
    ck_assert_ptr_null(service_find_inside(API_ELECT_LEADERS));
    ck_assert_ptr_null(service_find(API_PEER_MOVED));
}
END_TEST

START_TEST(what_is_not_served_is_not_found)
{
    ck_assert_ptr_null(service_find(API_ADD_PARTITIONS_TO_TXN));
    ck_assert_ptr_null(service_find(API_CONSUMER_GROUP_HEARTBEAT));
    ck_assert_ptr_null(service_find(-1));
    ck_assert_ptr_null(service_find(INT16_MAX));
}
END_TEST

START_TEST(controllers_serve_who_asks_where_it_is_and_other_nodes)
{
    ck_assert(service_for_controllers(API_API_VERSIONS));
    ck_assert(service_for_controllers(API_DESCRIBE_CLUSTER));
    ck_assert(service_for_controllers(API_DESCRIBE_QUORUM));
    ck_assert(service_for_controllers(API_UNREGISTER_BROKER));
    ck_assert(service_for_controllers(API_PEER_RAFT));
    ck_assert(service_for_controllers(API_DESCRIBE_CONFIGS));
    ck_assert(service_for_controllers(API_ALTER_CONFIGS));
    ck_assert(service_for_controllers(API_INCREMENTAL_ALTER_CONFIGS));
    ck_assert(service_for_controllers(API_ELECT_LEADERS));
    ck_assert(service_for_controllers(API_ALTER_PARTITION_REASSIGNMENTS));
    ck_assert(service_for_controllers(API_LIST_PARTITION_REASSIGNMENTS));
    ck_assert(!service_for_controllers(API_METADATA));
    ck_assert(!service_for_controllers(API_PRODUCE));
    ck_assert(service_for_controllers(API_UPDATE_RAFT_VOTER));
    ck_assert(!service_for_brokers(API_UPDATE_RAFT_VOTER));
    ck_assert(service_for_brokers(API_ADD_RAFT_VOTER));
    ck_assert(service_for_brokers(API_PEER_RAFT));
    ck_assert_int_eq(service_last_version(api_find(API_UPDATE_RAFT_VOTER)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("service");
    TCase *tests = tcase_create("service");
    tcase_add_test(tests, every_service_is_found_by_its_key);
    tcase_add_test(tests, controllers_serve_who_asks_where_it_is_and_other_nodes);
    tcase_add_test(tests, what_changes_the_metadata_is_passed_on);
    tcase_add_test(tests, what_is_not_served_is_not_found);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
