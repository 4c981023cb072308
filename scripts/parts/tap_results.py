"""Runs a test program that prints TAP and adds a row for each of its tests.

usage: tap_results.py LAYER PROGRAM
"""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "lib"))

from results import add_row  # noqa: E402

LINE = re.compile(r"^(not )?ok \d+ - (?:\S*:)?(\w+:\w+)")


def main(layer, program):
    start = time.monotonic()
    done = subprocess.run([program], capture_output=True, text=True, timeout=600)
    seconds = time.monotonic() - start
    rows = [match for match in map(LINE.match, done.stdout.splitlines()) if match]
    for match in rows:
        add_row(layer, match.group(2), "FAIL" if match.group(1) else "PASS", seconds / len(rows), "")
    if done.returncode != 0 or not rows:
        sys.stderr.write(done.stderr)
        add_row(layer, os.path.basename(program), "FAIL", seconds,
                "status %d: %s" % (done.returncode, done.stderr.strip()[-300:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
