/* Records are encoded one behind the other into one buffer; positions become views when the batch
 * is complete, because the buffer moves while it grows. Nothing here can fail. */
#include "broker/coordinator/batches.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/coordinator/texts.h"

struct batch *coordinator_batch_new(enum batch_kind kind, struct view group)
{
    struct batch *batch = memory_new_zero(1, sizeof(*batch));
    batch->kind = kind;
    batch->group = coordinator_text_copy(group);
    batch->producer_id = -1;
    batch->producer_epoch = -1;
    return batch;
}

void coordinator_static_undo_free(struct static_undo *undo)
{
    consumer_protocols_free(undo->protocols, undo->protocol_count);
    coordinator_text_free(&undo->old_id);
    coordinator_text_free(&undo->old_leader);
    *undo = (struct static_undo){0};
}

void coordinator_batch_free(struct batch *batch)
{
    assert(!batch->answer.waiting);
    coordinator_static_undo_free(&batch->undo);
    coordinator_text_free(&batch->group);
    coordinator_text_free(&batch->member);
    buffer_free(&batch->bytes);
    free(batch->records);
    free(batch->views);
    free(batch);
}

static struct batch_record *record_add(struct batch *batch)
{
    assert(batch->views == NULL);
    if (batch->count == batch->capacity) {
        batch->capacity = batch->capacity == 0 ? 2 : batch->capacity * 2;
        batch->records = memory_resize(batch->records, batch->capacity, sizeof(*batch->records));
    }
    struct batch_record *record = &batch->records[batch->count++];
    *record = (struct batch_record){.key_at = batch->bytes.length};
    return record;
}

static void key_done(struct batch *batch, struct batch_record *record, bool tombstone)
{
    record->key_length = batch->bytes.length - record->key_at;
    record->value_at = batch->bytes.length;
    record->tombstone = tombstone;
    assert(record->key_length > 2);
}

static void value_done(struct batch *batch, struct batch_record *record)
{
    record->value_length = batch->bytes.length - record->value_at;
    assert(record->value_length > 2);
}

void coordinator_batch_put_group(struct batch *batch, struct view group,
                                 const struct group_metadata_value *value)
{
    struct batch_record *record = record_add(batch);
    coordinator_write_group_key(&batch->bytes, group);
    key_done(batch, record, false);
    coordinator_write_group_value(&batch->bytes, value);
    value_done(batch, record);
}

void coordinator_batch_put_offset(struct batch *batch, struct view group, struct view topic,
                                  int32_t partition, const struct coordinator_offset *offset)
{
    struct batch_record *record = record_add(batch);
    coordinator_write_offset_key(&batch->bytes, group, topic, partition);
    key_done(batch, record, false);
    coordinator_write_offset_value(&batch->bytes, offset);
    value_done(batch, record);
}

void coordinator_batch_drop_group(struct batch *batch, struct view group)
{
    struct batch_record *record = record_add(batch);
    coordinator_write_group_key(&batch->bytes, group);
    key_done(batch, record, true);
}

void coordinator_batch_drop_offset(struct batch *batch, struct view group, struct view topic,
                                   int32_t partition)
{
    struct batch_record *record = record_add(batch);
    coordinator_write_offset_key(&batch->bytes, group, topic, partition);
    key_done(batch, record, true);
}

const struct coordinator_record *coordinator_batch_views(struct batch *batch)
{
    assert(batch->count > 0 && batch->views == NULL);
    batch->views = memory_new_zero(batch->count, sizeof(*batch->views));
    struct view bytes = buffer_view(&batch->bytes);
    for (size_t i = 0; i < batch->count; i++) {
        const struct batch_record *record = &batch->records[i];
        batch->views[i].key = view_slice(bytes, record->key_at, record->key_length);
        batch->views[i].value = record->tombstone
                                    ? VIEW_NULL
                                    : view_slice(bytes, record->value_at, record->value_length);
    }
    return batch->views;
}
