"""A layer made of scripts that report their own rows (tests/lib/cases.py).

Each file named on the command line runs once. One that fails without having reported a
failure, or that reports nothing at all, becomes a FAIL row of its own.

usage: scripts_layer.py LAYER FILE..
"""
import os
import sys

from jobs import Job, execute, log_path
from results import add_row

LIMIT_S = 900


def rows(layer):
    """(how many rows the layer has, how many of them are failures)"""
    with open(os.environ["OTTLA_RESULTS_TSV"], errors="replace") as lines:
        mine = [line.split("\t") for line in lines if line.startswith(layer + "\t")]
    return len(mine), sum(row[2] == "FAIL" for row in mine)


def run(layer, path):
    test, before = os.path.basename(path), rows(layer)
    status, last = execute(Job(test, [sys.executable, path], LIMIT_S), log_path(layer, test))
    after = rows(layer)
    if status != 0 and after[1] == before[1]:
        why = "over %d s" % LIMIT_S if status is None else "status %d" % status
        add_row(layer, test, "FAIL", 0, "%s: %s (%s)" % (why, last, log_path(layer, test)))
    elif after[0] == before[0]:
        add_row(layer, test, "FAIL", 0, "it reported no test")


def main(layer, paths):
    for path in paths:
        if os.access(path, os.X_OK):
            run(layer, path)
        else:
            add_row(layer, os.path.basename(path), "FAIL", 0, "it is not executable: chmod +x")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
