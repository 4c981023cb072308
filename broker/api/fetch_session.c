/* A bounded cache of sessions, each a hash of partitions that keeps their order. */
#include "broker/api/fetch_session.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "io/random.h"

void fetch_sessions_init(struct fetch_sessions *sessions, unsigned limit)
{
    *sessions = (struct fetch_sessions){.limit = limit};
    list_init(&sessions->by_use);
}

static uint64_t hash_name(struct view name)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (size_t i = 0; i < name.length; i++) {
        hash = (hash ^ name.data[i]) * 1099511628211u;
    }
    return hash;
}

static struct session_key key_of(struct view name, struct uuid id, bool uses_ids,
                                 int32_t partition)
{
    struct session_key key = {.partition = partition};
    if (uses_ids) {
        key.topic_id = id;
    } else {
        key.name_hash = hash_name(name);
    }
    return key;
}

static void drop_partition(struct fetch_session *session, struct session_partition *partition)
{
    HASH_DEL(session->partitions, partition);
    free(partition->topic);
    free(partition);
}

static void release(struct fetch_session *session)
{
    struct session_partition *partition;
    struct session_partition *next;
    HASH_ITER(hh, session->partitions, partition, next) {
        drop_partition(session, partition);
    }
    free(session);
}

static void leave(struct fetch_sessions *sessions, struct fetch_session *session)
{
    HASH_DEL(sessions->by_id, session);
    list_remove(&session->link);
    assert(sessions->count > 0);
    sessions->count--;
}

static void enter(struct fetch_sessions *sessions, struct fetch_session *session)
{
    HASH_ADD(hh, sessions->by_id, id, sizeof session->id, session);
    list_push_back(&sessions->by_use, &session->link);
    sessions->count++;
}

void fetch_session_end(struct fetch_sessions *sessions, struct fetch_session *session)
{
    leave(sessions, session);
    release(session);
}

void fetch_sessions_free(struct fetch_sessions *sessions)
{
    struct list_link *link;
    while ((link = list_first(&sessions->by_use)) != NULL) {
        fetch_session_end(sessions, container_of(link, struct fetch_session, link));
    }
}

static bool make_room(struct fetch_sessions *sessions)
{
    struct list_link *link = list_first(&sessions->by_use);
    while (sessions->count >= sessions->limit && link != NULL) {
        struct list_link *next = list_next(&sessions->by_use, link);
        struct fetch_session *session = container_of(link, struct fetch_session, link);
        if (!session->busy) {
            fetch_session_end(sessions, session);
        }
        link = next;
    }
    return sessions->count < sessions->limit;
}

struct fetch_session *fetch_session_new(struct fetch_sessions *sessions, bool uses_ids)
{
    if (!make_room(sessions)) {
        return NULL;
    }
    struct fetch_session *session = memory_new_zero(1, sizeof *session);
    do {
        session->id = (int32_t)random_below(INT32_MAX - 1) + 1;
    } while (fetch_session_find(sessions, session->id) != NULL);
    session->epoch = 1;
    session->uses_ids = uses_ids;
    enter(sessions, session);
    return session;
}

struct fetch_session *fetch_session_find(struct fetch_sessions *sessions, int32_t id)
{
    struct fetch_session *session = NULL;
    HASH_FIND(hh, sessions->by_id, &id, sizeof id, session);
    return session;
}

struct fetch_session *fetch_session_take(struct fetch_sessions *sessions, int32_t id)
{
    struct fetch_session *session = fetch_session_find(sessions, id);
    if (session == NULL || session->busy) {
        return NULL;
    }
    leave(sessions, session);
    return session;
}

void fetch_session_put(struct fetch_sessions *sessions, struct fetch_session *session)
{
    assert(!session->busy);
    if (fetch_session_find(sessions, session->id) == NULL && make_room(sessions)) {
        enter(sessions, session);
    } else {
        release(session);
    }
}

static struct session_partition *find_partition(struct fetch_session *session,
                                                const struct session_key *key)
{
    struct session_partition *partition = NULL;
    HASH_FIND(hh, session->partitions, key, sizeof *key, partition);
    return partition;
}

static void put_partition(struct fetch_session *session,
                          const struct fetch_request_fetch_topic *topic,
                          const struct fetch_request_fetch_partition *asked)
{
    struct session_key key =
        key_of(topic->topic, topic->topic_id, session->uses_ids, asked->partition);
    struct session_partition *partition = find_partition(session, &key);
    if (partition == NULL) {
        partition = memory_new_zero(1, sizeof *partition);
        partition->key = key;
        partition->topic = session->uses_ids ? NULL : view_copy_text(topic->topic);
        partition->sent_high_watermark = -1;
        partition->sent_log_start = -1;
        HASH_ADD(hh, session->partitions, key, sizeof partition->key, partition);
    }
    partition->asked = *asked;
}

void fetch_session_update(struct fetch_sessions *sessions, struct fetch_session *session,
                          const struct fetch_request *request)
{
    for (int32_t t = 0; t < request->topics_count; t++) {
        const struct fetch_request_fetch_topic *topic = &request->topics[t];
        for (int32_t p = 0; p < topic->partitions_count; p++) {
            put_partition(session, topic, &topic->partitions[p]);
        }
    }
    for (int32_t t = 0; t < request->forgotten_topics_data_count; t++) {
        const struct fetch_request_forgotten_topic *topic = &request->forgotten_topics_data[t];
        for (int32_t p = 0; p < topic->partitions_count; p++) {
            struct session_key key = key_of(topic->topic, topic->topic_id, session->uses_ids,
                                            topic->partitions[p]);
            struct session_partition *partition = find_partition(session, &key);
            if (partition != NULL) {
                drop_partition(session, partition);
            }
        }
    }
    list_remove(&session->link);
    list_push_back(&sessions->by_use, &session->link);
}

int32_t fetch_session_next_epoch(int32_t epoch)
{
    assert(epoch >= 0);
    return epoch == INT32_MAX ? 1 : epoch + 1;
}
