/* Resolving of listeners. Owns nothing: the result lives in the caller's arena.
 *
 * Happy path: bind addresses from `listeners` (or derived), then each gets its protocol, its role
 * and its advertised address, then the whole is checked. Every refusal is one sentence for the
 * operator: a wrong address shows nowhere else until a client hangs. */
#include "broker/config/listeners.h"

#include <assert.h>
#include <string.h>

#include "broker/config/endpoint.h"
#include "broker/config/value.h"

/* What one resolve works on. */
struct resolver {
    const struct config *config;
    const char *host_name;
    struct arena *arena;
    struct listeners *listeners;
    struct view *why;
    bool is_derived; /* nothing is configured but perhaps advertised addresses */
};

static const char *const protocol_names[] = {
    [SECURITY_PLAINTEXT] = "PLAINTEXT",
    [SECURITY_SSL] = "SSL",
    [SECURITY_SASL_PLAINTEXT] = "SASL_PLAINTEXT",
    [SECURITY_SASL_SSL] = "SASL_SSL",
};

enum { PROTOCOL_COUNT = 4 };

#define REFUSE(resolver, status, ...) \
    (*(resolver)->why = arena_format((resolver)->arena, __VA_ARGS__), (status))

static struct listener *find(const struct listeners *listeners, struct view name)
{
    for (int i = 0; i < listeners->count; i++) {
        if (view_equal(listeners->items[i].name, name)) {
            return &listeners->items[i];
        }
    }
    return NULL;
}

static enum status add(struct resolver *to, struct endpoint endpoint, enum config_key key)
{
    if (to->listeners->count == LISTENER_LIMIT) {
        return REFUSE(to, STATUS_LIMIT, "%s: at most %d listeners are possible",
                      config_keys[key].name, LISTENER_LIMIT);
    }
    if (find(to->listeners, endpoint.name) != NULL) {
        return REFUSE(to, STATUS_INVALID, "%s: the name %.*s stands there twice",
                      config_keys[key].name, VIEW_PRINT(endpoint.name));
    }
    struct view host = host_is_wildcard(endpoint.host) && !view_is(endpoint.host, "::")
                           ? VIEW_EMPTY
                           : endpoint.host;
    to->listeners->items[to->listeners->count++] = (struct listener){
        .name = endpoint.name, .host = host, .port = endpoint.port};
    return STATUS_OK;
}

static enum status parse_endpoint(struct resolver *to, struct view text, enum config_key key,
                                  struct endpoint *endpoint)
{
    enum status status = endpoint_parse(text, to->arena, endpoint);
    if (status == STATUS_INVALID) {
        return REFUSE(to, status, "%s: %.*s must look like NAME://host:port",
                      config_keys[key].name, VIEW_PRINT(text));
    }
    return status;
}

/* Adds the bind addresses that a key names. Those that come from advertised addresses take the port
 * and listen everywhere. */
static enum status add_all(struct resolver *to, enum config_key key)
{
    uint32_t count = 0;
    const struct view *items = config_list(to->config, key, &count);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct endpoint endpoint = {0};
        status = parse_endpoint(to, items[i], key, &endpoint);
        if (status == STATUS_OK) {
            endpoint.host = key == CONFIG_LISTENERS ? endpoint.host : VIEW_EMPTY;
            status = add(to, endpoint, key);
        }
    }
    return status;
}

/* advertised.host.name and advertised.port, as an older generation of images sets them. */
static bool old_advertised(const struct config *config, struct view *host, int64_t *port)
{
    *host = config_trim(config_extra(config, "advertised.host.name"));
    *port = 9092;
    struct view text = config_trim(config_extra(config, "advertised.port"));
    if (text.length > 0 && !config_number_parse(text, port)) {
        *port = -1;
    }
    return host->length > 0;
}

static enum status add_default(struct resolver *to)
{
    struct view host = VIEW_NULL;
    int64_t port = 9092;
    if (old_advertised(to->config, &host, &port) && (port < 0 || port > UINT16_MAX)) {
        return REFUSE(to, STATUS_INVALID, "advertised.port must be a port number");
    }
    struct endpoint endpoint = {VIEW_LITERAL("PLAINTEXT"), VIEW_EMPTY, (uint16_t)port};
    return add(to, endpoint, CONFIG_LISTENERS);
}

static enum status bind_addresses(struct resolver *to)
{
    to->is_derived = config_origin(to->config, CONFIG_LISTENERS) == CONFIG_ORIGIN_DEFAULT;
    if (!to->is_derived) {
        return add_all(to, CONFIG_LISTENERS);
    }
    uint32_t count = 0;
    config_list(to->config, CONFIG_ADVERTISED_LISTENERS, &count);
    return count > 0 ? add_all(to, CONFIG_ADVERTISED_LISTENERS) : add_default(to);
}

static bool protocol_of(struct view name, enum security_protocol *protocol)
{
    for (int i = 0; i < PROTOCOL_COUNT; i++) {
        if (view_is(name, protocol_names[i])) {
            *protocol = (enum security_protocol)i;
            return true;
        }
    }
    return false;
}

/* The protocol that the map gives the listener; false when it gives none. */
static enum status look_up_map(struct resolver *to, struct listener *listener, bool *found)
{
    struct view *items = NULL;
    uint32_t count = 0;
    struct view map = config_text(to->config, CONFIG_LISTENER_SECURITY_PROTOCOL_MAP);
    if (config_list_split(map, to->arena, &items, &count) != STATUS_OK) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *colon = memchr(items[i].data, ':', items[i].length);
        size_t at = colon == NULL ? 0 : (size_t)(colon - items[i].data);
        struct view name = upper_case(to->arena, config_trim(view_slice(items[i], 0, at)));
        if (!view_equal(name, listener->name)) {
            continue;
        }
        struct view word = view_slice(items[i], at + 1, items[i].length - at - 1);
        word = upper_case(to->arena, config_trim(word));
        *found = protocol_of(word, &listener->protocol);
        return *found ? STATUS_OK
                      : REFUSE(to, STATUS_INVALID,
                               "listener.security.protocol.map: %.*s must end in PLAINTEXT, SSL, "
                               "SASL_PLAINTEXT or SASL_SSL",
                               VIEW_PRINT(items[i]));
    }
    return STATUS_OK;
}

/* Kafka gives controller listeners PLAINTEXT while the map is not set (KIP-631); here that holds
 * whenever the map leaves one out. */
static enum status resolve_protocol(struct resolver *to, struct listener *listener)
{
    bool found = false;
    enum status status = look_up_map(to, listener, &found);
    if (status != STATUS_OK) {
        return status;
    }
    found = found || protocol_of(listener->name, &listener->protocol) || listener->is_controller;
    if (!found) {
        return REFUSE(to, STATUS_INVALID,
                      "listener.security.protocol.map: has no entry for the listener %.*s",
                      VIEW_PRINT(listener->name));
    }
    if (listener->protocol != SECURITY_PLAINTEXT) {
        return REFUSE(to, STATUS_UNSUPPORTED,
                      "listener %.*s: %s is not offered by this version, use PLAINTEXT",
                      VIEW_PRINT(listener->name), protocol_names[listener->protocol]);
    }
    return STATUS_OK;
}

static bool is_controller_name(const struct config *config, struct arena *arena, struct view name)
{
    uint32_t count = 0;
    const struct view *names = config_list(config, CONFIG_CONTROLLER_LISTENER_NAMES, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (view_equal(upper_case(arena, names[i]), name)) {
            return true;
        }
    }
    return false;
}

static enum status resolve_roles(struct resolver *to)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < to->listeners->count && status == STATUS_OK; i++) {
        struct listener *listener = &to->listeners->items[i];
        listener->is_controller = is_controller_name(to->config, to->arena, listener->name);
        status = resolve_protocol(to, listener);
    }
    return status;
}

/* The host to advertise for a listener that is bound without one. A newcomer's broker without any
 * setting says localhost, which always resolves on the same machine. */
static struct view own_host(const struct resolver *to)
{
    return to->is_derived ? VIEW_LITERAL("localhost") : view_text(to->host_name);
}

static enum status advertise_one(struct resolver *to, struct view text)
{
    struct endpoint endpoint = {0};
    enum status status = parse_endpoint(to, text, CONFIG_ADVERTISED_LISTENERS, &endpoint);
    if (status != STATUS_OK) {
        return status;
    }
    if (host_is_wildcard(endpoint.host)) {
        return REFUSE(to, STATUS_INVALID,
                      "advertised.listeners: %.*s is no address that a client can reach, name this "
                      "machine's host or address",
                      VIEW_PRINT(text));
    }
    struct listener *listener = find(to->listeners, endpoint.name);
    if (listener == NULL) {
        return REFUSE(to, STATUS_INVALID, "advertised.listeners: %.*s is not one of listeners",
                      VIEW_PRINT(endpoint.name));
    }
    bool has_host = endpoint.host.length > 0;
    listener->advertised_host = has_host ? endpoint.host : view_text(to->host_name);
    listener->advertised_port = endpoint.port;
    return STATUS_OK;
}

/* Without advertised.listeners each listener is advertised as it is bound. */
static void advertise_bound(struct resolver *to)
{
    struct view old_host = VIEW_NULL;
    int64_t old_port = 0;
    bool has_old = old_advertised(to->config, &old_host, &old_port);
    for (int i = 0; i < to->listeners->count; i++) {
        struct listener *listener = &to->listeners->items[i];
        bool everywhere = listener->host.length == 0 || host_is_wildcard(listener->host);
        listener->advertised_host = everywhere ? own_host(to) : listener->host;
        listener->advertised_port = listener->port;
        if (has_old && !listener->is_controller && old_port > 0 && old_port <= UINT16_MAX) {
            listener->advertised_host = old_host;
            listener->advertised_port = (uint16_t)old_port;
        }
    }
}

static enum status advertise(struct resolver *to)
{
    uint32_t count = 0;
    const struct view *items = config_list(to->config, CONFIG_ADVERTISED_LISTENERS, &count);
    if (count == 0) {
        advertise_bound(to);
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = advertise_one(to, items[i]);
    }
    return status;
}

/* The named listener, or the first that clients are told about. */
static enum status choose_inter_broker(struct resolver *to)
{
    struct view name = config_text(to->config, CONFIG_INTER_BROKER_LISTENER_NAME);
    struct listener *chosen = NULL;
    if (name.data != NULL) {
        chosen = find(to->listeners, upper_case(to->arena, name));
        if (chosen == NULL || chosen->advertised_host.data == NULL) {
            return REFUSE(to, STATUS_INVALID,
                          "inter.broker.listener.name: %.*s is not one of the advertised listeners",
                          VIEW_PRINT(name));
        }
    }
    for (int i = 0; i < to->listeners->count && chosen == NULL; i++) {
        struct listener *listener = &to->listeners->items[i];
        bool fits = !listener->is_controller && listener->advertised_host.data != NULL;
        chosen = fits ? listener : NULL;
    }
    if (chosen == NULL && config_has_role(to->config, "broker")) {
        return REFUSE(to, STATUS_INVALID, "listeners: there is none that clients could use");
    }
    if (chosen != NULL) {
        chosen->is_inter_broker = true;
    }
    return STATUS_OK;
}

enum status listeners_resolve(const struct config *config, const char *host_name,
                              struct arena *arena, struct listeners *listeners, struct view *why)
{
    assert(config != NULL && host_name != NULL);
    assert(arena != NULL && listeners != NULL && why != NULL);
    *why = VIEW_LITERAL("too much text in the listeners");
    *listeners = (struct listeners){
        .items = arena_take(arena, LISTENER_LIMIT, sizeof *listeners->items)};
    struct resolver resolver = {config, host_name, arena, listeners, why, false};
    enum status status = listeners->items == NULL ? STATUS_LIMIT : bind_addresses(&resolver);
    if (status == STATUS_OK) {
        status = resolve_roles(&resolver);
    }
    if (status == STATUS_OK) {
        status = advertise(&resolver);
    }
    return status == STATUS_OK ? choose_inter_broker(&resolver) : status;
}

const struct listener *listeners_inter_broker(const struct listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++) {
        if (listeners->items[i].is_inter_broker) {
            return &listeners->items[i];
        }
    }
    return NULL;
}

bool quorum_voter_parse(struct view text, struct quorum_voter *voter)
{
    *voter = (struct quorum_voter){.node_id = -1};
    const uint8_t *mark = memchr(text.data, '@', text.length);
    size_t at = mark == NULL ? 0 : (size_t)(mark - text.data);
    int64_t id = -1;
    if (mark == NULL || !config_number_parse(view_slice(text, 0, at), &id)) {
        return false;
    }
    voter->node_id = id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
    struct view address = view_slice(text, at + 1, text.length - at - 1);
    return voter->node_id >= 0 && host_port_parse(address, &voter->host, &voter->port) &&
           voter->host.length > 0;
}

enum status quorum_voters_parse(const struct config *config, struct arena *arena,
                                struct quorum_voter **voters, int *count, struct view *why)
{
    assert(config != NULL && arena != NULL);
    assert(voters != NULL && count != NULL && why != NULL);
    uint32_t total = 0;
    const struct view *items = config_list(config, CONFIG_CONTROLLER_QUORUM_VOTERS, &total);
    *voters = NULL;
    *count = 0;
    *why = VIEW_LITERAL("controller.quorum.voters: too many voters");
    if (total == 0) {
        return STATUS_OK;
    }
    *voters = arena_take(arena, total, sizeof **voters);
    if (total > QUORUM_VOTER_LIMIT || *voters == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < total; i++) {
        if (!quorum_voter_parse(items[i], &(*voters)[i])) {
            *why = arena_format(arena, "controller.quorum.voters: %.*s must look like id@host:port",
                                VIEW_PRINT(items[i]));
            return STATUS_INVALID;
        }
    }
    *count = (int)total;
    return STATUS_OK;
}
