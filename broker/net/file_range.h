/* Ranges of files that wait in a connection's output, and what happens when one cannot be read.
 *
 * The kernel reads a range only when it sends it (sendfile), in the middle of an answer: the
 * connection has to end then. The file is named in the log, and whoever serves its partition is
 * told, as after every other read that fails (broker/group/unread.h).
 */
#ifndef OTTLA_BROKER_NET_FILE_RANGE_H
#define OTTLA_BROKER_NET_FILE_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct file;

/* Adds a range of the file, which belongs to this group, to what the connection sends; takes a
 * reference. The file has a descriptor. */
void file_range_add(struct connection *connection, struct file *file, uint64_t position,
                    size_t length, uint64_t group);

/* Writing has failed with this error, or 0 when nothing was left to be read. Whether that was for
 * the file and not for the socket; then it is logged, and the group is told. */
bool file_range_failed(struct connection *connection, int error);

#endif
