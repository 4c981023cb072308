/* Data directories are made before the first start: `ottla format`, as kafka-storage format does.
 * Who has formatted a node's directories needs no cluster.id in its configuration. */
#ifndef OTTLA_BROKER_SERVER_FORMAT_H
#define OTTLA_BROKER_SERVER_FORMAT_H

#include <stdbool.h>

struct config;

struct format_settings {
    const char *cluster_id;      /* any text, as random-uuid prints it */
    bool ignore_formatted;       /* directories that are formatted already stay as they are */
    bool standalone;             /* the first node of a cluster: nobody else has anything */
};

/* Formats the directories of log.dirs and says so on standard output. Exit code: 0 when all are
 * formatted, 1 when one cannot be, or was formatted before; a line on standard error says why, and
 * nothing was changed in the latter case. */
int format_run(const struct config *config, const struct format_settings *settings);

/* Prints a new cluster id. Exit code 0. */
int format_random_uuid(void);

#endif
