"""Runs one field case as a process of its own.

usage: case.py BOOTSTRAP MODULE FUNCTION     ends with 0, or 77 when the case says why it is skipped
"""
import importlib
import inspect
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "cases"), os.path.join(HERE, "..", "lib")]


class Skip(Exception):
    """Raised by a case that cannot run; its text is the reason."""


def main(bootstrap, module, function):
    case = getattr(importlib.import_module(module), function)
    try:
        case(bootstrap) if inspect.signature(case).parameters else case()
    except Exception as error:
        if type(error).__name__ != "Skip":
            raise
        print(error)
        return 77
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
