#!/usr/bin/env python3
"""Makes keys.h, keys.c or docs/configuration.md from keys.tsv.

  generate_keys.py header|source|docs keys.tsv OUTPUT

A new key is one line in keys.tsv. Fails with the line's number when a column makes no sense.
"""
import csv
import re
import sys

TYPES = ("boolean", "string", "int", "short", "long", "double", "list", "class", "password")
SCOPES = {
    "broker": ("BROKER", "CONFIG_"),
    "broker-quota": ("BROKER", "CONFIG_"),
    "topic": ("TOPIC", "TOPIC_CONFIG_"),
    "group": ("GROUP", "GROUP_CONFIG_"),
    "client-metrics": ("CLIENT_METRICS", "CLIENT_METRICS_CONFIG_"),
    "quota-user-client": ("QUOTA", "QUOTA_CONFIG_"),
    "quota-ip": ("QUOTA", "QUOTA_CONFIG_"),
}
UPDATES = {"read-only": "RESTART", "per-broker": "PER_BROKER", "cluster-wide": "CLUSTER_WIDE"}
IMPORTANCE = {"high": 0, "medium": 1, "low": 2}
LIMITS = {"int": (-2**31, 2**31 - 1), "short": (-2**15, 2**15 - 1), "long": (-2**63, 2**63 - 1)}
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"


def fail(line, text):
    sys.exit(f"keys.tsv:{line}: {text}")


def read_keys(path):
    with open(path, encoding="utf-8") as file:
        keys = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for line, key in enumerate(keys, start=2):
        key["line"] = line
        if key["scope"] not in SCOPES or key["type"] not in TYPES or key["doc"] is None:
            fail(line, "unknown scope or type, or a column is missing")
        key["group"], prefix = SCOPES[key["scope"]]
        key["enum"] = prefix + re.sub(r"[^A-Z0-9]", "_", key["name"].upper())
        key["default_text"] = {"(required)": None, "(null)": None, "(empty)": ""}.get(
            key["default"], key["default"])
        key["doc"] = None if key["doc"] == "-" else key["doc"]
        key["check"] = read_check(key)
    groups = [key["group"] for key in keys]
    if groups != sorted(groups, key=list(dict.fromkeys(groups)).index):
        fail(1, "keys of one scope must stand together")
    return keys


def read_check(key):
    """(kind, low, high, or-value, choices, text for people)"""
    valid, name = key["valid"], "NONE"
    low, high = LIMITS.get(key["type"], (0, 0))
    ranged = re.fullmatch(rf"\[({NUMBER}),\.\.\.(?:,({NUMBER}))?\](?: or ({NUMBER}))?", valid)
    if ranged:
        if key["type"] not in LIMITS and key["type"] != "double":
            fail(key["line"], "a range needs a number")
        low = ranged[1]
        top = ranged[2] or (repr(sys.float_info.max) if key["type"] == "double" else high)
        text = f"{low} to {ranged[2]}" if ranged[2] else f"at least {low}"
        text += f", or {ranged[3]}" if ranged[3] else ""
        return ("RANGE", low, top, ranged[3], [], text)
    listed = re.fullmatch(r"(\(case insensitive\) )?\[([A-Za-z0-9_, ]+)\]", valid)
    if listed:
        choices = [word.strip() for word in listed[2].split(",")]
        name = "CHOICES_ANY_CASE" if listed[1] else "CHOICES"
        return (name, low, high, None, choices, "one of " + ", ".join(choices))
    if valid in ("non-empty string", "non-empty list"):
        # An empty list is the default of the keys that Kafka marks so: it means "not set".
        name = "NOT_EMPTY" if key["type"] != "list" else "NONE"
        return (name, low, high, None, [], "not empty" if name == "NOT_EMPTY" else None)
    if valid.startswith("[partitionId]"):
        return ("THROTTLED", 0, 0, None, [], "* or partition:broker,partition:broker...")
    if valid in ("-", "custom", "non-null string") or valid.startswith("[latest"):
        return ("NONE", low, high, None, [], None)
    fail(key["line"], f"cannot read the valid column {valid!r}")


def c_text(text):
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def synonyms(key, by_name):
    out = []
    if key["broker_synonyms"] == "-":
        return out
    for word in key["broker_synonyms"].split(","):
        name, _, factor = word.partition("*")
        if ("BROKER", name) not in by_name:
            fail(key["line"], f"synonym {name} is no broker key")
        out.append((by_name[("BROKER", name)], factor or "1"))
    return out


def header(keys):
    print("/* Generated from keys.tsv: every configuration key, one number each. */")
    print("#ifndef OTTLA_BROKER_CONFIG_KEYS_H\n#define OTTLA_BROKER_CONFIG_KEYS_H\n")
    print('#include "broker/config/key_info.h"\n\nenum config_key {')
    for number, key in enumerate(keys):
        print(f"    {key['enum']} = {number},")
    print(f"    CONFIG_KEY_COUNT = {len(keys)},")
    for group in dict.fromkeys(key["group"] for key in keys):
        numbers = [n for n, key in enumerate(keys) if key["group"] == group]
        print(f"    {group}_CONFIG_FIRST = {numbers[0]},")
        print(f"    {group}_CONFIG_COUNT = {len(numbers)},")
    print("};\n")
    print("/* Indexed by enum config_key; in each scope sorted as in keys.tsv. */")
    print("extern const struct config_key_info config_keys[CONFIG_KEY_COUNT];\n\n#endif")


def source(keys):
    by_name = {(key["group"], key["name"]): key["enum"] for key in keys}
    print('/* Generated from keys.tsv. */\n#include "broker/config/keys.h"\n\n#include <stddef.h>\n')
    for key in keys:
        key["synonyms"] = synonyms(key, by_name)
        if key["check"][4]:
            words = ", ".join(c_text(word) for word in key["check"][4])
            print(f"static const char *const choices_{key['enum']}[] = {{{words}, NULL}};")
        if key["synonyms"]:
            words = ", ".join(f"{{{enum}, {factor}}}" for enum, factor in key["synonyms"])
            print(f"static const struct config_synonym synonyms_{key['enum']}[] = {{{words}}};")
    print("\nconst struct config_key_info config_keys[CONFIG_KEY_COUNT] = {")
    for key in keys:
        row(key)
    print("};")


def is_unlisted(key):
    """Kafka lists the replication throttles only once somebody has set them."""
    return key["internal"] == "internal" or key["scope"] == "broker-quota"


def row(key):
    kind, low, high, or_value, choices, text = key["check"]
    fields = {
        "name": c_text(key["name"]),
        "default_text": c_text(key["default_text"]),
        "documentation": c_text(key["doc"]),
        "allowed": c_text(text),
        "type": "CONFIG_TYPE_" + key["type"].upper(),
        "scope": "CONFIG_SCOPE_" + key["group"],
        "update": "CONFIG_UPDATE_" + UPDATES.get(key["update"], "ALWAYS"),
        "check": "CONFIG_CHECK_" + kind,
        "importance": IMPORTANCE[key["importance"]],
        "internal": "true" if is_unlisted(key) else "false",
        "required": "true" if key["default"] == "(required)" else "false",
        "low": f"(double){low}" if low != -2**63 else "(double)INT64_MIN",
        "high": f"(double){high}",
    }
    if choices:
        fields["choices"] = "choices_" + key["enum"]
    if key["synonyms"]:
        fields["synonyms"] = "synonyms_" + key["enum"]
        fields["synonym_count"] = len(key["synonyms"])
    if or_value is not None:
        fields.update(has_or="true", or_value=or_value)
    text = ", ".join(f".{name} = {value}" for name, value in fields.items())
    print(f"    [{key['enum']}] = {{{text}}},")


def cell(text):
    return text.replace("|", "\\|")


def docs(keys):
    print(DOCS_HEAD)
    titles = {"BROKER": "Broker", "TOPIC": "Topics", "GROUP": "Groups",
              "CLIENT_METRICS": "Client metrics subscriptions", "QUOTA": "Client quotas"}
    for group, title in titles.items():
        print(f"\n## {title}\n\n| key | type | default | allowed | change | about |")
        print("|---|---|---|---|---|---|")
        for key in keys:
            if key["group"] == group and key["internal"] != "internal":
                about = [key["doc"]] if key["doc"] else []
                if key["broker_synonyms"] != "-":
                    about.append("From " + ", ".join(
                        f"`{word}`" for word in key["broker_synonyms"].split(",")) + ".")
                words = [f"`{key['name']}`", key["type"], f"`{key['default']}`",
                         key["check"][5] or "", key["update"], " ".join(about)]
                print("| " + " | ".join(cell(word) for word in words) + " |")


DOCS_HEAD = """\
# Configuration

This page is made from `broker/config/keys.tsv` by `generate_keys.py docs`; a test compares them.

Nothing has to be configured: without any setting Ottla is one node that listens for `PLAINTEXT` on
port 9092 and keeps its data in `./data`.

The keys are Kafka's, and so are the values. A key is looked for in this order, first found wins:

1. `--override key=value` on the command line,
2. the environment: `KAFKA_LOG_RETENTION_MS` or `KAFKA_CFG_LOG_RETENTION_MS` is `log.retention.ms`
   (`_` is a dot, `__` an underscore, `___` a dash); `CLUSTER_ID` is `cluster.id`,
3. the file named on the command line, a Java properties file such as `server.properties`,
4. the default below.

The page lists every key that Kafka has, so that any `server.properties` is taken. Keys without a
text in the last column are taken and shown, but Ottla may have no use for them.

A key that Ottla does not know is named once in the log and otherwise left alone. A value that
cannot be right stops the start with one line that says the key, the value and what is allowed.
`change` tells which values may be set while brokers run, for one of them (`per-broker`) or also for
all (`cluster-wide`), as it is in Kafka. Here that holds for all that are `cluster-wide`, but for
`max.connections` and `max.connections.per.ip`, and for `cordoned.log.dirs`; all else is read at the
start. Topics' values count at once."""


def main():
    what, table, output = sys.argv[1:]
    sys.stdout = open(output, "w", encoding="utf-8")
    {"header": header, "source": source, "docs": docs}[what](read_keys(table))
    sys.stdout.close()


if __name__ == "__main__":
    main()
