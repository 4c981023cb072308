/* What stock clients and a stock broker sent each other: requests are read by the key and version
 * in their header, answers by the API table, and both come back byte for byte. Rows end with the
 * request and the answer, and perhaps the answer as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/header.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"
#include "tests/golden/golden.h"

static const char *check_request(struct golden_row *row, struct view frame)
{
    if (frame.length < 4) {
        return "request too short";
    }
    const struct api *api = api_find((int16_t)load_be16(frame.data));
    int16_t version = (int16_t)load_be16(frame.data + 2);
    if (api == NULL || !message_has_version(api->request, version)) {
        return "key or version of the request is not known";
    }
    struct request_header header;
    const char *failure = golden_check_part(row, &request_header_type,
        api_request_header_version(api, version), &frame, NULL, false, &header);
    if (failure != NULL) {
        return failure;
    }
    return golden_check_body(row, api->request, version, frame, NULL, false);
}

static const char *check_response(struct golden_row *row, const struct api *api, int16_t version,
    struct view frame, json_t *want)
{
    struct response_header header;
    const char *failure = golden_check_part(row, &response_header_type,
        api_response_header_version(api, version), &frame, NULL, false, &header);
    if (failure != NULL) {
        return failure;
    }
    return golden_check_body(row, api->response, version, frame, want, false);
}

/* Columns: key, name, version, request, response, and JSON or nothing. */
static const char *check_exchange(struct golden_row *row, char **columns, const char *json)
{
    const struct api *api = api_find(atoi(columns[0]));
    int16_t version = (int16_t)atoi(columns[2]);
    bool is_served = api != NULL && message_has_version(api->request, version);
    if (!is_served) {
        bool is_old_produce = api != NULL && api->key == API_PRODUCE && version >= 0;
        return is_old_produce ? NULL : "key or version is not known";
    }
    const char *failure = check_request(row, golden_hex(row, columns[3]));
    if (failure != NULL || strlen(columns[4]) < 2) {
        return failure;
    }
    json_error_t error;
    json_t *want = json == NULL ? NULL : json_loads(json, JSON_ALLOW_NUL, &error);
    failure = check_response(row, api, version, golden_hex(row, columns[4]), want);
    json_decref(want);
    return failure;
}

static const char *check_traffic(struct golden_row *row)
{
    return check_exchange(row, row->columns + 1, NULL);
}

static const char *check_empty(struct golden_row *row)
{
    return check_exchange(row, row->columns, row->count > 5 ? row->columns[5] : NULL);
}

static void label_traffic(const struct golden_row *row, char *text, size_t size)
{
    snprintf(text, size, "%s %s", row->columns[0], row->columns[2]);
}

static void label_empty(const struct golden_row *row, char *text, size_t size)
{
    snprintf(text, size, "empty %s", row->columns[1]);
}

int main(int count, char **arguments)
{
    struct golden golden = {0};
    if (count != 3) {
        printf("Bail out! usage: %s TRAFFIC EMPTY\n", arguments[0]);
        return EXIT_FAILURE;
    }
    golden_run(&golden, arguments[1], check_traffic, label_traffic);
    golden_run(&golden, arguments[2], check_empty, label_empty);
    return golden_end(&golden);
}
