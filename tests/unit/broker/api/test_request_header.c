/* Headers are read as the codec reads them, whole or cut, with tagged fields or without. */
#include "broker/api/request_header.h"

#include <string.h>

#include "base/buffer.h"
#include "messages/header.h"
#include "protocol/codec.h"
#include "tests/unit/runner.h"

enum { LEAST_BYTES = 8 };

static void check_same(int16_t version, struct view input)
{
    struct arena arena;
    struct request_header header = request_header_default;
    struct view client_id = VIEW_EMPTY;
    struct view rest = input;
    struct view expected_rest = input;
    arena_init(&arena, 1 << 16);
    enum status status = request_header_read(version, &rest, &arena, &client_id);
    enum status expected =
        message_decode(&request_header_type, version, &expected_rest, &arena, &header);
    ck_assert_int_eq(status, expected);
    if (expected == STATUS_OK) {
        ck_assert_ptr_eq(client_id.data, header.client_id.data);
        ck_assert_uint_eq(client_id.length, header.client_id.length);
        ck_assert_ptr_eq(rest.data, expected_rest.data);
        ck_assert_uint_eq(rest.length, expected_rest.length);
    }
    arena_free(&arena);
}

static void check_all_cuts(int16_t version, const uint8_t *bytes, size_t length)
{
    for (size_t cut = LEAST_BYTES; cut <= length; cut++) {
        check_same(version, (struct view){bytes, cut});
    }
}

/* With something behind it. */
static void check_header(int16_t version, const char *client_id)
{
    struct buffer buffer = {0};
    struct request_header header = {.request_api_key = 3, .correlation_id = 7};
    header.client_id = client_id == NULL ? VIEW_NULL : view_text(client_id);
    ck_assert_int_eq(message_encode_to(&request_header_type, version, &header, &buffer), STATUS_OK);
    buffer_append(&buffer, "body", 4);
    check_all_cuts(version, buffer.data, buffer.length);
    buffer_free(&buffer);
}

START_TEST(headers_of_clients)
{
    for (int16_t version = 1; version <= 2; version++) {
        check_header(version, NULL);
        check_header(version, "");
        check_header(version, "a client");
    }
}
END_TEST

START_TEST(headers_with_tagged_fields)
{
    static const uint8_t one[] = {0, 3, 0, 9, 0, 0, 0, 1, 0, 1, 'a', 1, 5, 2, 'x', 'y', 'b'};
    static const uint8_t null_id[] = {0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 1, 5, 2, 'x', 'y', 'b'};
    check_all_cuts(2, one, sizeof one);
    check_all_cuts(2, null_id, sizeof null_id);
}
END_TEST

START_TEST(lengths_that_cannot_be)
{
    static const uint8_t negative[] = {0, 3, 0, 9, 0, 0, 0, 1, 0x80, 0, 0, 'b'};
    static const uint8_t too_long[] = {0, 3, 0, 9, 0, 0, 0, 1, 0x7f, 0xff, 'a', 0, 'b'};
    for (int16_t version = 1; version <= 2; version++) {
        check_all_cuts(version, negative, sizeof negative);
        check_all_cuts(version, too_long, sizeof too_long);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("request_header");
    TCase *tests = tcase_create("request_header");
    tcase_add_test(tests, headers_of_clients);
    tcase_add_test(tests, headers_with_tagged_fields);
    tcase_add_test(tests, lengths_that_cannot_be);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
