/* AlterReplicaLogDirs (KIP-113): a node has one data directory, so that nothing ever moves between
 * directories. Tools name directories all the same: the plan that leads back from a reassignment
 * has them. A replica that is to be where it is, is there; one that is not here yet is not
 * available, and is asked for again; any other directory does not exist, as in Kafka. */
#include <assert.h>

#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "messages/alter_replica_log_dirs.h"
#include "messages/errors.h"
#include "storage/log_dir.h"

#define DIR alter_replica_log_dirs_request_alter_replica_log_dir
#define TOPIC alter_replica_log_dirs_request_alter_replica_log_dir_topic
#define TOPIC_RESULT alter_replica_log_dirs_response_alter_replica_log_dir_topic_result
#define RESULT alter_replica_log_dirs_response_alter_replica_log_dir_partition_result

static enum kafka_error place(const struct request *request, const struct topic_image *topic,
                              int32_t partition)
{
    const struct broker *broker = request->home->broker;
    if (topic == NULL || !topic_image_has(topic, partition)) {
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    if (atomic_load(&broker->storage_failure) != 0) {
        return KAFKA_KAFKA_STORAGE_ERROR;
    }
    return partition_group_has(topic_image_group(topic, partition), broker->node_id)
               ? KAFKA_NONE
               : KAFKA_REPLICA_NOT_AVAILABLE;
}

static struct TOPIC_RESULT answer_topic(struct request *request, const struct TOPIC *from,
                                        bool is_own_dir)
{
    struct topic_image *topic = replicas_topic(request->home->replicas, from->name);
    size_t count = from->partitions_count < 0 ? 0 : (size_t)from->partitions_count;
    struct TOPIC_RESULT out = {.topic_name = from->name};
    out.partitions = request_take(request, count + 1, sizeof *out.partitions);
    for (size_t i = 0; i < count; i++) {
        enum kafka_error error = is_own_dir ? place(request, topic, from->partitions[i])
                                            : KAFKA_LOG_DIR_NOT_FOUND;
        out.partitions[out.partitions_count++] =
            (struct RESULT){.partition_index = from->partitions[i], .error_code = (int16_t)error};
    }
    return out;
}

void alter_replica_log_dirs_handle(struct request *request)
{
    const struct alter_replica_log_dirs_request *message = request->message;
    struct alter_replica_log_dirs_response response = alter_replica_log_dirs_response_default;
    struct view own_path = view_text(log_dir_path(request->home->broker->log_dir));
    size_t topics = 0;
    assert(message != NULL);
    for (int32_t i = 0; i < message->dirs_count; i++) {
        topics += message->dirs[i].topics_count < 0 ? 0 : (size_t)message->dirs[i].topics_count;
    }
    response.results = request_take(request, topics + 1, sizeof *response.results);
    for (int32_t i = 0; i < message->dirs_count; i++) {
        const struct DIR *dir = &message->dirs[i];
        for (int32_t t = 0; t < dir->topics_count; t++) {
            response.results[response.results_count++] =
                answer_topic(request, &dir->topics[t], view_equal(dir->path, own_path));
        }
    }
    request_answer(request, request->home, &response);
}
