/* The command line: ottla server [server.properties] [--override key=value]..., --help, --version.
 * Exit codes: 0 done, 1 the broker could not start, 2 the command line is wrong. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/config/config.h"
#include "broker/server/broker.h"
#include "broker/version.h"

static const char help[] =
    "Ottla, a Kafka-compatible broker.\n"
    "\n"
    "  ottla server [server.properties] [--override key=value]...\n"
    "      Runs a broker until SIGTERM or SIGINT. Without any setting it is one node that\n"
    "      listens on port 9092 and keeps its data in ./data.\n"
    "\n"
    "      server.properties       a file in Kafka's format, with Kafka's keys\n"
    "      -o, --override K=V      sets one key; may be repeated; wins over everything else\n"
    "\n"
    "      The environment sets keys too: KAFKA_X_Y or KAFKA_CFG_X_Y is x.y (__ is _, ___ is -).\n"
    "      It wins over the file.\n"
    "\n"
    "  ottla --help, -h            this text\n"
    "  ottla --version, -V         the version\n"
    "\n"
    "Exit code: 0 after a clean stop, 1 when the broker cannot start, 2 for a wrong command line.\n"
    "Every key with its default and meaning: docs/configuration.md.\n"
    "Try it:  ottla server &  kcat -b localhost:9092 -L\n";

static int usage_error(const char *what, const char *word)
{
    fprintf(stderr, "ottla: %s%s%s\nSee ottla --help.\n", what, word[0] != '\0' ? ": " : "", word);
    return 2;
}

struct arguments {
    const char *file;
    const char **overrides;
    int override_count;
};

/* Returns -1 to go on, else an exit code. */
static int parse(int count, char **words, struct arguments *arguments)
{
    static const struct option options[] = {
        {"override", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(count, words, "o:hV", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            if (strchr(optarg, '=') == NULL) {
                return usage_error("--override takes key=value", optarg);
            }
            arguments->overrides[arguments->override_count++] = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        case 'V':
            puts("ottla " OTTLA_VERSION);
            return 0;
        default:
            return usage_error("wrong option", "");
        }
    }
    if (optind >= count || strcmp(words[optind], "server") != 0) {
        return usage_error("a command is needed; the one there is is \"server\"",
                           optind < count ? words[optind] : "");
    }
    if (count - optind > 2) {
        return usage_error("more than one properties file", words[optind + 2]);
    }
    arguments->file = optind + 1 < count ? words[optind + 1] : NULL;
    return -1;
}

static int run_server(const struct arguments *arguments)
{
    struct config_sources sources = {
        .file_path = arguments->file,
        .environment = environ,
        .overrides = arguments->overrides,
        .override_count = arguments->override_count,
    };
    struct config *config;
    char why[CONFIG_WHY_BYTES];
    if (config_load(&sources, &config, why) != STATUS_OK) {
        fprintf(stderr, "ottla: %s\n", why);
        return 1;
    }
    int code = broker_run(config);
    config_free(config);
    return code;
}

/* Threads give memory back in larger steps, and there are no more pools than threads that allocate
 * much. Setting any of these ends malloc's own adjustment of the size from which a block is a
 * mapping of its own: without a larger one each large batch would be mapped, faulted in page by
 * page and unmapped again, at twice the cost of the whole request. */
static void tune_allocator(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 16 * 1024 * 1024);
    mallopt(M_TOP_PAD, 256 * 1024);
    mallopt(M_ARENA_MAX, 4);
}

int main(int count, char **words)
{
    tune_allocator();
    struct arguments arguments = {
        .overrides = memory_new_zero((size_t)count, sizeof(const char *)),
    };
    int code = parse(count, words, &arguments);
    if (code < 0) {
        code = run_server(&arguments);
    }
    free(arguments.overrides);
    if (code == BROKER_RUN_AGAIN) {
        /* The storage works again: start anew, from what is on the disk. */
        execv("/proc/self/exe", words);
        perror("ottla: cannot start again");
        code = 1;
    }
    return code;
}
