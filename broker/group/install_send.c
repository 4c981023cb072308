/* The leader's side: tells a replica what to install, and reads logs for it. A call that fails is
 * reported to Raft, which asks again when the replica shows itself; only a few run at a time, the
 * others have their turn in the same way. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/group/group_journal.h"
#include "broker/group/install.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/group/unread.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "messages/errors.h"
#include "messages/peer_install.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"

enum {
    SENDINGS_MAX = 16,           /* of a shard, at a time */
    ANSWER_BYTES = 4096,         /* of structs, when the answer is decoded */
    SENDING_MS = 10 * 60 * 1000, /* the replica itself notices when it gets nothing more */
};

struct install_sending {
    struct peer_call call;
    struct list_link link;       /* in the group's */
    struct group *group;
    uint64_t index;
};

static void tell_raft(struct group *group, int32_t node, uint64_t index)
{
    struct raft_event event = {.kind = RAFT_EVENT_SNAPSHOT_DONE};
    event.snapshot.node = node;
    event.snapshot.index = index;
    group_step(group, &event);
}

static void drop(struct install_sending *sending)
{
    struct replicas *replicas = sending->group->shard->replicas;
    assert(replicas->installs_sent > 0);
    replicas->installs_sent--;
    list_remove(&sending->link);
    free(sending);
}

static int16_t error_of(enum status status, struct slice body)
{
    struct peer_install_response response;
    struct arena arena;
    arena_init(&arena, ANSWER_BYTES);
    if (status == STATUS_OK &&
        message_decode_whole(&peer_install_response_type, 0, slice_view(body), &arena,
                             &response) != STATUS_OK) {
        status = STATUS_INVALID;
    }
    arena_free(&arena);
    return status == STATUS_OK ? response.error_code : KAFKA_NETWORK_EXCEPTION;
}

static void answered(struct peer_call *call, enum status status, struct slice body)
{
    struct install_sending *sending = container_of(call, struct install_sending, call);
    struct group *group = sending->group;
    int32_t node = call->node;
    uint64_t index = sending->index;
    int16_t error = error_of(status, body);
    drop(sending);
    if (error == KAFKA_NONE) {
        log_debug("group", "group %" PRIu64 ": node %d has everything up to entry %" PRIu64,
                  group->id, node, index);
    } else {
        log_debug("group", "group %" PRIu64 ": node %d did not install: error %d", group->id, node,
                  error);
    }
    tell_raft(group, node, error == KAFKA_NONE ? index : 0);
}

static void fill_members(const struct group *group, struct arena *arena,
                         struct peer_install_request *request)
{
    struct raft_member alone = {.id = group->shard->broker->node_id, .flags = RAFT_VOTER};
    const struct raft_member *members = group->member_count > 0 ? group->members : &alone;
    size_t count = group->member_count > 0 ? group->member_count : 1;
    request->members = arena_take(arena, count, sizeof *request->members);
    request->members_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        request->members[i] = (struct peer_install_request_member){
            .node_id = members[i].id, .flags = (int8_t)members[i].flags};
    }
}

static void encode(const struct group *group, struct buffer *body)
{
    struct arena arena;
    struct peer_install_request request = {
        .group = (int64_t)group->id,
        .leader_id = group->shard->broker->node_id,
        .term = (int64_t)raft_term(group->raft),
        .index = (int64_t)group->applied_index + (planted(PLANT_INSTALL_OFF_BY_ONE) ? 1 : 0),
        .index_term = (int64_t)group->applied_term,
    };
    arena_init(&arena, SIZE_MAX / 2);
    fill_members(group, &arena, &request);
    request.partitions =
        arena_take(&arena, (size_t)group->partition_count, sizeof *request.partitions);
    request.partitions_count = group->partition_count;
    for (int32_t i = 0; i < group->partition_count; i++) {
        const struct partition *partition = group->partitions[i];
        int64_t end = partition_log_end(partition->log);
        request.partitions[i] = (struct peer_install_request_partition){
            .partition_index = partition->number,
            .log_start_offset = partition_log_start(partition->log),
            .end_offset = planted(PLANT_INSTALL_SHORT) && end > 0 ? end - 1 : end,
        };
    }
    enum status status = message_encode_to(&peer_install_request_type, 0, &request, body);
    assert(status == STATUS_OK);
    (void)status;
    arena_free(&arena);
}

static bool is_under_way(const struct group *group, int32_t node)
{
    for (struct list_link *link = list_first(&group->installs); link != NULL;
         link = list_next(&group->installs, link)) {
        if (container_of(link, struct install_sending, link)->call.node == node) {
            return true;
        }
    }
    return false;
}

void install_send(struct group *group, int32_t node)
{
    struct replicas *replicas = group->shard->replicas;
    struct buffer body = {0};
    if (is_under_way(group, node)) {
        return; /* its end is told to Raft */
    }
    if (group->storage != STATUS_OK || group->applied_index == 0 ||
        replicas->installs_sent >= SENDINGS_MAX) {
        tell_raft(group, node, 0);
        return;
    }
    struct install_sending *sending = memory_new_zero(1, sizeof *sending);
    sending->group = group;
    sending->index = group->applied_index;
    sending->call = (struct peer_call){
        .node = node, .api_key = API_PEER_INSTALL, .timeout_ms = SENDING_MS, .done = answered};
    list_push_back(&group->installs, &sending->link);
    replicas->installs_sent++;
    encode(group, &body);
    peers_call(group->shard, &sending->call, buffer_view(&body));
    buffer_free(&body);
}

void install_cancel(struct group *group)
{
    struct list_link *link;
    while ((link = list_first(&group->installs)) != NULL) {
        struct install_sending *sending = container_of(link, struct install_sending, link);
        if (list_contains(&sending->call.link)) {
            peers_cancel(group->shard, &sending->call);
        }
        drop(sending);
    }
}

uint64_t install_needed(const struct group *group)
{
    uint64_t needed = UINT64_MAX;
    for (struct list_link *link = list_first(&group->installs); link != NULL;
         link = list_next(&group->installs, link)) {
        uint64_t index = container_of(link, struct install_sending, link)->index;
        needed = index < needed ? index : needed;
    }
    return needed;
}

static enum status copy_part(const struct log_part *part, struct buffer *out)
{
    uint8_t *bytes = buffer_extend(out, part->length_bytes);
    if (part->slice.block != NULL) {
        memcpy(bytes, part->slice.data, part->length_bytes);
        return STATUS_OK;
    }
    size_t got;
    enum status status = file_read(part->file, part->position, bytes, part->length_bytes, &got);
    return status == STATUS_OK && got != part->length_bytes ? STATUS_CORRUPT : status;
}

int16_t install_read(struct group *group, int32_t number, int64_t offset, size_t max_bytes,
                     struct buffer *out)
{
    struct partition *partition = group_partition(group, number);
    if (partition == NULL || partition->log == NULL) {
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    if (group->storage != STATUS_OK || partition->damaged) {
        return KAFKA_KAFKA_STORAGE_ERROR;
    }
    struct log_read read;
    enum status status = partition_log_read(partition->log, offset, max_bytes, true, &read);
    if (status != STATUS_OK) {
        unread_log(group, status);
        return status == STATUS_OUT_OF_RANGE ? KAFKA_OFFSET_OUT_OF_RANGE
                                             : KAFKA_KAFKA_STORAGE_ERROR;
    }
    assert(max_bytes > 0);
    for (size_t i = 0; i < read.part_count && status == STATUS_OK; i++) {
        status = copy_part(&read.parts[i], out);
    }
    log_read_release(&read);
    unread_log(group, status);
    return status == STATUS_OK ? KAFKA_NONE : KAFKA_KAFKA_STORAGE_ERROR;
}
