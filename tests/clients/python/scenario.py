"""What the three Python clients share: the command line, the test data, and waiting with a limit.

usage of a client program: PROGRAM BOOTSTRAP SCENARIO TAG [ARGUMENT..]
A scenario is a function of the program's module named scenario_NAME. TAG makes names unique.
"""
import sys
import time

BIG = 10 * 1000 * 1000
BASE_TIME = 1600000000000  # of the records in offsets_by_time: BASE_TIME + 1000 * offset


class Skip(Exception):
    """The client lacks what the scenario is about."""


def until(condition, what, limit_s=30):
    """Call condition() until it returns something true; returns that."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "not within %g s: %s" % (limit_s, what)
        time.sleep(0.02)


def matrix_values(codec, count):
    """What `write` produces and `read` expects."""
    return [("%s-%d-" % (codec, i)).encode() * 20 for i in range(count)]


def main(scenarios):
    """scenarios: the caller's globals()."""
    name = sys.argv[2]
    function = scenarios.get("scenario_" + name.split("_of_")[0])
    if function is None:
        print("no such scenario for this client: " + name)
        return 77
    try:
        function(*sys.argv[3:])
    except Skip as skip:
        print(skip)
        return 77
    print("ok")
    return 0
