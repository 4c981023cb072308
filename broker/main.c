/* The command line: ottla server, format, random-uuid, --help, --version. Exit codes: 0 done, 1 the
 * broker could not start or a directory not be formatted, 2 the command line is wrong. */
#include <assert.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/config/config.h"
#include "broker/server/broker.h"
#include "broker/server/format.h"
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
    "  ottla format --cluster-id ID [server.properties] [--override key=value]...\n"
    "      Makes the directories of log.dirs for this node (node.id) of that cluster; afterwards\n"
    "      the node needs no cluster.id in its configuration. Takes the options of kafka-storage:\n"
    "\n"
    "      -t, --cluster-id ID     the same for all nodes of a cluster; see random-uuid\n"
    "      -c, --config FILE       another way to name the properties file\n"
    "      -g, --ignore-formatted  leaves directories that are formatted as they are; without it\n"
    "                              they are an error, and nothing is done\n"
    "      -s, --standalone        this is the first node of a new cluster\n"
    "      -N, --no-initial-controllers  this node comes to a cluster that is there\n"
    "\n"
    "  ottla random-uuid           prints a new cluster id\n"
    "  ottla --help, -h            this text\n"
    "  ottla --version, -V         the version\n"
    "\n"
    "Exit code: 0 when all is done, 1 when the broker cannot start or a directory cannot be\n"
    "formatted, 2 for a wrong command line.\n"
    "Every key with its default and meaning: docs/configuration.md.\n"
    "Try it:  ottla server &  kcat -b localhost:9092 -L\n";

static int usage_error(const char *what, const char *word)
{
    fprintf(stderr, "ottla: %s%s%s\nSee ottla --help.\n", what, word[0] != '\0' ? ": " : "", word);
    return 2;
}

enum command { COMMAND_SERVER, COMMAND_FORMAT, COMMAND_RANDOM_UUID, COMMAND_COUNT };

static const char *const command_names[COMMAND_COUNT] = {"server", "format", "random-uuid"};

struct arguments {
    enum command command;
    const char *file;
    const char **overrides;
    int override_count;
    struct format_settings format;
    char format_option; /* one that only format takes; 0: none */
};

/* Takes one option; returns -1 to go on, else an exit code. */
static int take_option(int option, struct arguments *arguments)
{
    arguments->format_option = strchr("tcgsN", option) != NULL ? (char)option
                                                                : arguments->format_option;
    switch (option) {
    case 'o':
        if (strchr(optarg, '=') == NULL) {
            return usage_error("--override takes key=value", optarg);
        }
        arguments->overrides[arguments->override_count++] = optarg;
        return -1;
    case 't':
        arguments->format.cluster_id = optarg;
        return -1;
    case 'c':
        arguments->file = optarg;
        return -1;
    case 'g':
        arguments->format.ignore_formatted = true;
        return -1;
    case 's':
        arguments->format.standalone = true;
        return -1;
    case 'N':
        return -1;
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

/* The words that are no options; returns as take_option. */
static int take_words(int count, char **words, struct arguments *arguments)
{
    const char *name = count > 0 ? words[0] : "";
    int command = 0;
    while (command < COMMAND_COUNT && strcmp(name, command_names[command]) != 0) {
        command++;
    }
    if (command == COMMAND_COUNT) {
        return usage_error("a command is needed: server, format or random-uuid", name);
    }
    arguments->command = (enum command)command;
    int most = command == COMMAND_RANDOM_UUID ? 1 : 2;
    if (count > most) {
        return usage_error(most == 1 ? "one word too many" : "more than one properties file",
                           words[most]);
    }
    if (count > 1 && arguments->file != NULL) {
        return usage_error("more than one properties file", words[1]);
    }
    arguments->file = count > 1 ? words[1] : arguments->file;
    if (command != COMMAND_FORMAT && arguments->format_option != 0) {
        return usage_error("only format takes this option", (char[]){'-', arguments->format_option,
                                                                     '\0'});
    }
    const char *id = arguments->format.cluster_id;
    if (command == COMMAND_FORMAT && (id == NULL || id[0] == '\0')) {
        return usage_error("format needs --cluster-id (ottla random-uuid prints a new one)", "");
    }
    return -1;
}

/* Returns -1 to go on, else an exit code. */
static int parse(int count, char **words, struct arguments *arguments)
{
    static const struct option options[] = {
        {"override", required_argument, NULL, 'o'},
        {"cluster-id", required_argument, NULL, 't'},
        {"config", required_argument, NULL, 'c'},
        {"ignore-formatted", no_argument, NULL, 'g'},
        {"standalone", no_argument, NULL, 's'},
        {"no-initial-controllers", no_argument, NULL, 'N'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(count, words, "o:t:c:gsNhV", options, NULL)) != -1) {
        int code = take_option(option, arguments);
        if (code >= 0) {
            return code;
        }
    }
    return take_words(count - optind, words + optind, arguments);
}

static enum log_level level_of(const char *name)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = {{"trace", LOG_DEBUG}, {"debug", LOG_DEBUG}, {"info", LOG_INFO},
                  {"warn", LOG_WARN},   {"error", LOG_ERROR}, {"fatal", LOG_OFF}};
    assert(name != NULL);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(name, levels[i].name) == 0) {
            return levels[i].level;
        }
    }
    return LOG_OFF;
}

/* What the commands that need a configuration do. */
static int run(const struct arguments *arguments)
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
    log_set_level(level_of(config_string(config, CONFIG_OTTLA_LOG_LEVEL)));
    int code = arguments->command == COMMAND_FORMAT ? format_run(config, &arguments->format)
                                                    : broker_run(config);
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
        code = arguments.command == COMMAND_RANDOM_UUID ? format_random_uuid() : run(&arguments);
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
