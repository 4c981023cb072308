/* One look at all brokers each tick while this node leads, and at most one command under way. When
 * leadership is new, everybody counts as heard just now. Cannot fail: a command that does not come
 * through is found missing at the next look. */
#include "broker/server/fencing.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/controller.h"
#include "broker/peer/peers.h"
#include "messages/errors.h"

enum { LOOK_EVERY_MS = 100 };

void fencing_init(struct fencing *fencing)
{
    *fencing = (struct fencing){0};
}

void fencing_free(struct fencing *fencing)
{
    free(fencing->heard);
    *fencing = (struct fencing){0};
}

static struct broker_heard *find_heard(struct fencing *fencing, int32_t node, uint64_t now_ms)
{
    for (int i = 0; i < fencing->heard_count; i++) {
        if (fencing->heard[i].node == node) {
            return &fencing->heard[i];
        }
    }
    fencing->heard = memory_resize(fencing->heard, (size_t)fencing->heard_count + 1,
                                   sizeof *fencing->heard);
    fencing->heard[fencing->heard_count] = (struct broker_heard){node, now_ms};
    return &fencing->heard[fencing->heard_count++];
}

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct fencing *fencing = container_of(command, struct fencing, command);
    const struct controller controller = {image};
    controller_fence_broker(&controller, fencing->node, fencing->fence, records);
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct fencing *fencing = container_of(command, struct fencing, command);
    fencing->is_under_way = false;
    if (error == KAFKA_NONE) {
        log_info("cluster", "broker %d %s", fencing->node,
                 fencing->fence ? "is fenced: nobody has heard it for broker.session.timeout.ms"
                                : "is back");
    }
}

static void change(struct metadata_log *log, int32_t node, bool fence)
{
    struct fencing *fencing = &log->fencing;
    assert(!fencing->is_under_way);
    fencing->is_under_way = true;
    fencing->node = node;
    fencing->fence = fence;
    fencing->command = (struct metadata_command){.run = run, .done = ended};
    metadata_submit(&log->broker->shards[0], &fencing->command);
}

static void look_at(struct metadata_log *log, const struct register_broker_record *broker,
                    uint64_t now_ms)
{
    struct fencing *fencing = &log->fencing;
    uint64_t timeout_ms =
        (uint64_t)config_int(log->broker->config, CONFIG_BROKER_SESSION_TIMEOUT_MS);
    struct broker_heard *heard = find_heard(fencing, broker->broker_id, now_ms);
    bool is_alive = peers_is_alive(log->broker, broker->broker_id);
    heard->at_ms = is_alive ? now_ms : heard->at_ms;
    if (fencing->is_under_way) {
        return;
    }
    bool is_back = is_alive && !planted(PLANT_UNFENCING_FORGOTTEN);
    if (is_back && broker->fenced && !broker->in_controlled_shutdown) {
        change(log, broker->broker_id, false);
    } else if (!is_alive && !broker->fenced && now_ms - heard->at_ms >= timeout_ms &&
               !planted(PLANT_FENCING_FORGOTTEN)) {
        change(log, broker->broker_id, true);
    }
}

void fencing_tick(struct metadata_log *log, uint64_t now_ms)
{
    struct fencing *fencing = &log->fencing;
    bool leads = log->group != NULL && log->announced && group_error(log->group) == KAFKA_NONE;
    if (!leads || !log->broker->in_cluster) {
        fencing->heard_count = 0;
        return;
    }
    if (now_ms < fencing->next_look_ms) {
        return;
    }
    fencing->next_look_ms = now_ms + LOOK_EVERY_MS;
    for (int i = 0; i < image_broker_count(log->image); i++) {
        look_at(log, image_broker(log->image, i), now_ms);
    }
}
