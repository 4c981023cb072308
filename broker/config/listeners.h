/* Listeners: on which addresses the broker is reached, what it calls itself there, and who may use
 * them. Made once at the start from listeners, advertised.listeners,
 * listener.security.protocol.map, controller.listener.names and inter.broker.listener.name.
 *
 * A client must be told the advertised address of the very listener it came in on; so both sides
 * of a listener stand together here. */
#ifndef OTTLA_BROKER_CONFIG_LISTENERS_H
#define OTTLA_BROKER_CONFIG_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/uuid.h"
#include "base/view.h"
#include "broker/config/config.h"

enum { LISTENER_LIMIT = 16, QUORUM_VOTER_LIMIT = 15 };

/* Numbers of Kafka's SecurityProtocol. */
enum security_protocol {
    SECURITY_PLAINTEXT = 0,
    SECURITY_SSL = 1,
    SECURITY_SASL_PLAINTEXT = 2,
    SECURITY_SASL_SSL = 3
};

struct listener {
    struct view name;            /* upper case */
    struct view host;            /* to bind; empty for all addresses; no brackets around IPv6 */
    uint16_t port;               /* to bind; 0 lets the system choose */
    uint16_t advertised_port;    /* 0 means the bound port */
    struct view advertised_host; /* what clients are told; null when they are told nothing */
    enum security_protocol protocol;
    bool is_controller;          /* for controllers alone, never told to clients */
    bool is_inter_broker;        /* where the other brokers come in */
};

struct listeners {
    struct listener *items;
    int count;
};

/* Reads the listeners out of the configuration. `host_name` is this machine's name, advertised
 * where a listener has no host of its own. All texts live in the arena or the configuration.
 *
 * Without any setting the one listener is PLAINTEXT on port 9092 of all addresses, advertised as
 * localhost. Without `listeners`, those of advertised.listeners are bound on all addresses, as
 * container images do. STATUS_INVALID and STATUS_UNSUPPORTED (SSL and SASL): *why is a line for the
 * operator. STATUS_LIMIT: more than LISTENER_LIMIT of them, or the arena is full. */
MUST_USE enum status listeners_resolve(const struct config *config, const char *host_name,
                                       struct arena *arena, struct listeners *listeners,
                                       struct view *why);

/* The listener for the other brokers; null on a node that is only a controller. */
const struct listener *listeners_inter_broker(const struct listeners *listeners);

/* A node that votes on metadata: one entry of controller.quorum.voters, or of the metadata. */
struct quorum_voter {
    int32_t node_id;
    struct uuid directory_id;    /* zero: not known */
    struct view host;
    uint16_t port;
};

/* Reads "1@host:9093"; the host is a part of the text. */
MUST_USE bool quorum_voter_parse(struct view text, struct quorum_voter *voter);

/* Reads controller.quorum.voters ("1@host:9093,2@..."); none when it is not set, which means that
 * this node stands alone. STATUS_INVALID with a line in *why; STATUS_LIMIT past
 * QUORUM_VOTER_LIMIT or when the arena is full. */
MUST_USE enum status quorum_voters_parse(const struct config *config, struct arena *arena,
                                         struct quorum_voter **voters, int *count,
                                         struct view *why);

#endif
