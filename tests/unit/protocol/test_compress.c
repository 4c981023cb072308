/* Every compression comes back, in every framing that clients write, and never above the limit. */
#include "protocol/compress.h"

#include <stdlib.h>
#include <string.h>

#include <snappy-c.h>

#include "base/bytes.h"
#include "tests/unit/runner.h"

enum { PLENTY_BYTES = 1 << 24 };

static const size_t lengths[] = {0, 1, 100, 32 * 1024, 32 * 1024 + 1, 300000};

/* Text that packs well (`noise` 1) or hardly at all (`noise` 256). */
static struct view make_input(size_t length, unsigned noise)
{
    uint8_t *bytes = malloc(length + 1);
    uint32_t state = 12345;
    for (size_t i = 0; i < length; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (uint8_t)('a' + (state >> 24) % noise);
    }
    return (struct view){bytes, length};
}

static void free_view(struct view view)
{
    free((void *)(uintptr_t)view.data);
}

static void check_both_ways(enum compression compression, struct view input, int32_t level)
{
    struct buffer packed = {0}, unpacked = {0};
    buffer_append(&packed, "front", 5);
    buffer_append(&unpacked, "front", 5);
    compress_pack(compression, level, input, &packed);
    struct view body = view_slice(buffer_view(&packed), 5, packed.length - 5);
    ck_assert_int_eq(compress_unpack(compression, body, input.length, &unpacked), STATUS_OK);
    struct view result = view_slice(buffer_view(&unpacked), 5, unpacked.length - 5);
    ck_assert_uint_eq(result.length, input.length);
    ck_assert_int_eq(memcmp(result.data, input.data, input.length), 0);
    if (input.length > 0) {
        unpacked.length = 5;
        ck_assert_int_eq(compress_unpack(compression, body, input.length - 1, &unpacked),
            STATUS_LIMIT);
        ck_assert(view_is(buffer_view(&unpacked), "front"));
    }
    buffer_free(&packed);
    buffer_free(&unpacked);
}

START_TEST(comes_back_and_keeps_the_limit)
{
    for (int c = COMPRESSION_NONE; c < COMPRESSION_COUNT; c++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            for (unsigned noise = 1; noise <= 256; noise += 255) {
                struct view input = make_input(lengths[i], noise);
                check_both_ways((enum compression)c, input, COMPRESS_LEVEL_DEFAULT);
                free_view(input);
            }
        }
    }
}
END_TEST

START_TEST(levels_are_brought_into_range)
{
    static const int32_t levels[] = {INT32_MIN + 1, -5, -1, 0, 1, 3, 9, 12, 17, 22, INT32_MAX};
    struct view input = make_input(2000, 20);
    for (int c = COMPRESSION_GZIP; c < COMPRESSION_COUNT; c++) {
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
            check_both_ways((enum compression)c, input, levels[i]);
        }
    }
    free_view(input);
}
END_TEST

/* Cut anywhere it is refused; the copy has its own block so that a step too far is seen. */
START_TEST(cut_short_is_refused)
{
    struct view input = make_input(1000, 20);
    for (int c = COMPRESSION_GZIP; c < COMPRESSION_COUNT; c++) {
        struct buffer packed = {0}, unpacked = {0};
        compress_pack((enum compression)c, COMPRESS_LEVEL_DEFAULT, input, &packed);
        for (size_t length = 0; length < packed.length; length++) {
            uint8_t *copy = malloc(length + (length == 0));
            memcpy(copy, packed.data, length);
            enum status status = compress_unpack((enum compression)c,
                (struct view){copy, length}, PLENTY_BYTES, &unpacked);
            bool only_frame = c == COMPRESSION_SNAPPY && length == 16;
            ck_assert_msg(only_frame || status == STATUS_TRUNCATED || status == STATUS_INVALID,
                "compression %d cut to %zu gives %d", c, length, status);
            free(copy);
        }
        buffer_free(&packed);
        buffer_free(&unpacked);
    }
    free_view(input);
}
END_TEST

START_TEST(several_members_and_frames)
{
    static const enum compression kinds[] = {COMPRESSION_GZIP, COMPRESSION_LZ4, COMPRESSION_ZSTD};
    for (size_t i = 0; i < 3; i++) {
        struct buffer packed = {0}, unpacked = {0};
        compress_pack(kinds[i], COMPRESS_LEVEL_DEFAULT, VIEW_LITERAL("one "), &packed);
        compress_pack(kinds[i], COMPRESS_LEVEL_DEFAULT, VIEW_LITERAL("two"), &packed);
        ck_assert_int_eq(compress_unpack(kinds[i], buffer_view(&packed), 7, &unpacked),
            STATUS_OK);
        ck_assert(view_is(buffer_view(&unpacked), "one two"));
        buffer_append(&packed, "junk that is no frame", 21);
        ck_assert_int_ne(compress_unpack(kinds[i], buffer_view(&packed), 70, &unpacked),
            STATUS_OK);
        buffer_free(&packed);
        buffer_free(&unpacked);
    }
}
END_TEST

START_TEST(snappy_as_one_raw_block)
{
    struct view input = make_input(70000, 3);
    size_t packed_length = snappy_max_compressed_length(input.length);
    char *packed = malloc(packed_length);
    struct buffer unpacked = {0};
    ck_assert_int_eq(snappy_compress((const char *)input.data, input.length, packed,
        &packed_length), SNAPPY_OK);
    struct view view = {(const uint8_t *)packed, packed_length};
    ck_assert_int_eq(compress_unpack(COMPRESSION_SNAPPY, view, input.length, &unpacked),
        STATUS_OK);
    ck_assert(view_equal(buffer_view(&unpacked), input));
    ck_assert_int_eq(compress_unpack(COMPRESSION_SNAPPY, view, input.length - 1, &unpacked),
        STATUS_LIMIT);
    buffer_free(&unpacked);
    free(packed);
    free_view(input);
}
END_TEST

START_TEST(snappy_is_not_believed)
{
    struct buffer unpacked = {0};
    /* Four gigabytes in six bytes. */
    ck_assert_int_eq(compress_unpack(COMPRESSION_SNAPPY, VIEW_LITERAL("\xff\xff\xff\xff\x0f\0"),
        PLENTY_BYTES, &unpacked), STATUS_INVALID);
    ck_assert_uint_eq(unpacked.capacity, 0);
    /* Ten bytes, copied from before the beginning. */
    ck_assert_int_eq(compress_unpack(COMPRESSION_SNAPPY, VIEW_LITERAL("\x0a\x19\x05"),
        PLENTY_BYTES, &unpacked), STATUS_INVALID);
    ck_assert_uint_eq(unpacked.length, 0);
    ck_assert_int_eq(compress_unpack(COMPRESSION_SNAPPY,
        VIEW_LITERAL("\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xff\0"), PLENTY_BYTES, &unpacked),
        STATUS_TRUNCATED);
    buffer_free(&unpacked);
}
END_TEST

START_TEST(bombs_stop_at_the_limit)
{
    enum { BOMB_BYTES = 64 << 20, LIMIT_BYTES = 1 << 20 };
    struct view input = {calloc(1, BOMB_BYTES), BOMB_BYTES};
    for (int c = COMPRESSION_GZIP; c < COMPRESSION_COUNT; c++) {
        struct buffer packed = {0}, unpacked = {0};
        compress_pack((enum compression)c, COMPRESS_LEVEL_DEFAULT, input, &packed);
        ck_assert_int_eq(compress_unpack((enum compression)c, buffer_view(&packed), LIMIT_BYTES,
            &unpacked), STATUS_LIMIT);
        ck_assert_uint_le(unpacked.capacity, 4 * LIMIT_BYTES);
        buffer_free(&packed);
        buffer_free(&unpacked);
    }
    free_view(input);
}
END_TEST

START_TEST(unknown_compressions_are_invalid)
{
    struct buffer unpacked = {0};
    for (int c = COMPRESSION_COUNT; c < 8; c++) {
        ck_assert_int_eq(compress_unpack((enum compression)c, VIEW_LITERAL("abc"), 100,
            &unpacked), STATUS_INVALID);
    }
    for (int c = COMPRESSION_GZIP; c < COMPRESSION_COUNT; c++) {
        ck_assert_int_ne(compress_unpack((enum compression)c,
            VIEW_LITERAL("what is this, certainly not packed"), 100, &unpacked), STATUS_OK);
    }
    buffer_free(&unpacked);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compress");
    TCase *tests = tcase_create("compress");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, comes_back_and_keeps_the_limit);
    tcase_add_test(tests, levels_are_brought_into_range);
    tcase_add_test(tests, cut_short_is_refused);
    tcase_add_test(tests, several_members_and_frames);
    tcase_add_test(tests, snappy_as_one_raw_block);
    tcase_add_test(tests, snappy_is_not_believed);
    tcase_add_test(tests, bombs_stop_at_the_limit);
    tcase_add_test(tests, unknown_compressions_are_invalid);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
