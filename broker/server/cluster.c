/* From controller.quorum.voters to links. What is wrong is said in one line, and the start ends. */
#include "broker/server/cluster.h"

#include <assert.h>

#include "base/log.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"

static bool is_controller(const struct config *config)
{
    uint32_t count;
    const struct view *roles = config_list(config, CONFIG_PROCESS_ROLES, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (view_is(roles[i], "controller")) {
            return true;
        }
    }
    return false;
}

/* Null when all is well, else what is wrong. */
static const char *check_voters(const struct broker *broker)
{
    bool is_voter = false;
    for (int i = 0; i < broker->voter_count; i++) {
        is_voter |= broker->voters[i].node_id == broker->node_id;
        for (int k = 0; k < i; k++) {
            if (broker->voters[k].node_id == broker->voters[i].node_id) {
                return "controller.quorum.voters names a node twice";
            }
        }
    }
    if (is_controller(broker->config) != is_voter) {
        return is_voter ? "controller.quorum.voters names this node (node.id), but process.roles "
                          "has no controller"
                        : "process.roles has controller, but controller.quorum.voters does not "
                          "name this node (node.id)";
    }
    return NULL;
}

enum status cluster_read_voters(struct broker *broker)
{
    struct view why = VIEW_NULL;
    enum status status = quorum_voters_parse(broker->config, &broker->arena, &broker->voters,
                                             &broker->voter_count, &why);
    if (status != STATUS_OK) {
        log_error("config", "%.*s", VIEW_PRINT(why));
        return status;
    }
    for (int i = 0; i < broker->voter_count; i++) {
        broker->in_cluster |= broker->voters[i].node_id != broker->node_id;
    }
    const char *wrong = broker->in_cluster ? check_voters(broker) : NULL;
    if (wrong != NULL) {
        log_error("config", "%s", wrong);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status cluster_check_id(const struct broker *broker, const char *path)
{
    const char *cluster_id = config_string(broker->config, CONFIG_CLUSTER_ID);
    bool has_id = cluster_id != NULL && cluster_id[0] != '\0';
    if (!broker->in_cluster || has_id || log_dir_is_formatted(path)) {
        return STATUS_OK;
    }
    log_error("config", "there are other nodes, but cluster.id is not set and %s is not formatted. "
              "Set the same cluster.id on all nodes, or run ottla format --cluster-id ID on each",
              path);
    return STATUS_INVALID;
}

void cluster_open_links(struct broker *broker)
{
    assert(broker->resolver == NULL);
    assert(broker->cluster_id != NULL);
    broker->resolver = broker->in_cluster ? resolver_new() : NULL;
    for (int i = 0; i < broker->shard_count; i++) {
        struct shard *shard = &broker->shards[i];
        peers_open(shard);
        for (int k = 0; k < broker->voter_count && broker->in_cluster; k++) {
            struct peer_address address = {
                .node = broker->voters[k].node_id,
                .host = broker->voters[k].host,
                .port = broker->voters[k].port,
            };
            peers_put(shard, &address);
        }
    }
}

void cluster_close_links(struct broker *broker)
{
    resolver_close(broker->resolver);
    broker->resolver = NULL;
    for (int i = 0; i < broker->shard_count; i++) {
        peers_close(&broker->shards[i]);
    }
}
