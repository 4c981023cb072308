/* Hash tables of owned copies. Happy path: an offset record replaces the value in a sorted array.
 * A group disappears with its last value and offset, so that the store holds no more than the log's
 * live records. Records that cannot be read are passed over. */
#include "broker/coordinator/offset_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/coordinator/texts.h"

struct open_record {
    struct open_record *next;
    uint64_t order;
    struct view key;   /* owned */
    struct view value; /* owned; null: tombstone */
};

struct open_transaction {
    UT_hash_handle hh;
    int64_t producer_id;
    struct open_record *records; /* newest first */
};

struct open_offset {
    UT_hash_handle hh;
    struct view key; /* owned, an encoded offset key */
    size_t holders;
};

struct stored_group *offset_store_group(const struct offset_store *store, struct view id)
{
    assert(id.data != NULL);
    struct stored_group *group;
    HASH_FIND(hh, store->groups, id.data, id.length, group);
    return group;
}

static struct stored_group *group_make(struct offset_store *store, struct view id)
{
    struct stored_group *group = offset_store_group(store, id);
    if (group == NULL) {
        group = memory_new_zero(1, sizeof(*group));
        group->id = coordinator_text_copy(id);
        HASH_ADD_KEYPTR(hh, store->groups, group->id.data, group->id.length, group);
    }
    return group;
}

static struct stored_topic *topic_find(const struct stored_group *group, struct view name)
{
    struct stored_topic *topic;
    HASH_FIND(hh, group->topics, name.data, name.length, topic);
    return topic;
}

static struct stored_topic *topic_make(struct stored_group *group, struct view name)
{
    struct stored_topic *topic = topic_find(group, name);
    if (topic == NULL) {
        topic = memory_new_zero(1, sizeof(*topic));
        topic->name = coordinator_text_copy(name);
        HASH_ADD_KEYPTR(hh, group->topics, topic->name.data, topic->name.length, topic);
    }
    return topic;
}

/* The index of the partition, or where it would be inserted. */
static size_t offset_place(const struct stored_topic *topic, int32_t partition)
{
    size_t low = 0;
    size_t high = topic->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (topic->offsets[middle].partition < partition) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool offset_is_at(const struct stored_topic *topic, size_t index, int32_t partition)
{
    return index < topic->count && topic->offsets[index].partition == partition;
}

const struct stored_topic *offset_store_topic(const struct stored_group *group, struct view name)
{
    return topic_find(group, name);
}

const struct stored_offset *offset_store_find(const struct stored_group *group, struct view topic,
                                              int32_t partition)
{
    const struct stored_topic *found = group == NULL ? NULL : topic_find(group, topic);
    if (found == NULL) {
        return NULL;
    }
    size_t index = offset_place(found, partition);
    return offset_is_at(found, index, partition) ? &found->offsets[index] : NULL;
}

static struct stored_offset *offset_insert(struct stored_topic *topic, size_t index,
                                           int32_t partition)
{
    assert(index <= topic->count);
    if (topic->count == topic->capacity) {
        topic->capacity = topic->capacity == 0 ? 1 : topic->capacity * 2;
        topic->offsets = memory_resize(topic->offsets, topic->capacity, sizeof(*topic->offsets));
    }
    struct stored_offset *at = &topic->offsets[index];
    memmove(at + 1, at, (topic->count - index) * sizeof(*at));
    topic->count++;
    *at = (struct stored_offset){.partition = partition};
    return at;
}

static void topic_free(struct stored_group *group, struct stored_topic *topic)
{
    HASH_DEL(group->topics, topic);
    for (size_t i = 0; i < topic->count; i++) {
        coordinator_text_free(&topic->offsets[i].value.metadata);
    }
    coordinator_text_free(&topic->name);
    free(topic->offsets);
    free(topic);
}

static void group_free(struct offset_store *store, struct stored_group *group)
{
    struct stored_topic *topic;
    struct stored_topic *next;
    HASH_ITER(hh, group->topics, topic, next)
    {
        assert(store->offset_count >= topic->count);
        store->offset_count -= topic->count;
        topic_free(group, topic);
    }
    HASH_DEL(store->groups, group);
    coordinator_text_free(&group->id);
    coordinator_text_free(&group->value);
    free(group);
}

static void group_free_if_void(struct offset_store *store, struct stored_group *group)
{
    if (group->value.data == NULL && group->topics == NULL) {
        group_free(store, group);
    }
}

static void apply_group(struct offset_store *store, struct view id, struct view value)
{
    struct stored_group *group = group_make(store, id);
    coordinator_text_free(&group->value);
    group->value = coordinator_text_copy(value);
    group_free_if_void(store, group);
}

static void set_offset(struct offset_store *store, const struct coordinator_key *key,
                       const struct coordinator_offset *value, uint64_t order)
{
    struct stored_topic *topic = topic_make(group_make(store, key->group), key->topic);
    size_t index = offset_place(topic, key->partition);
    struct stored_offset *offset;
    if (offset_is_at(topic, index, key->partition)) {
        offset = &topic->offsets[index];
        coordinator_text_free(&offset->value.metadata);
    } else {
        offset = offset_insert(topic, index, key->partition);
        store->offset_count++;
    }
    offset->value = *value;
    offset->value.metadata = coordinator_text_copy(value->metadata);
    assert(order > 0 && order <= store->order);
    offset->order = order;
}

static void remove_offset(struct offset_store *store, const struct coordinator_key *key)
{
    struct stored_group *group = offset_store_group(store, key->group);
    struct stored_topic *topic = group == NULL ? NULL : topic_find(group, key->topic);
    size_t index = topic == NULL ? 0 : offset_place(topic, key->partition);
    if (topic == NULL || !offset_is_at(topic, index, key->partition)) {
        return;
    }
    struct stored_offset *at = &topic->offsets[index];
    coordinator_text_free(&at->value.metadata);
    assert(topic->count > 0 && store->offset_count > 0);
    topic->count--;
    memmove(at, at + 1, (topic->count - index) * sizeof(*at));
    store->offset_count--;
    if (topic->count == 0) {
        topic_free(group, topic);
    }
    group_free_if_void(store, group);
}

static void drop_open(struct offset_store *store, struct view key);

static void apply_offset(struct offset_store *store, const struct coordinator_key *key,
                         struct view value, uint64_t order)
{
    struct coordinator_offset offset;
    if (value.data == NULL) {
        remove_offset(store, key);
    } else if (coordinator_read_offset_value(value, &offset)) {
        set_offset(store, key, &offset, order);
    }
}

void offset_store_apply(struct offset_store *store, struct view key, struct view value)
{
    store->order++;
    struct coordinator_key name = coordinator_read_key(key);
    if (name.kind == COORDINATOR_KEY_GROUP) {
        apply_group(store, name.group, value);
    } else if (name.kind == COORDINATOR_KEY_OFFSET) {
        apply_offset(store, &name, value, store->order);
        if (value.data == NULL) {
            drop_open(store, key);
        }
    }
}

static struct open_offset *open_find(const struct offset_store *store, struct view key)
{
    struct open_offset *open;
    HASH_FIND(hh, store->open_offsets, key.data, key.length, open);
    return open;
}

static void open_hold(struct offset_store *store, struct view key)
{
    struct open_offset *open = open_find(store, key);
    if (open == NULL) {
        open = memory_new_zero(1, sizeof(*open));
        open->key = coordinator_text_copy(key);
        HASH_ADD_KEYPTR(hh, store->open_offsets, open->key.data, open->key.length, open);
    }
    open->holders++;
}

static void open_release(struct offset_store *store, struct view key)
{
    struct open_offset *open = open_find(store, key);
    assert(open != NULL && open->holders > 0);
    if (--open->holders == 0) {
        HASH_DEL(store->open_offsets, open);
        coordinator_text_free(&open->key);
        free(open);
    }
}

static void open_record_free(struct open_record *record)
{
    coordinator_text_free(&record->key);
    coordinator_text_free(&record->value);
    free(record);
}

/* A tombstone also takes away what open transactions hold for the partition. */
static void drop_open(struct offset_store *store, struct view key)
{
    struct open_transaction *transaction = open_find(store, key) == NULL ? NULL
                                                                         : store->transactions;
    for (; transaction != NULL; transaction = transaction->hh.next) {
        struct open_record **at = &transaction->records;
        while (*at != NULL) {
            struct open_record *record = *at;
            if (view_equal(record->key, key)) {
                *at = record->next;
                open_release(store, key);
                open_record_free(record);
            } else {
                at = &record->next;
            }
        }
    }
    assert(open_find(store, key) == NULL);
}

void offset_store_apply_open(struct offset_store *store, int64_t producer_id, struct view key,
                             struct view value)
{
    assert(producer_id >= 0);
    store->order++;
    if (coordinator_read_key(key).kind != COORDINATOR_KEY_OFFSET) {
        return;
    }
    struct open_transaction *transaction;
    HASH_FIND(hh, store->transactions, &producer_id, sizeof(producer_id), transaction);
    if (transaction == NULL) {
        transaction = memory_new_zero(1, sizeof(*transaction));
        transaction->producer_id = producer_id;
        HASH_ADD(hh, store->transactions, producer_id, sizeof(transaction->producer_id),
                 transaction);
    }
    struct open_record *record = memory_new_zero(1, sizeof(*record));
    record->order = store->order;
    record->key = coordinator_text_copy(key);
    record->value = coordinator_text_copy(value);
    record->next = transaction->records;
    transaction->records = record;
    open_hold(store, key);
}

/* Applies what the transaction kept back, unless a later record already spoke for the partition. */
static void apply_kept(struct offset_store *store, const struct open_record *record)
{
    struct coordinator_key name = coordinator_read_key(record->key);
    assert(name.kind == COORDINATOR_KEY_OFFSET);
    const struct stored_offset *present =
        offset_store_find(offset_store_group(store, name.group), name.topic, name.partition);
    if (present == NULL || present->order < record->order) {
        apply_offset(store, &name, record->value, record->order);
    }
}

void offset_store_end_transaction(struct offset_store *store, int64_t producer_id, bool commit,
                                  offset_store_visitor *visit, void *owner)
{
    struct open_transaction *transaction;
    HASH_FIND(hh, store->transactions, &producer_id, sizeof(producer_id), transaction);
    if (transaction == NULL) {
        return;
    }
    while (transaction->records != NULL) {
        struct open_record *record = transaction->records;
        transaction->records = record->next;
        if (commit) {
            apply_kept(store, record);
        }
        struct view key = record->key;
        record->key = VIEW_NULL;
        open_release(store, key);
        open_record_free(record);
        if (visit != NULL) {
            visit(owner, coordinator_read_key(key).group);
        }
        coordinator_text_free(&key);
    }
    HASH_DEL(store->transactions, transaction);
    free(transaction);
}

bool offset_store_is_open(const struct offset_store *store, struct view group, struct view topic,
                          int32_t partition)
{
    if (store->open_offsets == NULL) {
        return false;
    }
    struct buffer key = {0};
    coordinator_write_offset_key(&key, group, topic, partition);
    bool open = open_find(store, buffer_view(&key)) != NULL;
    buffer_free(&key);
    return open;
}

void offset_store_each_open(const struct offset_store *store, struct view group,
                            offset_store_key_visitor *visit, void *owner)
{
    const struct open_offset *open;
    for (open = store->open_offsets; open != NULL; open = open->hh.next) {
        struct coordinator_key key = coordinator_read_key(open->key);
        if (view_equal(key.group, group)) {
            visit(owner, &key);
        }
    }
}

bool offset_store_has_open(const struct offset_store *store, struct view group)
{
    const struct open_offset *open;
    for (open = store->open_offsets; open != NULL; open = open->hh.next) {
        if (view_equal(coordinator_read_key(open->key).group, group)) {
            return true;
        }
    }
    return false;
}

void offset_store_free(struct offset_store *store)
{
    while (store->transactions != NULL) {
        offset_store_end_transaction(store, store->transactions->producer_id, false, NULL,
                                     NULL);
    }
    while (store->groups != NULL) {
        group_free(store, store->groups);
    }
    assert(store->offset_count == 0 && store->open_offsets == NULL);
    *store = (struct offset_store){0};
}
