/* A client's request that is one command of the controller: CreateTopics and the like.
 *
 * The answer is made and encoded when the command runs, against the image it saw, and given when
 * its records are in force; when they could not be written it is made anew with the reason. A node
 * that does not lead the metadata log passes the request on.
 */
#ifndef OTTLA_BROKER_API_CONTROLLER_REQUEST_H
#define OTTLA_BROKER_API_CONTROLLER_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "broker/api/request.h"
#include "broker/controller/controller.h"

/* How one API does it. */
struct controller_request_kind {
    size_t response_size;
    /* Makes records and response, on shard 0. Only STATUS_OK may come of it: what a client can ask
     * for is bounded while decoding. */
    enum status (*make)(const struct controller *controller, struct request *request,
                        struct record_list *records, void *response);
    /* Writes the error into what was going to be successful. */
    void (*fail)(void *response, int16_t error);
    /* What the records say is in force, or nothing was to be written: takes the request over, to
     * bring it home when all that the answer promises is so. Null: it is so already. */
    void (*settle)(struct request *request, void *response);
};

/* Takes over the request; the kind must live as long as the process. */
void controller_request_start(struct request *request, const struct controller_request_kind *kind);

#endif
