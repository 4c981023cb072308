"""The results file: one row a test, (layer, test, PASS|FAIL|SKIP, seconds, note), tab separated.

Rows go to the file named by OTTLA_RESULTS_TSV (appended in one write, so several processes may
report at once) and to standard output for whoever watches.
"""
import os
import re
import sys


def add_row(layer, test, verdict, seconds, note=""):
    assert verdict in ("PASS", "FAIL", "SKIP"), verdict
    assert verdict != "SKIP" or note, "a skipped test says why"
    note = re.sub(r"\s+", " ", str(note)).strip()[:300]
    row = "%s\t%s\t%s\t%.1f\t%s\n" % (layer, test, verdict, seconds, note)
    path = os.environ.get("OTTLA_RESULTS_TSV")
    if path:
        with open(path, "a", encoding="utf-8") as rows:
            rows.write(row)
    sys.stdout.write("%-4s %s %s (%.1f s) %s\n" % (verdict, layer, test, seconds,
                                                  note if verdict != "PASS" else ""))
    sys.stdout.flush()
