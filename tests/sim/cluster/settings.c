/* Small files, so that they fill up and are used again. Where voters change, what a node knows of
 * the others' addresses is right when it starts, as an operator has to see to, and may be wrong
 * soon after. How a new node finds the voters is here too: the others are looked at, not asked. */
#include "tests/sim/cluster/settings.h"

#include <assert.h>
#include <stdio.h>

#include "broker/config/config.h"
#include "broker/group/replicas.h"
#include "broker/server/cluster.h"
#include "broker/server/quorum_file.h"
#include "broker/server/quorum_search.h"
#include "storage/log_dir.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

#define CLUSTER_ID "c2ltdWxhdGVkQ2x1c3Rlcg"

enum { LINE = 200, OWN = 8 };

static const char *const fixed[] = {
    "cluster.id=" CLUSTER_ID, "offsets.topic.num.partitions=2",
    "offsets.topic.replication.factor=3", "default.replication.factor=3",
    "journal.file.bytes=1048576", "journal.size.bytes=33554432",
    "log.segment.bytes=1048576", "group.initial.rebalance.delay.ms=0",
    "broker.session.timeout.ms=3000", "replica.lag.time.max.ms=1000",
    "ottla.fetch.tail.bytes=1048576", "checkpoint.interval.ms=5000",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
};

enum { FIXED = sizeof fixed / sizeof *fixed };

static bool is_voter(int32_t id)
{
    return cluster.changes_voters || id <= 3 + 2 * (cluster.count >= 5);
}

/* Who votes; or, where that changes, where controllers are to be met. */
static void write_quorum(char line[LINE])
{
    size_t length = (size_t)snprintf(line, LINE, "controller.quorum.%s=",
                                     cluster.changes_voters ? "bootstrap.servers" : "voters");
    for (int i = 0; i < cluster.count; i++) {
        const struct sim_node *node = &cluster.nodes[i];
        const char *comma = i > 0 ? "," : "";
        if (cluster.changes_voters) {
            length += (size_t)snprintf(line + length, LINE - length, "%snode%d:%u", comma,
                                       (int)node->id, node->controller_port);
        } else if (is_voter(node->id)) {
            length += (size_t)snprintf(line + length, LINE - length, "%s%d@node%d:%d", comma,
                                       (int)node->id, (int)node->id, CONTROLLER_PORT);
        }
    }
    assert(length < LINE);
}

static void write_listeners(char line[LINE], const struct sim_node *node)
{
    int length = snprintf(line, LINE, "listeners=PLAINTEXT://node%d:9092", (int)node->id);
    if (cluster.changes_voters) {
        snprintf(line + length, (size_t)(LINE - length), ",CONTROLLER://node%d:%u", (int)node->id,
                 node->controller_port);
    } else if (is_voter(node->id)) {
        snprintf(line + length, (size_t)(LINE - length), ",CONTROLLER://:%d", CONTROLLER_PORT);
    }
}

void settings_draw(struct sim_node *node)
{
    node->controller_port = CONTROLLER_PORT;
    node->shard_count = 1 + (int)world_random(2);
    node->elections_most = 1 + (int)world_random(3);
}

void settings_move(struct sim_node *node)
{
    assert(cluster.changes_voters);
    unsigned step = 1 + (unsigned)world_random(CONTROLLER_PORTS - 1);
    node->controller_port =
        CONTROLLER_PORT + (node->controller_port - CONTROLLER_PORT + step) % CONTROLLER_PORTS;
}

void settings_make(struct sim_node *node)
{
    char own[OWN][LINE];
    const char *overrides[FIXED + OWN];
    config_free(node->config);
    write_quorum(own[0]);
    write_listeners(own[1], node);
    snprintf(own[2], LINE, "node.id=%d", (int)node->id);
    snprintf(own[3], LINE, "process.roles=%s",
             is_voter(node->id) ? "broker,controller" : "broker");
    snprintf(own[4], LINE, "ottla.shards=%d", node->shard_count);
    snprintf(own[5], LINE, "log.dirs=/data");
    snprintf(own[6], LINE, "ottla.elections.max=%d", node->elections_most);
    snprintf(own[7], LINE, "metadata.log.max.record.bytes.between.snapshots=%d",
             cluster.changes_voters ? 3000 : 20971520);
    for (int i = 0; i < FIXED; i++) {
        overrides[i] = fixed[i];
    }
    for (int i = 0; i < OWN; i++) {
        overrides[FIXED + i] = own[i];
    }
    struct config_sources sources = {.overrides = overrides, .override_count = FIXED + OWN};
    char why[CONFIG_WHY_BYTES];
    node->config = NULL;
    enum status status = config_load(&sources, &node->config, why);
    world_require(status == STATUS_OK, "the configuration: %s", why);
}

void settings_format_first(struct sim_node *node)
{
    struct quorum_voter self = {.node_id = node->id, .port = (uint16_t)node->controller_port};
    const struct quorum_list voters = {&self, 1};
    const struct log_dir_settings settings = {
        .path = "/data", .node_id = node->id, .cluster_id = CLUSTER_ID};
    struct log_dir *dir;
    char host[16];
    snprintf(host, sizeof host, "node%d", (int)node->id);
    self.host = view_text(host);
    node_enter_place(node->id);
    enum status status = log_dir_open(&settings, &dir);
    world_require(status == STATUS_OK, "formatting: %s", status_text(status));
    log_dir_close(dir);
    status = quorum_file_write("/data", voters, voters);
    world_require(status == STATUS_OK, "formatting: %s", status_text(status));
    node_leave_place(node->id);
}

/* ---- The search for the voters ------------------------------------------------------------- */

static bool may_ask(const struct sim_node *asker, const struct sim_node *other)
{
    return other != asker && other->broker != NULL && !other->is_paused && !other->is_off &&
           other->broker->cluster_id != NULL && other->broker->shards[0].replicas != NULL &&
           !network.cut[asker->id][other->id] && !network.cut[other->id][asker->id];
}

static bool leads_metadata(const struct sim_node *node)
{
    const struct group *group = replicas_group(node->broker->shards[0].replicas, METADATA_GROUP_ID);
    return group != NULL && group->leads;
}

static void copy_voters(struct broker *broker, const struct sim_node *from,
                        struct quorum_list *found)
{
    const struct quorum_voter *voters = cluster_voters(&from->broker->shards[0], &found->count);
    found->voters = arena_take(&broker->arena, (size_t)found->count, sizeof *found->voters);
    for (int i = 0; i < found->count; i++) {
        found->voters[i] = voters[i];
        found->voters[i].host = arena_copy(&broker->arena, voters[i].host);
    }
    world_say("node %d hears from node %d that %d nodes vote on metadata", broker->node_id,
              from->id, found->count);
}

/* In place of the broker's own: whoever leads is asked first, then anybody. */
enum status quorum_search(struct broker *broker, struct quorum_list *found)
{
    const struct sim_node *asker = node_current();
    int first = (int)world_random((uint64_t)cluster.count);
    assert(asker != NULL && found != NULL);
    for (int i = 0; i < 2 * cluster.count; i++) {
        const struct sim_node *other = &cluster.nodes[(first + i) % cluster.count];
        if (may_ask(asker, other) && (i >= cluster.count || leads_metadata(other))) {
            copy_voters(broker, other, found);
            return STATUS_OK;
        }
    }
    return STATUS_CLOSED; /* its supervisor starts it again */
}
