"""The tree as the rules see it: files with their text, C files with comments and strings blanked."""
import os
import re
import subprocess

PRODUCT = ("base", "io", "protocol", "raft", "storage", "broker", "cli", "console")
SKIPPED_FOLDERS = {".git", "node_modules", "__pycache__", "data"}
TEXT_ENDINGS = (".c", ".h", ".py", ".sh", ".build", ".txt", ".md", ".schema", ".in", ".js", ".mjs",
                ".go", ".java", ".html", ".css", ".yml", ".yaml", ".tsv")
BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(match):
    """Keeps line ends and the quotes, so that positions stay the same."""
    text = match.group(0)
    inner = re.sub(r"[^\n]", " ", text)
    return text[0] + inner[1:-1] + text[-1] if text[0] in "\"'" else inner


class Source:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        self.folder = path.split("/")[0]
        self.is_c = path.endswith((".c", ".h"))
        self.is_product = self.is_c and self.folder in PRODUCT
        self.code = BLANKED.sub(blank, text) if self.is_c else text
        self.code_lines = self.code.split("\n")
        self._functions = None

    def functions(self):
        """(first line, last line) of each function's body, counted from 1, braces included. A body
        starts with a brace in the first column behind a line that ends a parameter list."""
        if self._functions is None:
            self._functions = []
            start = None
            for number, line in enumerate(self.code_lines, start=1):
                if line.rstrip() == "{" and self._follows_parameters(number - 1):
                    start = number
                elif line.startswith("}") and start is not None:
                    self._functions.append((start, number))
                    start = None
        return self._functions

    def _follows_parameters(self, above):
        while above > 0 and self.code_lines[above - 1].strip() == "":
            above -= 1
        return above > 0 and self.code_lines[above - 1].rstrip().endswith(")")

    def includes(self):
        """(line, path) of each include with quotes."""
        for number, line in enumerate(self.lines, start=1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match:
                yield number, match[1]

    def system_includes(self):
        for number, line in enumerate(self.lines, start=1):
            match = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
            if match:
                yield number, match[1]


def tracked(root):
    """What git knows or would add; without git, every file below."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                             capture_output=True, text=True, check=True).stdout
        names = sorted(set(out.split("\n")) - {""})
        if names:
            return names
    except (OSError, subprocess.CalledProcessError):
        pass
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("build")]
        names += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(names)


def read_tree(root):
    sources = {}
    for name in tracked(root):
        path = os.path.join(root, name)
        if name.endswith(TEXT_ENDINGS) and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                sources[name] = Source(name, file.read())
    return sources
