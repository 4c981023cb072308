/* First all directories are looked at, then those that need it are made. The lock of a directory is
 * held only while it is made; a broker that runs in one makes its formatting fail. */
#include "broker/server/format.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "broker/config/config.h"
#include "broker/config/endpoint.h"
#include "broker/config/listeners.h"
#include "broker/server/quorum_file.h"
#include "io/random.h"
#include "storage/log_dir.h"

enum { ARENA_BYTES = 1024 * 1024, HOST_NAME_BYTES = 256 };

static int refuse(const char *path)
{
    fprintf(stderr, "ottla: log directory %s is already formatted. Use --ignore-formatted to "
            "ignore this directory and format the others.\n", path);
    return 1;
}

/* The voters of a new cluster that will find more of them later: this node alone. */
static enum status write_voters(const struct config *config, const char *path)
{
    struct arena arena;
    struct listeners listeners;
    struct view why = VIEW_NULL;
    char host_name[HOST_NAME_BYTES] = "localhost";
    arena_init(&arena, ARENA_BYTES);
    gethostname(host_name, sizeof host_name - 1);
    enum status status = listeners_resolve(config, host_name, &arena, &listeners, &why);
    struct quorum_voter self = {.node_id = config_int(config, CONFIG_NODE_ID)};
    for (int i = 0; i < listeners.count && status == STATUS_OK && self.port == 0; i++) {
        const struct listener *listener = &listeners.items[i];
        bool has_host = listener->advertised_host.data != NULL;
        if (listener->is_controller) {
            self.host = has_host ? listener->advertised_host : listener->host;
            self.host = self.host.length == 0 || host_is_wildcard(self.host) ? view_text(host_name)
                                                                             : self.host;
            self.port = has_host && listener->advertised_port != 0 ? listener->advertised_port
                                                                   : listener->port;
        }
    }
    if (status != STATUS_OK || self.port == 0) {
        fprintf(stderr, "ottla: --standalone needs a listener of controllers with a port of its "
                "own (controller.listener.names): %.*s\n", VIEW_PRINT(why));
        status = STATUS_INVALID;
    } else {
        const struct quorum_list list = {&self, 1};
        status = quorum_file_write(path, list, list);
    }
    arena_free(&arena);
    return status;
}

static bool has_more_later(const struct config *config)
{
    uint32_t servers;
    assert(config != NULL);
    uint32_t voters;
    config_list(config, CONFIG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, &servers);
    config_list(config, CONFIG_CONTROLLER_QUORUM_VOTERS, &voters);
    return servers > 0 && voters == 0;
}

/* Makes it, or checks that one that is there belongs to this node and cluster. */
static enum status make(const struct config *config, const struct format_settings *settings,
                        const char *path, bool *is_new)
{
    const struct log_dir_settings wanted = {
        .path = path,
        .node_id = config_int(config, CONFIG_NODE_ID),
        .cluster_id = settings->cluster_id,
        .has_peers = !settings->standalone, /* or so it may be */
    };
    struct log_dir *dir;
    enum status status = log_dir_open(&wanted, &dir);
    *is_new = false;
    if (status == STATUS_OK) {
        *is_new = log_dir_is_new(dir);
        log_dir_close(dir);
    }
    if (*is_new && settings->standalone && has_more_later(config)) {
        status = write_voters(config, path);
    }
    return status;
}

static bool check_all(const struct view *paths, uint32_t count)
{
    bool is_free = true;
    assert(paths != NULL);
    for (uint32_t i = 0; i < count && is_free; i++) {
        char *path = view_copy_text(paths[i]);
        is_free = !log_dir_is_formatted(path) || refuse(path) == 0;
        free(path);
    }
    return is_free;
}

int format_run(const struct config *config, const struct format_settings *settings)
{
    uint32_t count;
    const struct view *paths = config_data_directories(config, &count);
    enum status status = STATUS_OK;
    uint32_t made = 0;
    assert(settings->cluster_id != NULL && settings->cluster_id[0] != '\0');
    assert(count > 0);
    if (!settings->ignore_formatted && !check_all(paths, count)) {
        return 1;
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        char *path = view_copy_text(paths[i]);
        bool is_new;
        status = make(config, settings, path, &is_new);
        if (is_new) {
            printf("Formatting metadata directory %s with cluster id %s.\n", path,
                   settings->cluster_id);
            made++;
        }
        free(path);
    }
    if (status == STATUS_OK && made == 0) {
        puts("All of the log directories are already formatted.");
    }
    return status == STATUS_OK ? 0 : 1;
}

int format_random_uuid(void)
{
    char text[UUID_TEXT_LENGTH + 1];
    uuid_text(random_uuid(), text);
    puts(text);
    return 0;
}
