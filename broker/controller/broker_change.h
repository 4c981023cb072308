/* A change of the settings of a broker that may change while it runs. For the controller's own
 * files alone. */
#ifndef OTTLA_BROKER_CONTROLLER_BROKER_CHANGE_H
#define OTTLA_BROKER_CONTROLLER_BROKER_CHANGE_H

#include "broker/controller/command.h"
#include "broker/controller/topic_change.h"

/* Records what the wishes say of the broker whose id is its name (empty: of all), unless
 * `validate_only`; with `replaces`, what is not named goes back to its default. A mistake is told
 * in *refusal and records nothing. STATUS_LIMIT when the arena is full. */
MUST_USE enum status broker_change(struct command *command, struct view broker,
                                   const struct config_wish *wishes, int32_t count, bool replaces,
                                   bool validate_only, struct refusal *refusal);

#endif
