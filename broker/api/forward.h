/* Requests that only the node which leads the metadata log can run: passed on to it as they came,
 * and answered when this node has what they made. */
#ifndef OTTLA_BROKER_API_FORWARD_H
#define OTTLA_BROKER_API_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/api/request.h"

/* Whether the request has to be passed on: others lead, or nobody does. */
bool forward_is_needed(const struct request *request);

/* Passes a client's request on and answers it; `refuse` of its service answers when nobody leads
 * for too long. */
void forward_to_controller(struct request *request);

/* For a handler whose command ended with NOT_CONTROLLER: takes the request over and returns true,
 * to try the new leader; false when this node stands alone, or the service has no `refuse`, and the
 * handler must answer itself. On its home. */
bool forward_after_all(struct request *request);

#endif
