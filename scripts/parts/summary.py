"""Prints what results.tsv says: a table by layer, every failure, every skip with its reason, and
as the last line `N passed, N failed, N skipped`. Ends with status 1 when something failed, or when
the file holds nothing at all.

usage: summary.py RESULTS_TSV SECONDS
"""
import sys
from collections import Counter


def read_rows(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    for row in rows:
        if len(row) != 5 or row[2] not in ("PASS", "FAIL", "SKIP"):
            sys.exit("not a results row: %r" % (row,))
    return rows


def main(path, seconds):
    rows = read_rows(path)
    total = Counter(row[2] for row in rows)
    print("\n%-10s %7s %7s %7s" % ("layer", "passed", "failed", "skipped"))
    for layer in dict.fromkeys(row[0] for row in rows):
        count = Counter(row[2] for row in rows if row[0] == layer)
        print("%-10s %7d %7d %7d" % (layer, count["PASS"], count["FAIL"], count["SKIP"]))
    for result in ("SKIP", "FAIL"):
        for layer, test, verdict, _, note in rows:
            if verdict == result:
                print("%s %s %s: %s" % (verdict, layer, test, note or "no reason given"))
    print("\n%s s; rows in %s" % (seconds, path))
    print("%d passed, %d failed, %d skipped" % (total["PASS"], total["FAIL"], total["SKIP"]))
    return 1 if total["FAIL"] or not rows else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
