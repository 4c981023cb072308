/* One event, one line on standard error: time, level, part, what happened, why, what to do.
 *
 * The level is looked at before anything is formatted. Lines are cut at 1 kB; control characters
 * that come from clients are shown as '?'. Safe from every thread.
 */
#ifndef OTTLA_BASE_LOG_H
#define OTTLA_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

/* Lines below this level are dropped. The only process-wide setting; starts at LOG_INFO. */
void log_set_level(enum log_level level);

/* Whether a line of this level would be written. */
bool log_enabled(enum log_level level);

/* Writes a line; use the macros below, which skip the formatting when the level is off. */
void log_write(enum log_level level, const char *part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_at(level, part, ...) \
    (log_enabled(level) ? log_write((level), (part), __VA_ARGS__) : (void)0)
#define log_debug(part, ...) log_at(LOG_DEBUG, part, __VA_ARGS__)
#define log_info(part, ...) log_at(LOG_INFO, part, __VA_ARGS__)
#define log_warn(part, ...) log_at(LOG_WARN, part, __VA_ARGS__)
#define log_error(part, ...) log_at(LOG_ERROR, part, __VA_ARGS__)

#endif
