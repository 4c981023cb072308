/* Parsing of listener addresses. Owns nothing; hosts are views into the text. Anything that is not
 * exactly NAME://host:port is refused, because a guess would show only when a client hangs. */
#include "broker/config/endpoint.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "broker/config/value.h"

bool host_port_parse(struct view text, struct view *host, uint16_t *port)
{
    assert(host != NULL && port != NULL);
    const uint8_t *colon = text.length == 0 ? NULL : memrchr(text.data, ':', text.length);
    if (colon == NULL) {
        return false;
    }
    size_t at = (size_t)(colon - text.data);
    int64_t number = -1;
    struct view digits = view_slice(text, at + 1, text.length - at - 1);
    if (!config_number_parse(digits, &number) || number < 0 || number > UINT16_MAX) {
        return false;
    }
    struct view name = view_slice(text, 0, at);
    if (name.length >= 2 && name.data[0] == '[' && name.data[name.length - 1] == ']') {
        name = view_slice(name, 1, name.length - 2);
    } else if (memchr(name.data, ':', name.length) != NULL) {
        return false;
    }
    *host = name;
    *port = (uint16_t)number;
    return true;
}

struct view upper_case(struct arena *arena, struct view text)
{
    uint8_t *upper = arena_take(arena, text.length + 1, 1);
    if (upper == NULL) {
        return VIEW_NULL;
    }
    for (size_t i = 0; i < text.length; i++) {
        upper[i] = (uint8_t)toupper(text.data[i]);
    }
    return (struct view){upper, text.length};
}

enum status endpoint_parse(struct view text, struct arena *arena, struct endpoint *endpoint)
{
    assert(arena != NULL && endpoint != NULL);
    const uint8_t *mark = text.length == 0 ? NULL : memmem(text.data, text.length, "://", 3);
    if (mark == NULL || mark == text.data) {
        return STATUS_INVALID;
    }
    size_t at = (size_t)(mark - text.data);
    struct view address = view_slice(text, at + 3, text.length - at - 3);
    if (!host_port_parse(address, &endpoint->host, &endpoint->port)) {
        return STATUS_INVALID;
    }
    endpoint->name = upper_case(arena, view_slice(text, 0, at));
    return endpoint->name.data == NULL ? STATUS_LIMIT : STATUS_OK;
}

bool host_is_wildcard(struct view host)
{
    return view_is(host, "0.0.0.0") || view_is(host, "::") || view_is(host, "0:0:0:0:0:0:0:0");
}
