"""Turns meson's testlog.json into result rows.

A program that reports its tests in TAP (Check does with CK_TAP_LOG_FILE_NAME=-) gives one row a
test function; another program is one row. A program that failed without a failing TAP line (a
crash, a leak found at exit, a timeout) gives a FAIL row of its own.

usage: meson_results.py LAYER TESTLOG_JSON MESON_OUTPUT
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests",
                                "lib"))
from results import add_row  # noqa: E402

# "ok 3 - tests/unit/x/test_y.c:core:test_name: Passed" from Check, "not ok 2 - name" from others
TAP = re.compile(r"^(not ok|ok) \d+ - (\S[^\n]*)$")
GOOD = ("OK", "EXPECTEDFAIL")


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if "ERROR: " in line or "runtime error:" in line or "Assertion" in line:
            return line
    return lines[-1] if lines else ""


def tap_tests(output):
    """(verdict, name, message) of each TAP line; comments before a failure are its message."""
    comments = []
    for line in output.splitlines():
        found = TAP.match(line.strip())
        if found:
            text, _, skipped = found.group(2).partition(" # SKIP ")
            name, _, message = text.partition(": ")
            verdict = "FAIL" if found.group(1) == "not ok" else "SKIP" if skipped else "PASS"
            yield (verdict, name.rpartition(":")[2],
                   {"PASS": "", "SKIP": skipped, "FAIL": message or " ".join(comments)}[verdict])
            comments = []
        elif line.startswith("# "):
            comments.append(line[2:])


def program_rows(layer, entry):
    """Rows of one test program."""
    name, output, failed = entry["name"].rpartition(" / ")[2], entry.get("stdout", ""), False
    tests = list(tap_tests(output))
    for verdict, test, message in tests:
        failed |= verdict == "FAIL"
        add_row(layer, "%s:%s" % (name, test), verdict, 0, message)
    if entry["result"] == "SKIP":
        add_row(layer, name, "SKIP", entry["duration"], last_words(output))
    elif entry["result"] not in GOOD and not failed:
        words = last_words(entry.get("stderr", "")) or last_words(output)
        add_row(layer, name, "FAIL", entry["duration"], "%s: %s" % (entry["result"], words))
    elif not tests:
        add_row(layer, name, "PASS", entry["duration"])


def main(layer, log_path, meson_output):
    if not os.path.exists(log_path):
        with open(meson_output, errors="replace") as lines:
            text = lines.read()
        print(text[-2000:], file=sys.stderr)
        sys.exit("meson left no %s" % log_path)
    with open(log_path) as lines:
        for line in lines:
            program_rows(layer, json.loads(line))


if __name__ == "__main__":
    main(*sys.argv[1:])
