/* Questions to the table of APIs; the table itself is generated. A key that no API has is a null
 * answer, never an assertion: it came from a client. */
#include "protocol/api_table.h"

#include <assert.h>
#include <stddef.h>

const struct api *api_find(int32_t key)
{
    const struct api *api = NULL;
    if (key >= 0 && key < API_KEY_COUNT) {
        api = &api_table[key];
    } else if (api_is_private(key) && key - API_PRIVATE_FIRST < API_PRIVATE_COUNT) {
        api = &api_private_table[key - API_PRIVATE_FIRST];
    }
    if (api == NULL || api->name == NULL) {
        return NULL;
    }
    assert(api->key == key);
    return api;
}

int16_t api_request_header_version(const struct api *api, int16_t version)
{
    assert(api != NULL && api->request != NULL);
    return version >= api->request->flexible_from ? 2 : 1;
}

int16_t api_response_header_version(const struct api *api, int16_t version)
{
    assert(api != NULL && api->response != NULL);
    if (api->key == API_API_VERSIONS) {
        return 0;
    }
    return version >= api->response->flexible_from ? 1 : 0;
}
