"""`go test -json` on standard input -> TSV rows: suite, test, PASS|FAIL|SKIP, seconds, note.

Subtests are rows of their own (Test/sub). A test still running when its package ends is a FAIL. A
package that does not build is one FAIL row. PREFIX is stripped from the package's path to make the
name.

usage: gotsv.py SUITE [PREFIX]
"""
import json
import re
import sys

SUITE = sys.argv[1]
PREFIX = sys.argv[2] if len(sys.argv) > 2 else ""


def row(package, test, result, seconds, note=""):
    if PREFIX and package.startswith(PREFIX):
        package = package[len(PREFIX):].strip("/")
    name = (package + ":" if package else "") + test
    print(SUITE, name, result, "%.1f" % seconds, re.sub(r"\s+", " ", note).strip()[:200], sep="\t",
          flush=True)


def why(lines):
    """The lines of a failed test's output that tell what went wrong."""
    telling = re.compile(r"_test\.go:\d+:|panic:|Error:|Error Trace|FAIL")
    keep = [line for line in lines if telling.search(line) and "--- FAIL" not in line
            and "=== " not in line]
    return " ".join(keep[:3])


class Report:
    def __init__(self):
        self.output, self.running, self.package_output, self.seen = {}, {}, {}, set()

    def test_event(self, package, test, action, event):
        if action == "run":
            self.running[package, test] = True
        elif action in ("pass", "fail", "skip"):
            self.running.pop((package, test), None)
            lines = self.output.pop((package, test), [])
            note = why(lines) if action == "fail" else ""
            if action == "skip":
                note = " ".join(line for line in lines if ".go:" in line)
            row(package, test, action.upper(), event.get("Elapsed", 0), note)
            self.seen.add(package)

    def package_event(self, package, action, event):
        for key in [key for key in self.running if key[0] == package]:
            row(package, key[1], "FAIL", event.get("Elapsed", 0),
                "still running at the end " + why(self.output.get(key, [])))
            self.running.pop(key)
            self.seen.add(package)
        if action != "pass" and package not in self.seen:
            row(package, "(package)", "FAIL", event.get("Elapsed", 0),
                " ".join(self.package_output.get(package, [])[:5]))

    def event(self, event):
        package = event.get("Package", event.get("ImportPath", ""))
        test, action = event.get("Test"), event["Action"]
        if action in ("output", "build-output"):
            lines = self.output.setdefault((package, test), []) if test else \
                self.package_output.setdefault(package, [])
            lines.append(event["Output"])
        elif test:
            self.test_event(package, test, action, event)
        elif action in ("fail", "pass", "build-fail"):
            self.package_event(package, action, event)


report = Report()
for line in sys.stdin:
    try:
        report.event(json.loads(line))
    except ValueError:
        sys.stderr.write(line)
