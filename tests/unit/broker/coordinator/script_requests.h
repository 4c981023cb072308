/* Requests of a script: each builds one message from the words of its line and sends it. */
#ifndef OTTLA_TESTS_UNIT_BROKER_COORDINATOR_SCRIPT_REQUESTS_H
#define OTTLA_TESTS_UNIT_BROKER_COORDINATOR_SCRIPT_REQUESTS_H

#include <stdbool.h>

#include "tests/unit/broker/coordinator/harness.h"
#include "tests/unit/broker/coordinator/script_words.h"

/* Sends the request that the line names; false when it names none. */
bool script_send(struct harness *harness, const struct script_words *words);

#endif
