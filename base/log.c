/* Log lines on standard error, one write each so that threads do not mix. The level is the one
 * piece of process-wide state in the program: it is a property of standard error, not of a part. */
#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

static atomic_int lowest_level = LOG_INFO;

static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};

void log_set_level(enum log_level level)
{
    assert(level <= LOG_OFF);
    atomic_store_explicit(&lowest_level, (int)level, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&lowest_level, memory_order_relaxed);
}

static int write_prefix(char *line, enum log_level level, const char *part)
{
    struct timeval now;
    struct tm utc;
    gettimeofday(&now, NULL);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(line, LINE_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    return (int)length + snprintf(line + length, LINE_BYTES - length, ".%03dZ %s %s: ",
                                  (int)(now.tv_usec / 1000), names[level], part);
}

void log_write(enum log_level level, const char *part, const char *format, ...)
{
    assert(level < LOG_OFF);
    char line[LINE_BYTES + 1];
    int length = write_prefix(line, level, part);
    va_list list;
    va_start(list, format);
    int more = vsnprintf(line + length, (size_t)(LINE_BYTES - length), format, list);
    va_end(list);
    length = more < LINE_BYTES - length ? length + more : LINE_BYTES - 1;
    for (int i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
            line[i] = '?';
        }
    }
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}
