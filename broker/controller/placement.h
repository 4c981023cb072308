/* Which group each new partition belongs to, and on which brokers new groups live.
 *
 * A topic's partitions are spread round-robin over min(partitions, cap) groups. Up to the cap each
 * partition has a group, and so a leader, of its own, exactly as in Kafka. The result is a record:
 * it is stored, never computed again. */
#ifndef OTTLA_BROKER_CONTROLLER_PLACEMENT_H
#define OTTLA_BROKER_CONTROLLER_PLACEMENT_H

#include "broker/controller/command.h"
#include "messages/ottla_records.h"

/* One partition's brokers as a client names them. */
struct replica_list {
    const int32_t *brokers;
    int32_t count;
};

/* Spreads the partitions from those the topic has (`topic` null: none) up to `count_after` over at
 * most `cap` groups. Each new group gets `replication` brokers, in as many racks as there are.
 * Which ones follows from its id alone, so that preferred leaders are spread over the brokers
 * within a topic and from topic to topic. STATUS_LIMIT when the arena is full. */
MUST_USE enum status placement_spread(struct command *command, const struct topic_image *topic,
                                      int32_t count_after, uint32_t cap, int32_t replication,
                                      struct partition_groups_record *record);

/* The same with the brokers that the client named for each new partition, checked before. Beyond
 * the cap, partitions share a group only with others of the same brokers in the same order. */
MUST_USE enum status placement_manual(struct command *command, const struct topic_image *topic,
                                      const struct replica_list *lists, int32_t list_count,
                                      uint32_t cap, struct partition_groups_record *record);

/* Whether the client's list of brokers can be a partition's; `replication` is what the partitions
 * before it have, or 0. */
MUST_USE struct refusal placement_check(const struct command *command, struct replica_list list,
                                        int32_t replication);

/* The answer where a client names a broker that takes no new replicas. */
MUST_USE struct refusal placement_cordoned(const struct command *command, int32_t id);

/* Whether so many replicas can be placed at all. */
MUST_USE struct refusal placement_reach(const struct command *command, int32_t replication);

#endif
