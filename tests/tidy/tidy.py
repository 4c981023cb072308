#!/usr/bin/env python3
"""The style law as a test: tidy.py SOURCE_ROOT prints TAP, one test for each rule.

A rule that cannot fail is worth nothing: test_tidy.py shows each of them a tree that breaks it.
"""
import sys

from rules import RULES
from tree import read_tree

SHOWN = 50


def main():
    tree = read_tree(sys.argv[1])
    print(f"1..{len(RULES)}")
    failed = 0
    for number, rule in enumerate(RULES, start=1):
        found = list(rule(tree))
        for path, line, message in found[:SHOWN]:
            print(f"# {path}:{line}: {message}")
        if len(found) > SHOWN:
            print(f"# and {len(found) - SHOWN} more")
        failed += bool(found)
        print(f"{'not ok' if found else 'ok'} {number} - {rule.__name__}")
    return 1 if failed or not tree else 0


if __name__ == "__main__":
    sys.exit(main())
