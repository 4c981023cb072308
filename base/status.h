/* The outcome of anything that the environment can make fail: input, files, limits.
 *
 * A bug is an assert, a client's mistake is a Kafka error code; what is left is a status, and the
 * compiler makes sure that nobody drops one.
 */
#ifndef OTTLA_BASE_STATUS_H
#define OTTLA_BASE_STATUS_H

#define MUST_USE __attribute__((warn_unused_result))

enum status {
    STATUS_OK = 0,
    STATUS_TRUNCATED,   /* the input ends before the value does */
    STATUS_INVALID,     /* the input cannot be what it says it is */
    STATUS_LIMIT,       /* a configured bound would be passed */
    STATUS_NOT_FOUND,   /* what was asked for is not there */
    STATUS_OUT_OF_RANGE, /* an offset or index outside what is kept */
    STATUS_CORRUPT,     /* stored bytes fail their check */
    STATUS_IO,          /* a read, write or sync failed */
    STATUS_NO_SPACE,    /* the disk is full */
    STATUS_READ_ONLY,   /* the file system does not take writes */
    STATUS_UNSUPPORTED, /* known, but not offered */
    STATUS_BUSY,        /* not now; try again later */
    STATUS_CLOSED,      /* the other side or this part is gone */
    STATUS_TIMEOUT,     /* it took longer than it may; it may still happen */
    STATUS_COUNT
};

/* A short English name ("no space"), for log lines; never null. */
const char *status_text(enum status status);

#endif
