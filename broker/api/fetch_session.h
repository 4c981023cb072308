/* Incremental fetch sessions (KIP-227): what a consumer fetches, remembered between its requests.
 *
 * Sessions are kept by the shard of the connection that began them, go with it to another one, and
 * are a cache: a client whose session is gone is told so and begins a new one. Bounded by
 * max.incremental.fetch.session.cache.slots; the one unused for longest goes first.
 */
#ifndef OTTLA_BROKER_API_FETCH_SESSION_H
#define OTTLA_BROKER_API_FETCH_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/list.h"
#include "base/uuid.h"
#include "base/view.h"
#include "messages/fetch.h"

enum { FETCH_SESSION_NONE = 0, FETCH_EPOCH_FULL = 0, FETCH_EPOCH_FINAL = -1 };

/* A partition of a session. Its name is the session's own copy. */
struct session_partition {
    UT_hash_handle hh;               /* in the session, in the order of being added */
    struct session_key {
        struct uuid topic_id;        /* version 13 and later */
        uint64_t name_hash;          /* below it */
        int32_t partition;
        int32_t zero;
    } key;
    char *topic;                     /* below version 13; else null */
    struct fetch_request_fetch_partition asked;
    int64_t sent_high_watermark;     /* what the client was told last */
    int64_t sent_log_start;
    bool sent_error;
};

struct fetch_session {
    UT_hash_handle hh;
    struct list_link link;           /* least recently used first */
    int32_t id;
    int32_t epoch;                   /* of the next request */
    bool uses_ids;
    bool busy;                       /* a request of it is under way */
    struct session_partition *partitions;
};

struct fetch_sessions {
    struct fetch_session *by_id;
    struct list by_use;
    unsigned count;
    unsigned limit;
};

_Static_assert(sizeof(struct session_key) == 32, "hashed as bytes, so without padding");

/* Starts empty; `limit` is the number of slots, at least 1. */
void fetch_sessions_init(struct fetch_sessions *sessions, unsigned limit);

/* Ends all sessions. */
void fetch_sessions_free(struct fetch_sessions *sessions);

/* A new session with a fresh id; null when every slot is taken by a session in use. */
struct fetch_session *fetch_session_new(struct fetch_sessions *sessions, bool uses_ids);

/* The session, or null. */
struct fetch_session *fetch_session_find(struct fetch_sessions *sessions, int32_t id);

/* Ends it. */
void fetch_session_end(struct fetch_sessions *sessions, struct fetch_session *session);

/* Takes it out, to be put into another cache by fetch_session_put; null when there is none with
 * this id or a request of it is under way. */
struct fetch_session *fetch_session_take(struct fetch_sessions *sessions, int32_t id);

/* Takes a session over from another cache. It ends when its id is one of a session here or every
 * slot is taken by a session in use. */
void fetch_session_put(struct fetch_sessions *sessions, struct fetch_session *session);

/* Takes over what a request adds, changes and forgets. */
void fetch_session_update(struct fetch_sessions *sessions, struct fetch_session *session,
                          const struct fetch_request *request);

/* The epoch that follows; it skips 0 and negative ones. */
int32_t fetch_session_next_epoch(int32_t epoch);

#endif
