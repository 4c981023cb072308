/* The answer to a Fetch: the response's fields from the structs, the batches spliced in behind them
 * from memory and files without being copied. */
#include <assert.h>
#include <event2/buffer.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/api/fetch_state.h"
#include "broker/api/request.h"
#include "broker/controller/topic_image.h"
#include "broker/net/file_range.h"
#include "messages/errors.h"
#include "protocol/records.h"

enum { COPY_BELOW_BYTES = 1024, READ_COMMITTED = 1 };
enum { FIRST_ZSTD_VERSION = 10, FIRST_LEADER_VERSION = 12, FIRST_ENDPOINTS_VERSION = 16 };

static void give_back_block(const void *data, size_t length, void *argument)
{
    (void)data;
    (void)length;
    block_unref(argument);
}

static void free_copy(const void *data, size_t length, void *copy)
{
    (void)data;
    (void)length;
    free(copy);
}

/* A file of a simulation has no descriptor. */
static void add_file_bytes(struct evbuffer *out, const struct log_part *part)
{
    uint8_t *copy = memory_new_zero(part->length_bytes, 1);
    size_t got = 0;
    enum status status =
        file_read(part->file, part->position, copy, part->length_bytes, &got);
    assert(status != STATUS_OK || got == part->length_bytes);
    (void)status; /* the reader finds a batch that is none, as with a file that shrinks */
    evbuffer_add_reference(out, copy, part->length_bytes, free_copy, copy);
}

static void add_file_range(struct request *request, const struct log_part *part, uint64_t group)
{
    if (file_descriptor(part->file) < 0) {
        add_file_bytes(request->connection->out, part);
    } else {
        file_range_add(request->connection, part->file, part->position, part->length_bytes, group);
    }
}

static void add_slice(struct evbuffer *out, const struct log_part *part)
{
    if (part->slice.length < COPY_BELOW_BYTES) {
        evbuffer_add(out, part->slice.data, part->slice.length);
        return;
    }
    evbuffer_add_reference(out, part->slice.data, part->slice.length, give_back_block,
                           block_ref(part->slice.block));
}

static void fill_gap(struct request *request, size_t gap, struct evbuffer *out)
{
    const struct fetch *fetch = request->state;
    assert(fetch->sent[gap] != NULL && fetch->sent[gap]->has_read);
    assert(out == request->connection->out);
    const struct log_read *read = &fetch->sent[gap]->read;
    for (size_t i = 0; i < read->part_count; i++) {
        if (read->parts[i].slice.block != NULL) {
            add_slice(out, &read->parts[i]);
        } else {
            add_file_range(request, &read->parts[i], fetch->sent[gap]->part.group_id);
        }
    }
}

/* Legs of different shards each kept to the request's limit: together they may be above it. */
static void keep_to_limit(struct fetch *fetch)
{
    const struct fetch_request *message = fetch->request->message;
    size_t limit = message->max_bytes > 0 ? (size_t)message->max_bytes : 0;
    size_t total = 0;
    for (int32_t i = 0; i < fetch->part_count; i++) {
        struct fetch_part *part = &fetch->parts[i];
        if (!part->has_read || part->read.total_bytes == 0) {
            continue;
        }
        if (total > 0 && total + part->read.total_bytes > limit) {
            log_read_release(&part->read);
            part->has_read = false;
            continue;
        }
        total += part->read.total_bytes;
    }
}

static bool slice_has_zstd(struct view bytes)
{
    struct view batch;
    struct batch_header header;
    while (batch_next(&bytes, &batch, &header) == STATUS_OK) {
        if (batch_compression(&header) == COMPRESSION_ZSTD) {
            return true;
        }
    }
    return false;
}

static bool file_has_zstd(const struct log_part *part)
{
    uint64_t position = part->position;
    uint64_t end = part->position + part->length_bytes;
    while (position + BATCH_HEADER_BYTES <= end) {
        uint8_t bytes[BATCH_HEADER_BYTES];
        struct batch_header header;
        size_t got;
        if (file_read(part->file, position, bytes, sizeof bytes, &got) != STATUS_OK ||
            batch_read_header((struct view){bytes, got}, &header) != STATUS_OK) {
            return false;
        }
        if (batch_compression(&header) == COMPRESSION_ZSTD) {
            return true;
        }
        position += batch_size_bytes(&header);
    }
    return false;
}

/* Clients below version 10 do not know zstd (KIP-110): they get an error instead of bytes that they
 * cannot read. */
static void refuse_zstd(struct fetch_part *part)
{
    bool found = false;
    for (size_t i = 0; i < part->read.part_count && !found; i++) {
        const struct log_part *piece = &part->read.parts[i];
        found = piece->slice.block != NULL ? slice_has_zstd(slice_view(piece->slice))
                                           : file_has_zstd(piece);
    }
    if (found) {
        log_read_release(&part->read);
        part->has_read = false;
        part->part.error = KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
    }
}

static bool worth_telling(const struct fetch_part *part)
{
    const struct session_partition *remembered = part->remembered;
    bool has_bytes = part->has_read && part->read.total_bytes > 0;
    return has_bytes || part->part.error != KAFKA_NONE || part->diverging.epoch >= 0 ||
           part->preferred_replica >= 0 ||
           remembered->sent_error || remembered->sent_high_watermark != part->high_watermark ||
           remembered->sent_log_start != part->log_start;
}

/* A partition that gave data goes to the end of its session, so that each has its turn. */
static void remember(struct fetch *fetch, struct fetch_part *part)
{
    struct session_partition *remembered = part->remembered;
    assert(remembered != NULL);
    assert(fetch->session->busy);
    remembered->sent_high_watermark = part->high_watermark;
    remembered->sent_log_start = part->log_start;
    remembered->sent_error = part->part.error != KAFKA_NONE;
    if (part->has_read && part->read.total_bytes > 0) {
        HASH_DEL(fetch->session->partitions, remembered);
        HASH_ADD(hh, fetch->session->partitions, key, sizeof remembered->key, remembered);
    }
}

static void fill_partition(struct fetch *fetch, const struct fetch_part *part,
                           struct fetch_response_partition_data *out)
{
    const struct fetch_request *message = fetch->request->message;
    *out = fetch_response_partition_data_default;
    out->partition_index = part->asked.partition;
    out->error_code = part->part.error;
    out->high_watermark = part->high_watermark;
    out->last_stable_offset = part->high_watermark;
    out->log_start_offset = part->log_start;
    out->preferred_read_replica = part->preferred_replica;
    out->aborted_transactions_count = message->isolation_level == READ_COMMITTED ? 0 : -1;
    out->records.bytes = VIEW_EMPTY;
    out->diverging_epoch.epoch = part->diverging.epoch;
    out->diverging_epoch.end_offset = part->diverging.epoch >= 0 ? part->diverging.end_offset : -1;
    if (part->has_read) {
        out->records.external_length = (uint32_t)part->read.total_bytes;
    }
    bool moved = part->part.error == KAFKA_NOT_LEADER_OR_FOLLOWER ||
                 part->part.error == KAFKA_FENCED_LEADER_EPOCH;
    if (moved && fetch->request->api_version >= FIRST_LEADER_VERSION) {
        struct told_leader leader = told_leader_of(fetch->request, part->part.group_id);
        out->current_leader.leader_id = leader.id;
        out->current_leader.leader_epoch = leader.epoch;
        if (fetch->request->api_version >= FIRST_ENDPOINTS_VERSION) {
            told_nodes_add(&fetch->leaders, fetch->request, leader.id);
        }
    }
}

static bool same_topic(const struct fetch_part *a, const struct fetch_part *b)
{
    return uuid_equal(a->topic_id, b->topic_id) && view_equal(a->topic_name, b->topic_name);
}

/* Neighbours of the same topic share one element. */
static void fill_topics(struct fetch *fetch, struct fetch_response *response,
                        struct fetch_part **told, int32_t told_count)
{
    struct fetch_response_partition_data *data =
        request_take(fetch->request, (size_t)told_count, sizeof *data);
    response->responses =
        request_take(fetch->request, (size_t)told_count, sizeof *response->responses);
    size_t sent = 0;
    for (int32_t i = 0; i < told_count; i++) {
        struct fetch_part *part = told[i];
        if (i == 0 || !same_topic(told[i - 1], part)) {
            struct fetch_response_fetchable_topic_response *topic =
                &response->responses[response->responses_count++];
            topic->topic = part->topic_name;
            topic->topic_id = part->topic_id;
            topic->partitions = &data[i];
        }
        response->responses[response->responses_count - 1].partitions_count++;
        fill_partition(fetch, part, &data[i]);
        if (data[i].records.external_length > 0) {
            fetch->sent[sent++] = part;
        }
    }
}

/* Of partitions that are not led here (KIP-951). */
static void add_leaders(struct fetch *fetch, struct fetch_response *response)
{
    size_t count = (size_t)fetch->leaders.count;
    response->node_endpoints =
        request_take(fetch->request, count, sizeof *response->node_endpoints);
    response->node_endpoints_count = fetch->leaders.count;
    for (size_t i = 0; i < count; i++) {
        const struct node_endpoint *node = &fetch->leaders.items[i];
        response->node_endpoints[i] = (struct fetch_response_node_endpoint){
            .node_id = node->node_id, .host = node->host, .port = node->port, .rack = node->rack};
    }
}

static void answer(struct request *request, struct fetch_response *response)
{
    request->fill_gap = fill_gap;
    request_answer(request, request->home, response);
}

void fetch_answer(struct fetch *fetch)
{
    struct request *request = fetch->request;
    struct fetch_response response = fetch_response_default;
    bool incremental = fetch->session != NULL && !fetch->new_session;
    keep_to_limit(fetch);
    struct fetch_part **told =
        request_take(request, (size_t)fetch->part_count + 1, sizeof *told);
    fetch->sent = request_take(request, (size_t)fetch->part_count + 1, sizeof *fetch->sent);
    int32_t told_count = 0;
    for (int32_t i = 0; i < fetch->part_count; i++) {
        struct fetch_part *part = &fetch->parts[i];
        if (request->api_version < FIRST_ZSTD_VERSION && part->has_read) {
            refuse_zstd(part);
        }
        if (!incremental || worth_telling(part)) {
            told[told_count++] = part;
        }
        if (fetch->session != NULL) {
            remember(fetch, part);
        }
    }
    response.session_id = fetch->session != NULL ? fetch->session->id : FETCH_SESSION_NONE;
    fill_topics(fetch, &response, told, told_count);
    add_leaders(fetch, &response);
    answer(request, &response);
}

void fetch_answer_error(struct request *request, int16_t error)
{
    struct fetch_response response = fetch_response_default;
    response.error_code = error;
    answer(request, &response);
}
