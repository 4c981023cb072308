/* A change of one topic's configuration. For the controller's own files alone. */
#ifndef OTTLA_BROKER_CONTROLLER_TOPIC_CHANGE_H
#define OTTLA_BROKER_CONTROLLER_TOPIC_CHANGE_H

#include "broker/controller/command.h"

/* Numbers of Kafka's AlterConfigOp. */
enum config_operation {
    CONFIG_OPERATION_SET = 0,
    CONFIG_OPERATION_DELETE = 1,
    CONFIG_OPERATION_APPEND = 2,
    CONFIG_OPERATION_SUBTRACT = 3
};

struct config_wish {
    struct view name;
    struct view value;
    int8_t operation; /* enum config_operation, or whatever the client sent */
};

/* Applies the wishes to the topic's overrides, or (`replaces`) to none, and records what differs,
 * unless `validate_only`. A mistake is told in *refusal and records nothing. STATUS_LIMIT when the
 * arena is full. */
MUST_USE enum status topic_change(struct command *command, struct view topic_name,
                                  const struct config_wish *wishes, int32_t count, bool replaces,
                                  bool validate_only, struct refusal *refusal);

#endif
