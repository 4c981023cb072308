/* What happens when the disk fails or fills: everything stops acknowledging, the log says what to
 * do, and the directory is tried again until it takes writes. */
#ifndef OTTLA_BROKER_SERVER_STORAGE_WATCH_H
#define OTTLA_BROKER_SERVER_STORAGE_WATCH_H

#include <stdbool.h>

#include "storage/journal.h"
#include "storage/log_writer.h"

struct broker;

/* The journal's handlers for this broker: replay into its boot, the rest to its shards. */
struct journal_handler storage_watch_handler(struct broker *broker);

/* The log writer's settings, likewise. */
struct log_writer_settings storage_watch_writer(struct broker *broker);

/* Called about once a second by the main thread: true when the storage had failed and takes writes
 * again. */
bool storage_watch_recovered(struct broker *broker);

#endif
