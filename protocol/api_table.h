/* What is known of each API key: its messages, the versions that can be read, and the versions that
 * a stock 4.4 broker names in ApiVersions. Made by generate.py from schemas/apis.tsv. */
#ifndef OTTLA_PROTOCOL_API_TABLE_H
#define OTTLA_PROTOCOL_API_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "messages/api_keys.h"
#include "protocol/descriptor.h"

enum api_flag {
    API_ON_BROKER = 1,       /* served by the stock broker's listeners */
    API_ON_CONTROLLER = 2,   /* served by the stock controller's listeners */
    API_FORWARDABLE = 4,     /* a broker passes it on to the controller */
    API_CLUSTER_ACTION = 8   /* needs CLUSTER_ACTION on the cluster */
};

struct api {
    const char *name;                    /* "Produce"; null when the key is not in use */
    const struct message_type *request;
    const struct message_type *response;
    int16_t key;
    int16_t first_version;               /* versions that the schemas can read and write */
    int16_t last_version;
    int16_t first_advertised_version;    /* -1: a stock broker does not list the key. May be less */
    int16_t last_advertised_version;     /* than first_version: Produce 0-2 are never served */
    uint8_t flags;                       /* enum api_flag */
};

/* Indexed by key; keys that are gone have no name. */
extern const struct api api_table[API_KEY_COUNT];

/* What nodes say to each other, indexed by key - API_PRIVATE_FIRST; never advertised. */
extern const struct api api_private_table[API_PRIVATE_COUNT];

/* Whether the key is one of Ottla's own, for the nodes of a cluster alone. */
static inline bool api_is_private(int32_t key)
{
    return key >= API_PRIVATE_FIRST;
}

/* The API of a key that came from a client; null when there is none. */
const struct api *api_find(int32_t key);

/* Version of the request header: 2 when the request's version is flexible, else 1. Also right for
 * versions outside the known range, as ApiVersions needs (KIP-511). */
int16_t api_request_header_version(const struct api *api, int16_t version);

/* Version of the response header: 1 when the response's version is flexible, else 0; ApiVersions
 * always answers with 0, since the client cannot know yet what the broker speaks (KIP-511). */
int16_t api_response_header_version(const struct api *api, int16_t version);

#endif
