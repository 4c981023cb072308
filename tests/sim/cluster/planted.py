#!/usr/bin/env python3
"""Whether the simulator of whole clusters finds each deliberate bug of base/planted.h.

    planted.py SIM_CLUSTER [BUG...]

SIM_CLUSTER comes from a build with -Dplanted=true. For each bug, seeds run until one of them breaks a
promise or meets an assertion; a bug that survives SEEDS of them is a hole in the simulator, and a
failure here. Prints TAP.
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SEEDS = 1000
SECONDS = 240  # for one bug
CRASHES = (-6, -11)


def list_bugs(program):
    out = subprocess.run([program, '--list'], capture_output=True, text=True, check=True).stdout
    return [line.split('\t')[0] for line in out.splitlines()]


def what_failed(errors):
    """The seed and the kind of failure, from what the program said last."""
    promise = re.search(r'seed (\d+) fails at ([\d.]+ s): (.*)', errors)
    if promise:
        return f'seed {promise[1]} after {promise[2]}: {promise[3]}'
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1] if lines else 'it crashed'


def hunt(program, bug):
    """(found, what is to be said)"""
    command = [program, '--plant', bug, '1', str(SEEDS)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False, f'not found in {SECONDS} s'
    if done.returncode in CRASHES:
        return True, what_failed(done.stderr)
    return False, f'not found by seeds 1 to {SEEDS} (exit status {done.returncode})'


def main():
    program = sys.argv[1]
    bugs = sys.argv[2:] or list_bugs(program)
    if not bugs:
        print('1..0 # SKIP this build has no planted bugs')
        return 0
    print(f'1..{len(bugs)}', flush=True)
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda bug: hunt(program, bug), bugs)
        for number, (bug, (found, text)) in enumerate(zip(bugs, results), 1):
            missed += not found
            print(f'{"ok" if found else "not ok"} {number} - {bug}: {text}', flush=True)
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
