#!/usr/bin/env python3
"""Shows each rule of tidy one tree that keeps it and some that break it; prints TAP."""
import sys

import rules
from tree import Source

HEAD = "/* What it owns. */\n"
GUARD = HEAD + "#ifndef OTTLA_BASE_X_H\n#define OTTLA_BASE_X_H\n{}#endif\n"
BODY = "static int f(int a)\n{{\n{}}}\n"


def body(lines):
    return HEAD + BODY.format(lines)


def setting(name, text="Text.", scope="broker", behind="-"):
    return "\t".join((scope, name, "int", "1", "-", "read-only", behind, "low", "-", text)) + "\n"


# rule: (a tree that is right, trees that are wrong)
CASES = {
    "file_lengths": ({"base/x.c": "a\n" * 800}, [{"base/x.c": "a\n" * 801}]),
    "line_shape": ({"base/x.c": "a" * 100 + "\n"},
                   [{"base/x.c": "a" * 101 + "\n"}, {"base/x.c": "a \n"}, {"base/x.c": "\ta\n"},
                    {"base/x.c": "a"}]),
    "function_lengths": ({"base/x.c": body("    a();\n" * 78)},
                         [{"base/x.c": body("    a();\n" * 79)},
                          {"tests/x.c": body("    a();\n" * 79)}]),
    "function_length_spread": ({"base/x.c": body("    a();\n" * 48)},
                               [{"base/x.c": body("    a();\n" * 49)}]),
    "opening_paragraph": ({"base/x.c": HEAD}, [{"base/x.c": "#include <stdio.h>\n"}]),
    "header_guards": ({"base/x.h": GUARD.format("")},
                      [{"base/x.h": HEAD}, {"base/y.h": GUARD.format("")},
                       {"base/x.h": GUARD.format("") + "#define A\n"}]),
    "own_header_first": ({"base/x.h": "", "base/x.c": '#include "base/x.h"\n#include <stdio.h>\n'},
                         [{"base/x.h": "", "base/x.c": '#include <stdio.h>\n#include "base/x.h"\n'},
                          {"base/x.h": "", "base/x.c": HEAD}]),
    "include_paths": ({"base/x.c": '#include "base/y.h"\n'},
                      [{"base/x.c": '#include "y.h"\n'}, {"base/x.c": '#include "../io/y.h"\n'}]),
    "include_direction": (
        {"storage/x.c": '#include "protocol/y.h"\n', "broker/x.c": '#include "raft/y.h"\n',
         "io/x.c": '#include "base/y.h"\n', "tests/x.c": '#include "tests/y.h"\n'},
        [{"base/x.c": '#include "io/y.h"\n'}, {"io/x.c": '#include "protocol/y.h"\n'},
         {"protocol/x.c": '#include "io/y.h"\n'}, {"raft/x.c": '#include "storage/y.h"\n'},
         {"storage/x.c": '#include "raft/y.h"\n'}, {"storage/x.h": '#include "broker/y.h"\n'},
         {"broker/x.c": '#include "tests/y.h"\n'}]),
    "pure_rooms": ({"storage/x.c": "#include <unistd.h>\n", "raft/x.c": "#include <stdint.h>\n"},
                   [{"raft/x.c": "#include <sys/socket.h>\n"}, {"protocol/x.c": "#include <time.h>\n"},
                    {"protocol/x.h": "#include <pthread.h>\n"}]),
    "include_cycles": ({"base/a.h": '#include "base/b.h"\n', "base/b.h": ""},
                       [{"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'},
                        {"base/a.h": '#include "base/a.h"\n'}]),
    "banned_calls": (
        {"base/x.c": body('    my_strcpy(a, "strcpy(b)"); /* rand() */\n    a->time(b);\n'),
         "base/memory.c": body("    malloc(1);\n"), "tests/x.c": body("    time(NULL);\n")},
        [{"base/x.c": body("    strcpy(a, b);\n")}, {"io/x.c": body("    return rand ();\n")},
         {"broker/x.c": body("    sleep(1);\n")}, {"base/x.c": body("    malloc(1);\n")},
         {"base/x.h": HEAD + "static inline int f(void) { return time(0); }\n"}]),
    "conditions_inside_functions": (
        {"base/x.c": HEAD + "#if A\n#endif\n" + BODY.format("    a();\n")},
        [{"base/x.c": body("#if A\n    a();\n#endif\n")}, {"base/x.c": body("#ifdef A\n#endif\n")}]),
    "hiding_typedefs": ({"base/x.h": "typedef void visit(struct a *a);\n"},
                        [{"base/x.h": "typedef struct a a;\n"}, {"base/x.h": "typedef struct {\n"},
                         {"base/x.h": "typedef char *text;\n"}]),
    "mutable_statics": (
        {"base/x.c": HEAD + "static const int a = 1;\nextern const int b;\nstatic int f(void);\n"
                     "struct c;\nenum { D = 1 };\n" + BODY.format("    int a = 1;\n"),
         "base/log.c": "static int level;\n"},
        [{"base/x.c": "static int a;\n"}, {"base/x.c": "static struct b a = {0};\n"},
         {"base/x.c": "int a = 1;\n"}, {"base/x.c": "static char text[10];\n"},
         {"base/x.c": "static struct a *b;\n"}]),
    "marked_layouts": (
        {"base/x.h": "/* Header. [disk] */\nstruct a {\n    int b;\n};\n"
                     "_Static_assert(sizeof(struct a) == 4, \"\");\n"
                     "_Static_assert(offsetof(struct a, b) == 0, \"\");\nstruct c {\n};\n"},
        [{"base/x.h": "/* Header.\n * [wire] */\nstruct a {\n    int b;\n};\n"},
         {"base/x.h": "/* [disk] */\nstruct a {\n};\n_Static_assert(sizeof(struct ab) == 4, \"\");\n"}]),
    "packed_structs": ({"base/x.h": "/* packed */\nint packed;\n"},
                       [{"base/x.h": "struct a {\n} __attribute__((packed));\n"}]),
    "documented_headers": (
        {"base/x.h": GUARD.format("/* Does a. */\nint a(int b,\n      int c);\nint d(void)\n"
                                  "    __attribute__((malloc));\n\nstatic inline int e(void)\n{\n}\n")},
        [{"base/x.h": GUARD.format("int a(void);\n")},
         {"base/x.h": GUARD.format("/* Does a. */\nint a(void);\n\nstruct b *c(int d,\n  int e);\n")},
         {"base/x.h": GUARD.format("/* About the file. */\n\nMUST_USE enum status a(void);\n")}]),
    "half_done": ({"docs/x.md": "todo list\n"},
                  [{"docs/x.md": "TO" + "DO: more\n"}, {"base/x.c": "/* FIX" + "ME */\n"}]),
    "machine_paths": ({"docs/x.md": "tests/wo" + "rk/a and /var/lib\n"},
                      [{"scripts/x.sh": "cd /wo" + "rk/main\n"}, {"docs/x.md": "`/ro" + "ot/a`\n"}]),
    "assertion_density": ({"base/x.c": "assert(a);\n" * 25 + "a();\n" * 975},
                          [{"base/x.c": "assert(a);\n" * 24 + "a();\n" * 976}]),
    "settings_that_count": (
        {"broker/x.c": body("    read(CONFIG_A_B, TOPIC_CONFIG_T);\n"),
         "broker/config/keys.tsv": setting("a.b") + setting("b.t") + setting("c", "-") +
         setting("d", "Changes nothing: so.") + setting("t", "Text.", "topic", "b.t")},
        [{"broker/x.c": body("    read(CONFIG_A_BC);\n"),
          "broker/config/keys.tsv": setting("a.b")},
         {"broker/x.c": body("    a();\n"), "broker/config/keys.tsv": setting("b.t") +
          setting("t", "Text.", "topic", "b.t")}]),
}


def violations(name, files):
    tree = {path: Source(path, text) for path, text in files.items()}
    return list(getattr(rules, name)(tree))


def main():
    names = [rule.__name__ for rule in rules.RULES]
    missing = sorted(set(names) ^ set(CASES))
    print(f"1..{len(names) + 1}")
    print(f"{'ok' if not missing else 'not ok'} 1 - every rule is shown {missing}")
    failed = len(missing)
    for number, name in enumerate(names, start=2):
        right, wrong = CASES.get(name, ({}, []))
        problems = [f"refuses what is right: {found}" for found in violations(name, right)]
        problems += [f"lets pass: {files}" for files in wrong if not violations(name, files)]
        for problem in problems:
            print(f"# {problem}")
        failed += len(problems)
        print(f"{'ok' if not problems else 'not ok'} {number} - {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
