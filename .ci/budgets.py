#!/usr/bin/env python3
"""Holds the project to budgets.txt: lines by hand per room and kind of file, flags, and what one question runs.

    .ci/budgets.py            says what is above its budget, and fails
    .ci/budgets.py --write    lowers each budget to what there is; a higher one is set by hand, with a reason in the commit
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FILE = pathlib.Path("budgets.txt")
QUESTION = "--arch sm89 select -m 4096 -n 4096 -k 4096 --in-process"


def files(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(name) for name in listed.splitlines()]


def lines(path):
    return path.read_bytes().count(b"\n")


def room(path):
    """The room of a file: its first folder, and the second of plugins."""
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] == "plugins" and len(parts) > 2 else parts[0]


def sizes():
    """Lines of each kind of file."""
    found = collections.Counter()
    for path in files("*.go"):
        head = path.read_bytes()
        if path.name.endswith("_test.go"):
            found["go in tests"] += lines(path)
        elif path.name.endswith(".pb.go") or re.search(rb"^// Code generated", head, re.M):
            found["go generated"] += lines(path)
        else:
            found["go by hand"] += lines(path)
            found[f"go by hand in {room(path)}"] += lines(path)
    for path in files("*.py", "*.pyi"):
        found["python in experiments" if path.parts[0] == "experiments" else "python"] += lines(path)
    for path in files("*.js", "*.css"):
        found["javascript and css"] += lines(path)
    for path in files("*.tmpl", "*.html", "*.c", "*.h"):
        found["c" if path.suffix in (".c", ".h") else "templates"] += lines(path)
    found["words of markdown"] = sum(len(path.read_text().split()) for path in files("*.md"))
    return found


def flags(program):
    """Pairs of flag and command. Flags of every command count once, where `origami --help --all` lists them."""
    pairs, commands = 0, [[]]
    while commands:
        path = commands.pop()
        text = subprocess.run([program, *path, "--help", "--all"], capture_output=True, text=True, check=True,
                              env={**os.environ, "COLUMNS": "300"}).stdout
        head, _, listed = text.partition("\nGlobal Flags:")[0].partition("\nFlags:")
        if path:
            pairs += len(set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]*)", listed, re.M)) - {"help"})
        if not path or "[command]" in head:
            names = set(re.findall(r"^  ([a-z][a-z-]*) {2,}\S", head, re.M))
            commands += [[*path, name] for name in names - {"origami", "completion", "exit-codes", "environment", "help"}]
    return pairs


def runs():
    """Files, packages and lines of bodies that a question runs beyond `origami version`, without generated files."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/origami"
        subprocess.run(["go", "build", "-cover", "-covermode=set", "-coverpkg=./...", "-o", program, "./cmd/origami"],
                       check=True)
        covered = {}
        for name, words in (("version", ["version"]), ("question", QUESTION.split())):
            data = f"{folder}/{name}"
            os.mkdir(data)
            subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "GOCOVERDIR": data})
            subprocess.run(["go", "tool", "covdata", "textfmt", f"-i={data}", f"-o={data}.txt"], check=True)
            covered[name] = set()
            for block in pathlib.Path(f"{data}.txt").read_text().splitlines()[1:]:
                place, _, count = block.rsplit(" ", 2)
                if count != "0":
                    file, span = place.split(":")
                    first, last = (int(end.split(".")[0]) for end in span.split(","))
                    covered[name] |= {(file, line) for line in range(first, last + 1)}
    module = pathlib.Path("go.mod").read_text().split()[1] + "/"
    generated = re.compile(rb"^// Code generated", re.M)
    of = {}
    for file, line in covered["question"] - covered["version"]:
        path = pathlib.Path(file.removeprefix(module))
        if not path.name.endswith(".pb.go") and not generated.search(path.read_bytes()):
            of.setdefault(path, set()).add(line)
    return len(of), len({path.parent for path in of}), sum(map(len, of.values()))


def main():
    found = sizes()
    with tempfile.TemporaryDirectory() as folder:
        program = os.environ.get("ORIGAMI") or f"{folder}/origami"
        if not os.environ.get("ORIGAMI"):
            subprocess.run(["go", "build", "-o", program, "./cmd/origami"], check=True)
        found["pairs of flag and command"] = flags(program)
    for name, value in zip(("files", "packages", "lines"), runs()):
        found[f"{name} that one select runs"] = value
    budgets = {}
    for line in FILE.read_text().splitlines() if FILE.exists() else []:
        number, _, name = line.strip().partition(" ")
        if name and not line.startswith("#"):
            budgets[name.strip()] = int(number)
    above = [f"{name}: {value}, and the budget is {budgets.get(name, 0)}" for name, value in sorted(found.items())
             if value > budgets.get(name, 0)]
    if "--write" in sys.argv:
        head = "# The most that there may be. A commit that raises a number says why. `make budgets` compares.\n"
        FILE.write_text(head + "".join(f"{value:7d} {name}\n" for name, value in sorted(found.items())))
        return 0
    for line in above:
        print(line)
    print(f"{len(found)} budgets, {len(above)} exceeded: {found['go by hand']} lines of Go by hand")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
