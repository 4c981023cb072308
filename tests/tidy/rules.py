"""The rules of style. Each takes the tree ({path: Source}) and yields (path, line, message)."""
import re

LONGEST_FILE = 800
LONGEST_LINE = 100
LONGEST_FUNCTION = 80
P95_FUNCTION = 50
ASSERTS_PER_1000_LINES = 25

# What each room may include. broker and whatever is built on it may use everything.
ROOMS = {
    "base": {"base"},
    "io": {"base", "io"},
    "protocol": {"base", "protocol", "messages"},
    "raft": {"base", "raft"},
    "storage": {"base", "io", "protocol", "messages", "storage"},
}
PURE_ROOMS = ("protocol", "raft")
IMPURE_HEADERS = re.compile(r"sys/.*|fcntl\.h|unistd\.h|pthread\.h|threads\.h|time\.h|poll\.h|"
                            r"dirent\.h|signal\.h|netinet/.*|arpa/.*|netdb\.h|event2?/.*")
BANNED_CALLS = {
    "strcpy": "it knows no bound", "strcat": "it knows no bound", "sprintf": "it knows no bound",
    "vsprintf": "it knows no bound", "gets": "it knows no bound",
    "strtok": "it keeps hidden state", "alloca": "the stack has no bound",
    "rand": "take io/random.h", "srand": "take io/random.h", "random": "take io/random.h",
    "time": "take io/clock.h", "gettimeofday": "take io/clock.h", "localtime": "it is not reentrant",
    "sleep": "wait for the state instead", "usleep": "wait for the state instead",
    "nanosleep": "wait for the state instead", "malloc": "take base/memory.h",
    "calloc": "take base/memory.h", "realloc": "take base/memory.h", "strdup": "take base/memory.h",
}
# Where the thing itself is made; and the log, which stands below io.
BANNED_CALL_EXCEPTIONS = {("base/memory.c", name) for name in ("malloc", "calloc", "realloc",
                                                               "strdup")}
BANNED_CALL_EXCEPTIONS |= {("base/log.c", "gettimeofday"), ("base/log.c", "time")}
# Process-wide on purpose: the log level is looked at from everywhere before anything is formatted.
MUTABLE_STATICS = {"base/log.c"}
HALF_DONE = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w./-])/(" + "|".join(("wo" + "rk", "ro" + "ot")) + r")/[\w.]")
MARKER = re.compile(r"\[(disk|wire)\]")


def c_files(tree):
    return [source for source in tree.values() if source.is_c]


def product_files(tree):
    return [source for source in tree.values() if source.is_product]


def file_lengths(tree):
    for source in tree.values():
        if source.is_c and len(source.lines) > LONGEST_FILE:
            yield source.path, len(source.lines), f"more than {LONGEST_FILE} lines"


def line_shape(tree):
    for source in c_files(tree):
        for number, line in enumerate(source.lines, start=1):
            if len(line) > LONGEST_LINE:
                yield source.path, number, f"{len(line)} columns, at most {LONGEST_LINE}"
            if line != line.rstrip():
                yield source.path, number, "blanks at the end"
            if "\t" in line:
                yield source.path, number, "a tab"
        if source.text and not source.text.endswith("\n"):
            yield source.path, len(source.lines), "no newline at the end"


def function_lengths(tree):
    for source in c_files(tree):
        for first, last in source.functions():
            if last - first + 1 > LONGEST_FUNCTION:
                yield source.path, first, f"a function of {last - first + 1} lines"


def function_length_spread(tree):
    lengths = sorted(last - first + 1 for source in product_files(tree)
                     for first, last in source.functions())
    if lengths and lengths[int(len(lengths) * 0.95)] > P95_FUNCTION:
        yield "(product)", 0, f"5 % of the functions are longer than {P95_FUNCTION} lines"


def opening_paragraph(tree):
    for source in c_files(tree):
        if source.lines and not source.lines[0].startswith("/*"):
            yield source.path, 1, "the file does not open with a comment that says what it owns"


def header_guards(tree):
    for source in c_files(tree):
        if source.path.endswith(".h"):
            guard = "OTTLA_" + re.sub(r"[^A-Z0-9]", "_", source.path.upper())
            directives = [line.strip() for line in source.lines if line.startswith("#")]
            if directives[:2] != [f"#ifndef {guard}", f"#define {guard}"] or \
                    directives[-1] != "#endif":
                yield source.path, 1, f"no guard {guard}"


def own_header_first(tree):
    for source in c_files(tree):
        own = source.path[:-2] + ".h"
        if source.path.endswith(".c") and own in tree:
            first = next((line for line in source.lines if line.startswith("#include")), "")
            if first != f'#include "{own}"':
                yield source.path, 1, f"does not include {own} first"


def include_paths(tree):
    for source in c_files(tree):
        for number, path in source.includes():
            if "/" not in path or path.startswith("."):
                yield source.path, number, f"{path} is not a path from the top"


def include_direction(tree):
    for source in c_files(tree):
        allowed = ROOMS.get(source.folder)
        for number, path in source.includes():
            room = path.split("/")[0]
            if allowed is not None and room not in allowed:
                yield source.path, number, f"{source.folder} must not know {path}"
            if room == "tests" and source.folder != "tests":
                yield source.path, number, f"product code must not know {path}"


def pure_rooms(tree):
    for source in c_files(tree):
        if source.folder in PURE_ROOMS:
            for number, path in source.system_includes():
                if IMPURE_HEADERS.fullmatch(path):
                    yield source.path, number, f"{source.folder} is pure, <{path}> is not"


def include_cycles(tree):
    """No header reaches itself."""
    graph = {source.path: [path for _, path in source.includes() if path in tree]
             for source in c_files(tree) if source.path.endswith(".h")}
    done = set()

    def visit(path, trail):
        if path in trail:
            yield path, 1, "a circle: " + " -> ".join(trail[trail.index(path):] + [path])
        elif path not in done:
            for other in graph.get(path, ()):
                yield from visit(other, trail + [path])
            done.add(path)

    for path in sorted(graph):
        yield from visit(path, [])


def banned_calls(tree):
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(BANNED_CALLS) + r")\s*\(")
    for source in product_files(tree):
        for number, line in enumerate(source.code_lines, start=1):
            for match in pattern.finditer(line):
                if (source.path, match[1]) not in BANNED_CALL_EXCEPTIONS:
                    yield source.path, number, f"{match[1]}(): {BANNED_CALLS[match[1]]}"


def conditions_inside_functions(tree):
    for source in product_files(tree):
        for first, last in source.functions():
            for number in range(first, last):
                if re.match(r"\s*#\s*(if|ifdef|ifndef|else|elif)\b", source.lines[number - 1]):
                    yield source.path, number, "#if inside a function"


def hiding_typedefs(tree):
    for source in product_files(tree):
        for number, line in enumerate(source.code_lines, start=1):
            is_pointer = re.match(r"typedef\s[^(]*\*\s*\w+\s*;", line)
            if re.match(r"typedef\s+(struct|union|enum)\b[^(]*$", line) or is_pointer:
                yield source.path, number, "a typedef that hides a struct or a pointer"


def mutable_statics(tree):
    pattern = re.compile(r"(?:static\s+)?(?!extern|typedef|const|return|struct \w+ \{|enum|union)"
                         r"(?:\w+[\s*]+)+\w+(?:\[[^\]]*\])*\s*(?:=|;)")
    for source in product_files(tree):
        if source.path in MUTABLE_STATICS:
            continue
        for number, line in enumerate(source.code_lines, start=1):
            if pattern.match(line) and not re.search(r"\bconst\b|^(extern|typedef|struct \w+;)", line):
                yield source.path, number, "mutable state outside any owner"


def marked_layouts(tree):
    """A struct with [disk] or [wire] in the comment above it is asserted in size and offsets."""
    for source in c_files(tree):
        for number, line in enumerate(source.lines, start=1):
            match = re.match(r"struct (\w+) \{", line)
            if match and MARKER.search(comment_above(source, number)):
                for what in ("sizeof", "offsetof"):
                    wanted = rf"_Static_assert\(\s*{what}\(struct {match[1]}\b"
                    if not re.search(wanted, source.text):
                        yield source.path, number, f"struct {match[1]} has no static assert of {what}"


def packed_structs(tree):
    for source in product_files(tree):
        for number, line in enumerate(source.code_lines, start=1):
            if re.search(r"__attribute__\(\(.*\bpacked\b", line):
                yield source.path, number, "packed: order the fields and assert the layout instead"


def comment_above(source, number):
    """The comment that ends right above the line (counted from 1)."""
    lines = []
    at = number - 2
    if at >= 0 and source.lines[at].rstrip().endswith("*/"):
        while at >= 0:
            lines.insert(0, source.lines[at])
            if "/*" in source.lines[at]:
                return "\n".join(lines)
            at -= 1
    return ""


def documented_headers(tree):
    """Each function in a public header stands below a comment, or directly below another one."""
    for source in product_files(tree):
        if not source.path.endswith(".h"):
            continue
        previous_ends = 0
        for first, last in declarations(source):
            if not comment_above(source, first) and first != previous_ends + 1:
                yield source.path, first, "a function without a comment"
            previous_ends = last


def declarations(source):
    """(first, last line) of each function declared in a header."""
    number = 0
    while number < len(source.code_lines):
        line = source.code_lines[number]
        if re.match(r"(?!static|typedef|struct \w+ \{|enum|#|_Static|extern|return|\})[a-zA-Z_].*\(",
                    line):
            first = number
            while number < len(source.code_lines) and \
                    not re.search(r"[;{]\s*(\\)?$", source.code_lines[number]):
                number += 1
            yield first + 1, number + 1
        number += 1


def half_done(tree):
    for source in tree.values():
        for number, line in enumerate(source.lines, start=1):
            if HALF_DONE.search(line):
                yield source.path, number, "a note of something half done"


def machine_paths(tree):
    for source in tree.values():
        for number, line in enumerate(source.lines, start=1):
            if MACHINE_PATH.search(line):
                yield source.path, number, "a path of one machine"


def assertion_density(tree):
    lines = asserts = 0
    for source in product_files(tree):
        if source.path.endswith(".c"):
            lines += len(source.lines)
            asserts += len(re.findall(r"\bassert\(", source.code))
    if lines and asserts * 1000 < ASSERTS_PER_1000_LINES * lines:
        yield "(product)", 0, f"{asserts * 1000 / lines:.1f} asserts in 1000 lines, at least " \
                              f"{ASSERTS_PER_1000_LINES}"


def settings_that_count(tree):
    """A key of the broker with a text is read somewhere, or stands behind a topic's that is."""
    keys = tree.get("broker/config/keys.tsv")
    if keys is None:
        return
    rows = [line.split("\t") for line in keys.text.splitlines()]
    code = "\n".join(source.code for source in product_files(tree))
    named = set(re.findall(r"\b(?:TOPIC_)?CONFIG_[A-Z0-9_]+", code))

    def is_read(prefix, name):
        return prefix + re.sub(r"[^A-Z0-9]", "_", name.upper()) in named

    behind = {name for row in rows if row[0] == "topic" and is_read("TOPIC_CONFIG_", row[1])
              for name in re.split(r"[,*]", row[6])}
    for number, row in enumerate(rows, start=1):
        if row[0] == "broker" and row[9] != "-" and not row[9].startswith("Changes nothing") and \
                row[1] not in behind and not is_read("CONFIG_", row[1]):
            yield keys.path, number, f"{row[1]} is explained and read nowhere"


RULES = [file_lengths, line_shape, function_lengths, function_length_spread, opening_paragraph,
         header_guards, own_header_first, include_paths, include_direction, pure_rooms,
         include_cycles, banned_calls, conditions_inside_functions, hiding_typedefs,
         mutable_statics, marked_layouts, packed_structs, documented_headers, half_done,
         machine_paths, assertion_density, settings_that_count]
