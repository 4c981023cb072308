/* Each range knows how much the connection will have sent when it is over, so that the one that is
 * being sent, and how far, follows from what was sent. It ends with its piece of the output. */
#include "broker/net/file_range.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/group/replicas.h"
#include "broker/group/unread.h"
#include "broker/net/connection.h"
#include "io/file.h"

struct file_range {
    struct list_link link;       /* in the connection's, in the order they are sent */
    struct file *file;
    uint64_t position;
    size_t length;
    uint64_t over_at;            /* bytes that the connection has sent then */
    uint64_t group;
};

static void range_over(struct evbuffer_file_segment const *segment, int flags, void *argument)
{
    struct file_range *range = argument;
    (void)segment;
    (void)flags;
    list_remove(&range->link);
    file_unref(range->file);
    free(range);
}

void file_range_add(struct connection *connection, struct file *file, uint64_t position,
                    size_t length, uint64_t group)
{
    assert(file_descriptor(file) >= 0 && length > 0);
    struct file_range *range = memory_new_zero(1, sizeof *range);
    struct evbuffer_file_segment *segment = evbuffer_file_segment_new(
        file_descriptor(file), (ev_off_t)position, (ev_off_t)length, 0);
    assert(segment != NULL);
    range->file = file_ref(file);
    range->position = position;
    range->length = length;
    range->group = group;
    list_push_back(&connection->ranges, &range->link);
    evbuffer_file_segment_add_cleanup_cb(segment, range_over, range);
    evbuffer_add_file_segment(connection->out, segment, 0, (ev_off_t)length);
    evbuffer_file_segment_free(segment); /* the buffer has its own reference */
    range->over_at = connection->sent_bytes + evbuffer_get_length(connection->out);
}

/* What reading a page of a file fails with; 0: the file ends before it. A socket has other ones. */
static bool is_of_file(int error)
{
    return error == 0 || error == EIO || error == EUCLEAN || error == EBADMSG;
}

bool file_range_failed(struct connection *connection, int error)
{
    struct list_link *link = list_first(&connection->ranges);
    if (link == NULL || !is_of_file(error)) {
        return false;
    }
    const struct file_range *range = container_of(link, struct file_range, link);
    assert(range->over_at > connection->sent_bytes);
    uint64_t left = range->over_at - connection->sent_bytes;
    if (left > range->length) {
        return false; /* something else is before it */
    }
    if (replicas_may_log(connection->shard->replicas, REPLICAS_LOG_UNREAD)) {
        log_error("net", "%s cannot be read at byte %" PRIu64 " for %s: %s; the connection ends",
                  file_path(range->file), range->position + range->length - left,
                  connection->address, error == 0 ? "it ends there" : strerror(error));
    }
    unread_tell(connection->shard, range->group, error == 0 ? STATUS_CORRUPT : STATUS_IO);
    return true;
}
