/* raft_script [--write] FILE: runs a script against a cluster of cores and compares the narration.
 *
 * A script is a text of comments (#), commands (> ...) and, after each command, the lines that are
 * expected: the actions of every node it touched, and reasons in parentheses. --write puts in what
 * happens instead of comparing; the difference is then read by a person. Commands:
 *
 *   limits NAME=N...      before nodes; the names of struct raft_limits
 *   nodes 1v 2v 3l [+N]   creates and starts these members (v voter, l learner) and N others
 *   campaign N            tick N [TIMES]        propose N TEXT        read N CONTEXT
 *   campaign-held N       tick-held N [TIMES]   lost-held N PEER
 *   transfer N TO         change N 1v 2l...     lost, gone, back N PEER    withdraw N    rejoin N
 *   release N INDEX       restored N INDEX TERM snapshot-done N PEER INDEX
 *   disk N                completes the writes of a node (0 = of all)
 *   deliver [FROM TO]     delivers the messages that wait (0 = any)
 *   drop [FROM TO]        loses them
 *   settle                disks and messages until nothing waits
 *   crash N               restart N             state
 *   lose N COUNT          restarts without the latest appends: damage
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scripts/raft/nodes.h"

enum { WORDS_MAX = 16 };

/* A command in words. */
struct command {
    char *words[WORDS_MAX];
    size_t count;
};

static int64_t number(const struct command *command, size_t at, int64_t otherwise)
{
    return at < command->count ? strtoll(command->words[at], NULL, 10) : otherwise;
}

static size_t read_members(const struct command *command, size_t from, struct raft_member *members)
{
    size_t count = 0;
    for (size_t i = from; i < command->count && command->words[i][0] != '+'; i++) {
        char *end;
        members[count].id = (int32_t)strtol(command->words[i], &end, 10);
        members[count].flags = *end == 'v' ? RAFT_VOTER : RAFT_LEARNER;
        count++;
    }
    return count;
}

static void set_limits(struct nodes *nodes, const struct command *command)
{
    const struct {
        const char *name;
        uint32_t *value;
    } table[] = {
        {"election_ticks", &nodes->limits.election_ticks},
        {"heartbeat_ticks", &nodes->limits.heartbeat_ticks},
        {"hibernate_ticks", &nodes->limits.hibernate_ticks},
        {"message_entries", &nodes->limits.message_entries},
        {"inflight_entries", &nodes->limits.inflight_entries},
        {"uncommitted_bytes", &nodes->limits.uncommitted_bytes},
        {"reads", &nodes->limits.reads},
    };
    for (size_t i = 1; i < command->count; i++) {
        char *value = strchr(command->words[i], '=');
        assert(value != NULL);
        *value = '\0';
        bool known = strcmp(command->words[i], "eager_commit") == 0;
        nodes->limits.eager_commit = known || nodes->limits.eager_commit;
        for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
            if (strcmp(command->words[i], table[k].name) == 0) {
                *table[k].value = (uint32_t)strtoul(value + 1, NULL, 10);
                known = true;
            }
        }
        assert(known);
    }
}

static void start(struct nodes *nodes, const struct command *command)
{
    nodes->member_count = read_members(command, 1, nodes->members);
    const char *last = command->words[command->count - 1];
    nodes_start(nodes, last[0] == '+' ? (uint32_t)strtoul(last + 1, NULL, 10) : 0);
}

static void settle(struct nodes *nodes)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < nodes->count; i++) {
            moved = node_disk(nodes, &nodes->nodes[i]) || moved;
        }
        moved = nodes_deliver(nodes, 0, 0, false) || moved;
    }
}

static void show(struct nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        char text[400] = "crashed";
        if (nodes->nodes[i].raft != NULL) {
            raft_state_text(nodes->nodes[i].raft, text, sizeof text);
        }
        fprintf(nodes->out, "  n%d %s\n", nodes->nodes[i].id, text);
    }
}

/* Commands for the whole cluster; false when it is none. */
static bool run_for_all(struct nodes *nodes, const struct command *command)
{
    const char *name = command->words[0];
    int32_t from = (int32_t)number(command, 1, 0);
    int32_t to = (int32_t)number(command, 2, 0);
    if (strcmp(name, "limits") == 0) {
        set_limits(nodes, command);
    } else if (strcmp(name, "nodes") == 0) {
        start(nodes, command);
    } else if (strcmp(name, "deliver") == 0 || strcmp(name, "drop") == 0) {
        nodes_deliver(nodes, from, to, name[1] == 'r');
    } else if (strcmp(name, "settle") == 0) {
        settle(nodes);
    } else if (strcmp(name, "state") == 0) {
        show(nodes);
    } else if (strcmp(name, "disk") == 0 && from == 0) {
        for (uint32_t i = 0; i < nodes->count; i++) {
            node_disk(nodes, &nodes->nodes[i]);
        }
    } else {
        return false;
    }
    return true;
}

/* The event that a command stands for; kind 0 when it stands for none. */
static struct raft_event event_of(const struct command *command, struct raft_member *members)
{
    static const struct {
        const char *name;
        enum raft_event_kind kind;
    } simple[] = {{"campaign", RAFT_EVENT_CAMPAIGN}, {"withdraw", RAFT_EVENT_WITHDRAW},
                  {"rejoin", RAFT_EVENT_REJOIN},     {"transfer", RAFT_EVENT_TRANSFER},
                  {"lost", RAFT_EVENT_PEER_LOST},    {"read", RAFT_EVENT_READ},
                  {"campaign-held", RAFT_EVENT_CAMPAIGN}, {"lost-held", RAFT_EVENT_PEER_LOST},
                  {"gone", RAFT_EVENT_PEER_GONE},    {"back", RAFT_EVENT_PEER_BACK},
                  {"change", RAFT_EVENT_CHANGE_MEMBERS},
                  {"restored", RAFT_EVENT_RESTORED}, {"snapshot-done", RAFT_EVENT_SNAPSHOT_DONE}};
    struct raft_event event = {0};
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) {
        if (strcmp(command->words[0], simple[i].name) == 0) {
            event.kind = (uint8_t)simple[i].kind;
            event.hold = strstr(simple[i].name, "-held") != NULL;
        }
    }
    if (event.kind == RAFT_EVENT_TRANSFER || event.kind == RAFT_EVENT_PEER_LOST ||
        event.kind == RAFT_EVENT_PEER_GONE || event.kind == RAFT_EVENT_PEER_BACK) {
        event.node = (int32_t)number(command, 2, RAFT_NO_NODE);
    } else if (event.kind == RAFT_EVENT_READ) {
        event.read.context = (uint64_t)number(command, 2, 0);
    } else if (event.kind == RAFT_EVENT_CHANGE_MEMBERS) {
        event.change.count = read_members(command, 2, members);
        event.change.members = members;
    } else if (event.kind == RAFT_EVENT_RESTORED) {
        event.snapshot.index = (uint64_t)number(command, 2, 0);
        event.snapshot.term = (uint64_t)number(command, 3, 0);
    } else if (event.kind == RAFT_EVENT_SNAPSHOT_DONE) {
        event.snapshot.node = (int32_t)number(command, 2, 0);
        event.snapshot.index = (uint64_t)number(command, 3, 0);
    }
    return event;
}

static void tick(struct nodes *nodes, struct node *node, int64_t times, bool hold)
{
    for (int64_t i = 0; i < times; i++) {
        node_event(nodes, node, (struct raft_event){.kind = RAFT_EVENT_TICK, .hold = hold});
    }
}

/* Commands for one node; false when it is none. */
static bool run_for_node(struct nodes *nodes, struct node *node, const struct command *command)
{
    const char *name = command->words[0];
    struct raft_member members[WORDS_MAX];
    struct raft_event event = event_of(command, members);
    if (event.kind != 0) {
        node_event(nodes, node, event);
    } else if (strcmp(name, "tick") == 0) {
        tick(nodes, node, number(command, 2, 1), false);
    } else if (strcmp(name, "tick-held") == 0) {
        tick(nodes, node, number(command, 2, 1), true);
    } else if (strcmp(name, "propose") == 0 && command->count > 2) {
        node_propose(nodes, node, command->words[2]);
    } else if (strcmp(name, "release") == 0) {
        uint64_t start = raft_release(node->raft, (uint64_t)number(command, 2, 0));
        fprintf(nodes->out, "  n%d released up to %llu\n", node->id, (unsigned long long)start);
    } else if (strcmp(name, "disk") == 0) {
        node_disk(nodes, node);
    } else if (strcmp(name, "crash") == 0) {
        node_crash(nodes, node);
    } else if (strcmp(name, "lose") == 0) {
        node_lose(nodes, node, (uint32_t)number(command, 2, 1));
    } else if (strcmp(name, "restart") == 0) {
        node_restart(nodes, node);
    } else {
        return false;
    }
    return true;
}

static void run_command(struct nodes *nodes, char *text)
{
    struct command command = {0};
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL && command.count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        command.words[command.count++] = word;
    }
    assert(command.count > 0);
    if (run_for_all(nodes, &command)) {
        return;
    }
    struct node *node = nodes_find(nodes, (int32_t)number(&command, 1, 0));
    if (node == NULL || !run_for_node(nodes, node, &command)) {
        fprintf(nodes->out, "  no such command or node\n");
    }
}

/* The script again, with what really happened after each command. */
static char *run_script(FILE *script)
{
    char *result = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&result, &length);
    struct nodes *nodes = malloc(sizeof *nodes);
    assert(nodes != NULL && out != NULL);
    nodes_init(nodes, out);
    char line[2000];
    while (fgets(line, sizeof line, script) != NULL) {
        if (strncmp(line, "  ", 2) == 0) {
            continue;
        }
        fputs(line, out);
        if (line[0] == '>') {
            line[strcspn(line, "\n")] = '\0';
            run_command(nodes, line + 1);
        }
    }
    nodes_free(nodes);
    free(nodes);
    fclose(out);
    return result;
}

static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t length = 0;
    FILE *copy = open_memstream(&text, &length);
    assert(copy != NULL);
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        fputc(c, copy);
    }
    fclose(copy);
    return text;
}

/* Prints the first line that differs. */
static bool compare(const char *name, const char *expected, const char *found)
{
    size_t line = 1;
    while (*expected != '\0' || *found != '\0') {
        size_t a = strcspn(expected, "\n");
        size_t b = strcspn(found, "\n");
        if (a != b || strncmp(expected, found, a) != 0) {
            printf("%s:%zu: expected\n%.*s\nbut found\n%.*s\n", name, line, (int)a, expected,
                   (int)b, found);
            return false;
        }
        expected += a + (expected[a] == '\n' ? 1 : 0);
        found += b + (found[b] == '\n' ? 1 : 0);
        line++;
    }
    return true;
}

int main(int count, char **arguments)
{
    bool write = count > 2 && strcmp(arguments[1], "--write") == 0;
    if (count < 2) {
        fprintf(stderr, "usage: raft_script [--write] FILE\n");
        return EXIT_FAILURE;
    }
    const char *name = arguments[count - 1];
    FILE *script = fopen(name, write ? "r+" : "r");
    if (script == NULL) {
        perror(name);
        return EXIT_FAILURE;
    }
    char *found = run_script(script);
    rewind(script);
    char *expected = read_all(script);
    bool same = write || compare(name, expected, found);
    if (write) {
        script = freopen(name, "w", script);
        assert(script != NULL);
        fputs(found, script);
    }
    fclose(script);
    free(found);
    free(expected);
    return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
