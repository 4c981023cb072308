/* From the configuration to links. What is wrong is said in one line, and the start ends. */
#include "broker/server/cluster.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "broker/config/endpoint.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "broker/server/quorum_file.h"
#include "broker/server/quorum_search.h"
#include "broker/server/voter_address.h"

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

enum { WARN_FIRST = 10, WARN_EVERY = 100 }; /* tries */

/* A wildcard is bound for every name of this machine; localhost is one. */
bool cluster_is_own(const struct broker *broker, struct view address)
{
    struct view host;
    uint16_t port;
    assert(broker->listeners.count > 0);
    if (!host_port_parse(address, &host, &port)) {
        return false;
    }
    for (int i = 0; i < broker->listeners.count; i++) {
        const struct listener *listener = &broker->listeners.items[i];
        bool is_here = view_equal(host, listener->host) || view_is(host, "localhost") ||
                       (listener->host.length == 0 && view_is(host, "127.0.0.1")) ||
                       (listener->advertised_host.data != NULL &&
                        view_equal(host, listener->advertised_host));
        if (listener->port == port && is_here) {
            return true;
        }
    }
    return false;
}

/* A node whose bootstrap servers are itself alone, and that was not formatted as the first one of a
 * cluster, stands alone: nobody could be meant. */
static bool has_quorum_elsewhere(const struct broker *broker)
{
    uint32_t count;
    const struct view *servers =
        config_list(broker->config, CONFIG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, &count);
    bool is_elsewhere = false;
    for (uint32_t i = 0; i < count; i++) {
        is_elsewhere |= !cluster_is_own(broker, servers[i]);
    }
    uint32_t directories;
    char *path = view_copy_text(config_data_directories(broker->config, &directories)[0]);
    is_elsewhere |= count > 0 && quorum_file_exists(path);
    free(path);
    return is_elsewhere;
}

/* Rests before the next try. */
static bool is_told_to_stop(void)
{
    const struct timespec rest = {.tv_nsec = 100 * 1000 * 1000};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return sigtimedwait(&signals, NULL, &rest) > 0;
}

/* Until somebody knows, or the process is told to stop. */
static enum status search(struct broker *broker, struct quorum_list *found)
{
    enum status status = quorum_search(broker, found);
    assert(broker->changes_voters);
    for (unsigned tries = 0; status == STATUS_NOT_FOUND && !is_told_to_stop(); tries++) {
        if (tries % WARN_EVERY == WARN_FIRST) {
            log_warn("cluster", "none of controller.quorum.bootstrap.servers knows who votes on "
                     "metadata; trying again. Does the first node of the cluster run, formatted "
                     "with --standalone?");
        }
        status = quorum_search(broker, found);
    }
    return status;
}

enum status cluster_find_voters(struct broker *broker)
{
    const char *path = log_dir_path(broker->log_dir);
    struct quorum_list first;
    struct quorum_list now;
    if (!broker->changes_voters) {
        return STATUS_OK;
    }
    enum status status = quorum_file_read(path, &broker->arena, &first, &now);
    if (status == STATUS_NOT_FOUND) {
        status = search(broker, &now);
        first = now;
        status = status == STATUS_OK ? quorum_file_write(path, first, now) : status;
    }
    if (status == STATUS_OK) {
        assert(now.count > 0 && first.count > 0);
        broker->voters = now.voters;
        broker->voter_count = now.count;
        broker->first_voters = first.voters;
        broker->first_voter_count = first.count;
    } else if (status != STATUS_NOT_FOUND) {
        log_error("cluster", "%s/" QUORUM_FILE " cannot be used: %s", path, status_text(status));
    }
    return status == STATUS_NOT_FOUND ? STATUS_CLOSED : status;
}

enum status cluster_begin_with_voters(struct broker *broker)
{
    const struct quorum_list now = {broker->voters, broker->voter_count};
    assert(broker->changes_voters && now.count > 0);
    broker->first_voters = now.voters;
    broker->first_voter_count = now.count;
    return quorum_file_write(log_dir_path(broker->log_dir), now, now);
}

static bool are_same(struct quorum_list one, struct quorum_list other)
{
    bool same = one.count == other.count;
    for (int i = 0; i < one.count && same; i++) {
        same = one.voters[i].node_id == other.voters[i].node_id &&
               one.voters[i].port == other.voters[i].port &&
               view_equal(one.voters[i].host, other.voters[i].host);
    }
    return same;
}

static struct quorum_list list_in(const struct broker *broker, const struct cluster_image *image)
{
    if (image->voter_count == 0) {
        return (struct quorum_list){broker->voters, broker->voter_count};
    }
    return (struct quorum_list){(struct quorum_voter *)(uintptr_t)image->voters,
                                image->voter_count};
}

void cluster_keep_voters(struct shard *shard, const struct cluster_image *before,
                         const struct cluster_image *now)
{
    const struct broker *broker = shard->broker;
    const struct quorum_list first = {broker->first_voters, broker->first_voter_count};
    struct quorum_list list = list_in(broker, now);
    assert(shard->number == 0);
    if (broker->changes_voters && !are_same(list, list_in(broker, before))) {
        quorum_file_submit(shard->replicas->writer, shard->replicas->logs,
                           log_dir_path(broker->log_dir), first, list);
    }
}

const struct quorum_voter *cluster_voters(const struct shard *shard, int *count)
{
    const struct broker *broker = shard->broker;
    const struct cluster_image *image = shard->replicas->cluster;
    assert(image != NULL);
    *count = image->voter_count > 0 ? image->voter_count : broker->voter_count;
    return image->voter_count > 0 ? image->voters : broker->voters;
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
    broker->changes_voters = broker->voter_count == 0 && has_quorum_elsewhere(broker);
    const char *wrong = broker->in_cluster ? check_voters(broker) : NULL;
    broker->in_cluster |= broker->changes_voters;
    broker->first_voters = broker->voters;
    broker->first_voter_count = broker->voter_count;
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

/* What this node says of itself at hello: its listener of controllers, or what all nodes have in
 * controller.quorum.voters. */
static struct place own_place(const struct broker *broker)
{
    struct view name;
    struct view host;
    uint16_t port;
    if (broker->changes_voters && voter_address_own(broker, &name, &host, &port)) {
        return place_of(host, port);
    }
    for (int i = 0; i < broker->voter_count && !broker->changes_voters; i++) {
        if (broker->voters[i].node_id == broker->node_id &&
            !host_is_wildcard(broker->voters[i].host)) {
            return place_of(broker->voters[i].host, broker->voters[i].port);
        }
    }
    return (struct place){0};
}

static struct meeting_places meeting_places(const struct broker *broker)
{
    struct meeting_places places = {0};
    uint32_t count;
    const struct view *servers =
        config_list(broker->config, CONFIG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, &count);
    assert(places.count == 0);
    for (uint32_t i = 0; i < count && places.count < MEETING_PLACES_MOST; i++) {
        struct view host;
        uint16_t port;
        if (broker->changes_voters && host_port_parse(servers[i], &host, &port) &&
            !cluster_is_own(broker, servers[i])) {
            places.list[places.count++] = place_of(host, port);
        }
    }
    return places;
}

void cluster_open_links(struct broker *broker)
{
    assert(broker->resolver == NULL);
    assert(broker->cluster_id != NULL);
    broker->own_place = own_place(broker);
    broker->meeting_places = meeting_places(broker);
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
    if (broker->in_cluster) {
        peers_meet(&broker->shards[0]);
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
