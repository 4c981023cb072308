/* One NAME://host:port as in listeners and advertised.listeners. */
#ifndef OTTLA_BROKER_CONFIG_ENDPOINT_H
#define OTTLA_BROKER_CONFIG_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"

struct endpoint {
    struct view name; /* upper case, as Kafka makes listener names */
    struct view host; /* may be empty; without the brackets of an IPv6 address */
    uint16_t port;
};

/* Splits "NAME://host:port". STATUS_INVALID when it is not of this form, STATUS_LIMIT when the
 * arena has no room for the name. */
MUST_USE enum status endpoint_parse(struct view text, struct arena *arena,
                                    struct endpoint *endpoint);

/* Splits "host:port" or "[ipv6]:port"; the host may be empty. False when it is not of this form. */
bool host_port_parse(struct view text, struct view *host, uint16_t *port);

/* Whether the text names every address (0.0.0.0, ::), which nobody can connect to. */
bool host_is_wildcard(struct view host);

/* A copy in upper case; null view when the arena is full. */
struct view upper_case(struct arena *arena, struct view text);

#endif
