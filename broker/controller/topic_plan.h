/* A topic that is to be created, checked and placed but not yet written. For the controller's own
 * files alone. */
#ifndef OTTLA_BROKER_CONTROLLER_TOPIC_PLAN_H
#define OTTLA_BROKER_CONTROLLER_TOPIC_PLAN_H

#include "broker/controller/command.h"
#include "broker/controller/placement.h"

/* What is asked for, whoever asks. */
struct topic_wish {
    const struct create_topics_request_creatable_topic *topic;
    uint32_t group_cap; /* 0: as the topic's settings say */
};

struct topic_plan {
    struct view name;
    struct uuid id;
    struct topic_override *overrides; /* sorted by key, each once */
    uint32_t override_count;
    int32_t partition_count;
    int32_t replication;
    struct partition_groups_record groups;
};

/* Checks the wish against the image and, when nothing is wrong, fills the plan and gives out its
 * group ids. A mistake is told in *refusal. STATUS_LIMIT when the arena is full. */
MUST_USE enum status topic_plan_make(struct command *command, const struct topic_wish *wish,
                                     struct topic_plan *plan, struct refusal *refusal);

/* Appends the plan's records. */
void topic_plan_record(struct command *command, const struct topic_plan *plan);

#endif
