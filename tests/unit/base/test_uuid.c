/* Ids read and write Kafka's 22-character text. */
#include "base/uuid.h"

#include "tests/unit/runner.h"

START_TEST(text_is_url_safe_base64)
{
    struct uuid uuid = {{0}};
    char text[UUID_TEXT_LENGTH + 1];
    uuid_text(uuid, text);
    ck_assert_str_eq(text, "AAAAAAAAAAAAAAAAAAAAAA");
    for (int i = 0; i < UUID_BYTES; i++) {
        uuid.bytes[i] = (uint8_t)(0xfb - i * 7);
    }
    uuid_text(uuid, text);
    struct uuid back;
    ck_assert_int_eq(uuid_parse(view_text(text), &back), STATUS_OK);
    ck_assert(uuid_equal(uuid, back));
    ck_assert(!uuid_is_zero(back));
}
END_TEST

START_TEST(other_text_is_refused)
{
    struct uuid uuid;
    ck_assert_int_eq(uuid_parse(view_text("AAAAAAAAAAAAAAAAAAAAA"), &uuid), STATUS_INVALID);
    ck_assert_int_eq(uuid_parse(view_text("AAAAAAAAAAAAAAAAAAAAA+"), &uuid), STATUS_INVALID);
    ck_assert_int_eq(uuid_parse(view_text("AAAAAAAAAAAAAAAAAAAAAB"), &uuid), STATUS_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uuid");
    TCase *tests = tcase_create("uuid");
    tcase_add_test(tests, text_is_url_safe_base64);
    tcase_add_test(tests, other_text_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
