"""Layer `fuzz`: runs each fuzz target for a while (tests/fuzz/run.sh); one row a target.

usage: fuzz_results.py BUILD_DIR SECONDS
"""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))

from jobs import Job, run_jobs  # noqa: E402


def targets():
    """The names in tests/fuzz/fuzz_NAME.c."""
    found = (re.match(r"fuzz_(\w+)\.c$", name) for name in os.listdir(
        os.path.join(TOP, "tests", "fuzz")))
    return sorted(match.group(1) for match in found if match)


def main(build, seconds):
    script = os.path.join(TOP, "tests", "fuzz", "run.sh")
    # The first one builds what the others share.
    run_jobs("fuzz", [Job(name, [script, build, seconds, name], timeout_s=900)
                      for name in targets()], parallel=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
