/* Reads the records of a partition's log in order, for what rebuilds its state from a log:
 * coordinators and the metadata image. */
#ifndef OTTLA_BROKER_GROUP_LOG_READER_H
#define OTTLA_BROKER_GROUP_LOG_READER_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "protocol/records.h"
#include "storage/partition_log.h"

struct log_reader {
    struct partition_log *log;
    int64_t offset;              /* next one to be read */
    struct buffer bytes;         /* of file ranges */
    struct buffer scratch;       /* of unpacked batches */
    /* Gets each record; control batches are passed over. */
    void (*each)(void *context, const struct batch_header *header, const struct record *record);
    void *context;
};

/* Starts at the log's first offset. */
void log_reader_start(struct log_reader *reader, struct partition_log *log,
                      void (*each)(void *context, const struct batch_header *header,
                                   const struct record *record),
                      void *context);

/* Reads about `bytes` more. STATUS_NOT_FOUND: the end is reached. STATUS_CORRUPT or STATUS_IO: it
 * cannot be read. */
MUST_USE enum status log_reader_step(struct log_reader *reader, size_t bytes);

/* Hands over the records of one batch, as a reader does. */
MUST_USE enum status log_reader_batch(struct log_reader *reader, struct view batch);

/* Releases the buffers; the log stays open. Safe on a zeroed reader. */
void log_reader_free(struct log_reader *reader);

#endif
