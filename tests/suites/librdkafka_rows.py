"""Turns one run of librdkafka's test-runner into TSV rows: suite, test, result, seconds, note.

usage: librdkafka_rows.py SUITE NUMBER SUBTEST STATUS SECONDS REPORT_JSON LOG LIMIT_S
"""
import json
import re
import sys

STATES = {"PASSED": "PASS", "FAILED": "FAIL", "SKIPPED": "SKIP"}


def failure(text):
    """What the runner says of the first failure."""
    found = re.search(r'^### Test "(.*?)" failed at (.*?) at .*?###\n(.*)', text, re.M)
    if not found:
        return ""
    return re.sub(r"\s+", " ", "%s: %s (%s)" % found.group(1, 3, 2))[:250]


def counts(text):
    passed, skipped = (len(re.findall(r"\[ .*: %s" % word, text)) for word in ("PASS", "SKIP"))
    return "subtests %d pass %d skip" % (passed, skipped) if passed or skipped else ""


def join(*notes):
    return "; ".join(note for note in notes if note)


def test_row(name, test, text, subtests):
    """(name, result, seconds, note), or None for a test that is not meant for this run."""
    skipped = re.search(r"^\|\s*%s\s*\|\s*SKIPPED\s*\|\s*[\d.]+s\s*\|(.*)$" % name, text, re.M)
    note = skipped.group(1).strip() if skipped else ""
    if test["state"] == "SKIPPED" and ("negative test flags" in note or not note):
        return None
    result = STATES.get(test["state"], "FAIL")
    if result == "FAIL":
        note = join(subtests, failure(text))
    elif result == "PASS":
        note = subtests or ("ran nothing in this mode" if test["duration"] < 0.01 else "")
    return name, result, "%.1f" % test["duration"], note


def main(suite, number, subtest, status, seconds, report, log, limit_s):
    status = int(status)
    with open(log, errors="replace") as lines:
        text = re.sub(r"\x1b\[[0-9;]*m", "", lines.read())
    subtests = counts(text)
    try:
        with open(report) as data:
            tests = json.load(data)["tests"]
    except (OSError, ValueError, KeyError):
        tests = {}
    rows = [test_row(name, test, text, subtests) for name, test in tests.items()
            if name.startswith(number)]
    rows = [row for row in rows if row]
    failed = any(row[1] == "FAIL" for row in rows)
    if status in (124, 137) and not failed:
        rows.append((number, "FAIL", seconds, join("killed after %s s" % limit_s, subtests)))
    elif not rows or (status and not failed):
        rows.append((number, "FAIL" if status else "SKIP", seconds,
                     join("exit %d" % status if status else "off by default: known issue",
                          subtests, failure(text))))
    for name, result, took, note in rows:
        name += "(%s)" % subtest if subtest else ""
        print(suite, name, result, took, note.replace("\t", " "), sep="\t", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
