/* The controller's commands: a client's wish in, metadata records and the answer out.
 *
 * A command reads the image and changes nothing. Its records are to be appended to
 * __cluster_metadata together; when they are committed and applied, the answer may be given (and
 * not before: a client that is told "created" uses the topic at once). The next command must see an
 * image to which the records of the one before are applied, so commands run one after the other.
 *
 * A client's mistakes are error codes in the answer, with a sentence for people. The only status
 * besides STATUS_OK is STATUS_LIMIT, when the arena is full: then the records must be thrown away.
 * Answers live in the arena, the request, the image and the configuration; all must stay alive and
 * unchanged until the answer is encoded, so hold it no longer than the arena and encode it before
 * the image changes when it has to wait. */
#ifndef OTTLA_BROKER_CONTROLLER_CONTROLLER_H
#define OTTLA_BROKER_CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "broker/config/config.h"
#include "broker/controller/image.h"
#include "broker/controller/metadata_record.h"
#include "messages/add_raft_voter.h"
#include "messages/alter_configs.h"
#include "messages/alter_partition_reassignments.h"
#include "messages/broker_heartbeat.h"
#include "messages/broker_registration.h"
#include "messages/create_partitions.h"
#include "messages/create_topics.h"
#include "messages/delete_topics.h"
#include "messages/errors.h"
#include "messages/incremental_alter_configs.h"
#include "messages/remove_raft_voter.h"
#include "messages/update_raft_voter.h"

enum {
    PRODUCER_ID_BLOCK = 1000,         /* ids a broker gets at a time */
    REQUEST_PARTITIONS_MOST = 100000  /* that one request may make */
};

struct controller {
    const struct image *image;
};

/* The configuration by which its node decides. */
static inline const struct config *controller_config(const struct controller *controller)
{
    return image_broker_config(controller->image);
}

/* Why something is refused; KAFKA_NONE when it is not. */
struct refusal {
    enum kafka_error error;
    struct view why;
};

/* CreateTopics, versions 2 to 7. With validate_only there are no records. */
MUST_USE enum status controller_create_topics(const struct controller *controller,
                                              const struct create_topics_request *request,
                                              int16_t version, struct arena *arena,
                                              struct record_list *records,
                                              struct create_topics_response *response);

/* Creates topics that clients asked for by using them, and internal topics: those with their own
 * partitions, replication and settings (offsets.topic.* and the like), replication no higher than
 * there are brokers, those to come included: INVALID_REPLICATION_FACTOR until enough of them are
 * registered. One refusal for each name: KAFKA_NONE when it is created or there already. */
MUST_USE enum status controller_auto_create(const struct controller *controller,
                                            int brokers_to_come,
                                            const struct view *names, size_t count,
                                            struct arena *arena, struct record_list *records,
                                            struct refusal *refusals);

/* DeleteTopics, versions 1 to 6. */
MUST_USE enum status controller_delete_topics(const struct controller *controller,
                                              const struct delete_topics_request *request,
                                              int16_t version, struct arena *arena,
                                              struct record_list *records,
                                              struct delete_topics_response *response);

/* CreatePartitions, versions 0 to 3. New partitions get groups of their own as long as the topic's
 * cap allows it, then share those that are there. */
MUST_USE enum status controller_create_partitions(const struct controller *controller,
                                                  const struct create_partitions_request *request,
                                                  struct arena *arena, struct record_list *records,
                                                  struct create_partitions_response *response);

/* IncrementalAlterConfigs, versions 0 and 1: sets, deletes, or adds to and takes from lists. Topics
 * can be changed, and the rates of brokers for moving replicas; other resources are refused. Only
 * what differs is recorded. */
MUST_USE enum status controller_incremental_alter_configs(
    const struct controller *controller, const struct incremental_alter_configs_request *request,
    struct arena *arena, struct record_list *records,
    struct incremental_alter_configs_response *response);

/* AlterConfigs, versions 0 to 2: what is not named goes back to its default. */
MUST_USE enum status controller_alter_configs(const struct controller *controller,
                                              const struct alter_configs_request *request,
                                              struct arena *arena, struct record_list *records,
                                              struct alter_configs_response *response);

/* AlterPartitionReassignments: groups begin to move, move elsewhere, or (null replicas) back. All
 * partitions of a group move together. */
MUST_USE enum status controller_alter_reassignments(
    const struct controller *controller,
    const struct alter_partition_reassignments_request *request, struct arena *arena,
    struct record_list *records, struct alter_partition_reassignments_response *response);

/* The group is where the move with this number was to bring it. Nothing when that is over, or
 * another move took its place. */
void controller_end_move(const struct controller *controller, struct uuid topic_id, uint64_t group,
                         int32_t move, struct record_list *records);

/* A block of PRODUCER_ID_BLOCK ids that nobody else gets: *first and those after it. */
void controller_allocate_producer_ids(const struct controller *controller, int32_t broker_id,
                                      struct record_list *records, int64_t *first);

/* A process of a broker registers. Its epoch is the offset of its record, which will be
 * `next_offset`. The same process again changes nothing and gets the epoch it has. STATUS_LIMIT
 * when the arena is full. */
MUST_USE enum status controller_register_broker(const struct controller *controller,
                                                const struct broker_registration_request *request,
                                                int64_t next_offset, struct arena *arena,
                                                struct record_list *records, int64_t *epoch);

/* A broker is gone for good; BROKER_ID_NOT_REGISTERED when there is none of that id. */
enum kafka_error controller_unregister_broker(const struct controller *controller, int32_t id,
                                              struct record_list *records);

/* A broker that stops in a controlled way says so: with wantShutDown it gets no new replicas, with
 * wantFence it is fenced as well, until it registers anew. With cordonedLogDirs (not null) any
 * broker says which of its directories take no new replicas (KIP-1066). BROKER_ID_NOT_REGISTERED,
 * or STALE_BROKER_EPOCH when another process of it has registered since. */
enum kafka_error controller_broker_heartbeat(const struct controller *controller,
                                             const struct broker_heartbeat_request *request,
                                             struct record_list *records);

/* A node is to vote on metadata, or not any more (KIP-853), in a cluster that changes its voters:
 * UNSUPPORTED_VERSION where they are those of the configuration. `listener` is the name of the one
 * whose endpoint is taken, the null view: the first. */
MUST_USE struct refusal controller_add_voter(const struct controller *controller,
                                             const struct add_raft_voter_request *request,
                                             struct view listener, struct arena *arena,
                                             struct record_list *records);
MUST_USE struct refusal controller_remove_voter(const struct controller *controller,
                                                const struct remove_raft_voter_request *request,
                                                struct arena *arena, struct record_list *records);

/* A voter is reached elsewhere from now on. The endpoint it has already changes nothing. When the
 * node asks itself, its directory may be another one, and is recorded too. UNSUPPORTED_VERSION and
 * `listener` as above; VOTER_NOT_FOUND, or INVALID_REQUEST when the endpoint is missing or the node
 * is too old to take part in changes of voters. */
enum kafka_error controller_update_voter(const struct controller *controller,
                                         const struct update_raft_voter_request *request,
                                         bool is_itself, struct view listener,
                                         struct record_list *records);

/* Nobody hears the broker, or somebody does again; nothing when that is known, or when it is not
 * registered. */
void controller_fence_broker(const struct controller *controller, int32_t id, bool fenced,
                             struct record_list *records);

#endif
