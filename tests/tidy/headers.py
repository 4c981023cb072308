#!/usr/bin/env python3
"""Each header compiles alone: headers.py SOURCE_ROOT BUILD_ROOT COMPILER.. prints TAP."""
import concurrent.futures
import os
import subprocess
import sys

from tree import read_tree


def compile_alone(compiler, root, build, path):
    command = compiler + ["-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra",
                          "-Werror", "-Wno-unused-function", "-Wno-missing-field-initializers",
                          "-I", root, "-I", build,
                          "-I", os.path.join(build, "protocol"), "-x", "c", "-include", path,
                          "/dev/null"]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    root, build, *compiler = sys.argv[1:]
    paths = [source.path for source in read_tree(root).values()
             if source.path.endswith(".h") and source.is_product]
    print(f"1..{len(paths)}")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = pool.map(lambda path: compile_alone(compiler, root, build, path), paths)
        for number, (path, result) in enumerate(zip(paths, results), start=1):
            for line in result.stderr.split("\n")[:5] if result.returncode else []:
                print(f"# {line}")
            failed += result.returncode != 0
            print(f"{'not ok' if result.returncode else 'ok'} {number} - {path}")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
