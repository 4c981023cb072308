/* The brokers of the cluster as the metadata log has them: an immutable, reference-counted picture
 * that threads share, as topic_image.h is for topics. Each shard holds the latest one in
 * replicas->cluster; it is never null and always contains this node.
 */
#ifndef OTTLA_BROKER_CONTROLLER_CLUSTER_IMAGE_H
#define OTTLA_BROKER_CONTROLLER_CLUSTER_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/uuid.h"
#include "base/view.h"
#include "broker/config/config.h"
#include "broker/controller/image.h"

/* One advertised listener of a broker. */
struct cluster_endpoint {
    struct view name;            /* of the listener, upper case */
    struct view host;
    uint16_t port;
    int16_t security_protocol;   /* Kafka's number */
};

struct cluster_broker {
    int32_t id;
    struct uuid incarnation;
    int64_t epoch;               /* of its registration */
    struct view rack;            /* null: none */
    bool is_fenced;              /* not heard for long: not told to clients, gets no new replicas */
    bool is_stopping;            /* in controlled shutdown */
    bool is_cordoned;            /* takes no new replicas (KIP-1066) */
    bool is_cordoned_itself;     /* as it says itself; a setting made while it runs counts more */
    int64_t leader_rate;         /* replication throttles, bytes a second (group/throttle.h); 0: */
    int64_t follower_rate;       /* without limit */
    const struct cluster_endpoint *endpoints;
    int32_t endpoint_count;
};

/* What was set while the brokers run (config/settings.h). */
struct cluster_setting {
    struct view broker;          /* its id as text; empty: all */
    enum config_key key;
    struct view value;
};

struct cluster_image {
    atomic_uint references;
    struct arena arena;          /* holds all that the image points to */
    const struct cluster_broker *brokers; /* sorted by id */
    int32_t broker_count;
    bool is_registered;          /* this very process is */
    const struct cluster_setting *settings; /* in no order */
    int setting_count;
    const struct quorum_voter *voters;    /* image_voters */
    int voter_count;
};

/* A new picture with one reference: the brokers that the metadata has registered (null: none), and
 * this node as it knows itself unless this very process is registered. Everything is copied. */
struct cluster_image *cluster_image_new(const struct image *metadata,
                                        const struct cluster_broker *self);

/* One reference more; safe from every thread. */
struct cluster_image *cluster_image_ref(struct cluster_image *image);

/* One reference less; the last one frees the image. Null is allowed. */
void cluster_image_unref(struct cluster_image *image);

/* The broker, or null when there is none of this id. */
const struct cluster_broker *cluster_image_find(const struct cluster_image *image, int32_t id);

/* What was set for the broker whose id is that text (empty: for all) while it runs; the null view
 * when nothing was. Alive as long as the image. */
struct view cluster_image_setting(const struct cluster_image *image, struct view broker,
                                  enum config_key key);

/* The broker's endpoint on the listener of that name, or null. */
const struct cluster_endpoint *cluster_broker_endpoint(const struct cluster_broker *broker,
                                                       struct view listener);

#endif
