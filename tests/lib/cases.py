"""A test script made of cases: functions named test_*, each a row of its own in the results.

main(layer, module globals) runs them in order, or those named on the command line, and exits with 1
when one failed. A case fails by raising; Skip("why") skips it. What it prints goes to the log.
Options every script takes: --seed N, --list.
"""
import argparse
import os
import random
import sys
import time
import traceback

from results import add_row


class Skip(Exception):
    """A case that cannot be run here; says why."""


def skip_all(layer, why):
    """Ends a script none of whose cases can be run here."""
    add_row(layer, os.path.splitext(os.path.basename(sys.argv[0]))[0].replace("test_", "", 1),
            "SKIP", 0, why)
    sys.exit(0)


def run_case(layer, name, case, seed):
    start = time.monotonic()
    try:
        note = case()
        verdict = "PASS"
    except Skip as why:
        verdict, note = "SKIP", str(why)
    except Exception as error:  # a case's failure of any kind is a row, the others still run
        traceback.print_exc()
        verdict = "FAIL"
        note = "seed %d: %s: %s" % (seed, type(error).__name__, error)
    add_row(layer, name, verdict, time.monotonic() - start, note or "")
    return verdict != "FAIL"


def main(layer, scope, options=()):
    """options: [(flag, type, default, help)], handed over as scope["OPTIONS"] (a namespace)."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=scope.get("__doc__"))
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--list", action="store_true")
    for flag, kind, default, text in options:
        parser.add_argument(flag, type=kind, default=default, help=text)
    chosen = parser.parse_args()
    scope["OPTIONS"] = chosen
    cases = {name[5:]: value for name, value in scope.items()
             if name.startswith("test_") and callable(value)}
    unknown = set(chosen.cases) - set(cases)
    if unknown:
        parser.error("no case %s; there are: %s" % (", ".join(unknown), ", ".join(cases)))
    if chosen.list:
        print("\n".join(cases))
        return
    print("seed %d" % chosen.seed)
    stem = os.path.splitext(os.path.basename(sys.argv[0]))[0].replace("test_", "", 1)
    good = [run_case(layer, "%s:%s" % (stem, name), cases[name], chosen.seed)
            for name in chosen.cases or cases]
    print("%d of %d cases failed" % (good.count(False), len(good)))
    sys.exit(0 if all(good) else 1)
