#!/usr/bin/env python3
"""Compares what origami answers with a stored state: commands, the server and the generated kernels.

    same.py                compare, exit 1 if a difference is not named in renames.txt
    same.py --store        store what the program answers now

ORIGAMI names the binary (bin/origami otherwise). Commands are in commands.txt, questions to the server in requests.txt.
The kernels come from TestSame of plugins/nvidia/gemmgen/families. test_lib.py compares the C library with the command.

An answer is a dict: key -> list of values. Keys of JSON are paths without the indexes of lists, so that a key has the
values of all elements in order. Keys of CSV are columns. Other text is a list of lines. Long lists are stored as their
first values and a hash.
"""

import argparse
import collections
import csv
import functools
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ProcessPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[1]
STATE = HERE / "state.json.gz"
FIRST = 40  # values of a list that are stored
LONG = 160  # characters of a value that are stored
LARGE = 2 << 20  # bytes of a written file beyond which only its hash counts
CPU, MEMORY = 1.35, 1.3  # ratios that are shown
SHORT = 0.03  # seconds of CPU time below which no ratio is shown

# What varies from run to run, from machine to machine or from commit to commit.
MASKS = [(re.compile(pattern), name) for pattern, name in [
    (r"/tmp/same-[^/\"' ]+/[^/\"' ]+", "WORK"), (re.escape(str(REPO)), "REPO"), (r"\b[0-9a-f]{40,64}\b", "HASH"),
    (r"\b0\.\d+\.\d+-dev[\w.+-]*", "VERSION"), (r"\bv0\.0\.0-\d{14}-[0-9a-f]{12}(\+dirty)?", "VERSION"),
    (r"\bgo1\.\d+(\.\d+)?\b", "GO"), (r"127\.0\.0\.1:\d+", "HOST"), (r"\bpid \d+", "PID")]]

PROGRESS = re.compile(r"^.*\b(\d+ %, \S+ left|(\d+m)?\d+s): .*\n?", re.MULTILINE)
# Sums whose order is not fixed: these keys are stored with 12 digits.
ROUNDED = re.compile(r"\bbrier$")


def masked(text):
    text = PROGRESS.sub("", text)
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text


# ---- answers as keys and values

def flatten(value, key, into):
    if isinstance(value, dict):
        for name, v in value.items():
            flatten(v, f"{key}.{name}", into)
        if not value:
            into[key].append("{}")
    elif isinstance(value, list):
        for v in value:
            flatten(v, key, into)
        if not value:
            into[key].append("[]")
    else:
        into[key].append(value)


def parsed(text, key, kind, into):
    """Adds a text to an answer: as JSON (one document or a line each), as CSV, or as lines."""
    text = masked(text)
    if not text.strip():
        return
    if text.lstrip()[0] in "{[":
        try:
            return flatten(json.loads(text), key, into)
        except ValueError:
            try:
                return [flatten(json.loads(line), key, into) for line in text.splitlines() if line.strip()]
            except ValueError:
                pass
    if kind == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        for row in rows[1:]:
            for name, cell in zip(rows[0], row):
                into[f"{key}.{name}"].append(cell)
        return
    into[key] += [line.rstrip() for line in text.splitlines()]


def short(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) > LONG:
        return value[: LONG - 40] + "… " + hashlib.sha256(value.encode()).hexdigest()[:12]
    return value


def stored(answer):
    out = {}
    for key, values in answer.items():
        values = [short(v) for v in values]
        if ROUNDED.search(key):
            values = [float(f"{v:.12g}") for v in values]
        if len(values) > FIRST:
            digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
            values = {"count": len(values), "hash": digest, "first": values[:FIRST]}
        out[key] = values
    return out


# ---- running. Small processes start the commands: the memory of a child counts what its parent had.

def environment(home):
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    go = {"GOCACHE": ".cache/go-build", "GOMODCACHE": "go/pkg/mod"}
    keep |= {name: os.environ.get(name) or str(pathlib.Path.home() / folder) for name, folder in go.items()}
    return keep | {"HOME": str(home), "TZ": "UTC", "NO_COLOR": "1", "GOMAXPROCS": "2", "COLUMNS": "120"}


def measured(command, work, out, err, limit=300):
    """Runs a command in a folder, and returns its exit code, its CPU time in seconds, and its memory in MiB."""
    with open(out, "wb") as o, open(err, "wb") as e:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=o, stderr=e, cwd=work,
                             env=environment(out.parent))
        timer = threading.Timer(limit, p.kill)
        timer.start()
        _, status, usage = os.wait4(p.pid, 0)
        timer.cancel()
        p.returncode = os.waitstatus_to_exitcode(status)
    return p.returncode, round(usage.ru_utime + usage.ru_stime, 3), round(usage.ru_maxrss / 1024, 1)


def files_of(folder):
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


class Commands:
    """The lines of commands.txt. A line is one or more steps in one folder."""

    def __init__(self, origami, only):
        self.origami = origami
        lines = [line.strip() for line in (HERE / "commands.txt").read_text().splitlines()]
        self.lines = [line for line in lines if line and line[0] != "#" and only.search(line)]

    def run(self, line, root):
        """Runs the steps, and returns for each its name, its arguments, its folder, the outcome, and the files that it
        wrote."""
        work = pathlib.Path(tempfile.mkdtemp(dir=root))
        shutil.copytree(HERE / "inputs", work, dirs_exist_ok=True)
        logs = pathlib.Path(tempfile.mkdtemp(dir=root))
        flags = [] if line.startswith("@ ") else ["--in-process"]
        done, before = [], files_of(work)
        for i, step in enumerate(line.removeprefix("@ ").split(" && ")):
            arguments = [a.replace("$RECORDS", str(REPO / "plugins/nvidia/data")).replace("$DOCS", str(REPO / "docs"))
                         .replace("$REPO", str(REPO)) for a in shlex.split(step)]
            outcome = measured([self.origami, *flags, *arguments], work, logs / f"out{i}", logs / f"err{i}")
            after = files_of(work)
            name = line if i == 0 and " && " not in line else f"{line.split(' && ')[0]} … {i + 1}: {step}"
            done.append((name, arguments, work, outcome, logs / f"out{i}", logs / f"err{i}",
                         sorted(p for p in after if after[p] != before.get(p))))
            before = after
        return done

    def answers(self, done):
        for name, arguments, work, (code, cpu, memory), out, err, files in done:
            answer = collections.defaultdict(list, {"exit": [code]})
            kind = arguments[arguments.index("--format") + 1] if "--format" in arguments else ""
            parsed(out.read_text(errors="replace"), "out", kind, answer)
            parsed(err.read_text(errors="replace"), "err", "", answer)
            for file in files:
                key, content = f"file.{file.relative_to(work)}", file.read_bytes()
                if len(content) > LARGE:
                    answer[key] = [hashlib.sha256(content).hexdigest()]
                else:
                    parsed(content.decode(errors="replace"), key, file.suffix[1:], answer)
            yield name, {"answer": stored(answer), "cpu": cpu, "memory": memory}


def served(origami, root):
    """Asks a server the questions of requests.txt."""
    work = pathlib.Path(tempfile.mkdtemp(dir=root))
    command = [origami, "--in-process", "serve", "--listen", "127.0.0.1:0", "--rate", "1000"]
    p = subprocess.Popen(command, cwd=work, env=environment(work), stderr=subprocess.PIPE, text=True)
    address = re.search(r"http://\S+?(?=/?\s)", p.stderr.readline()).group()
    found = {}
    for line in (HERE / "requests.txt").read_text().splitlines():
        if not line or line[0] == "#":
            continue
        method, path = line.split(" ", 1)
        answer = collections.defaultdict(list)
        try:
            reply = urllib.request.urlopen(urllib.request.Request(address + path, method=method), timeout=120)
        except urllib.error.HTTPError as e:
            reply = e
        answer["status"], answer["type"] = [reply.status], [reply.headers["Content-Type"]]
        parsed(reply.read().decode(), "out", "", answer)
        found[f"server: {line}"] = {"answer": stored(answer)}
    p.send_signal(signal.SIGTERM)
    _, _, usage = os.wait4(p.pid, 0)
    p.returncode = 0
    found["server"] = {"answer": {}, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss / 1024}
    return found


def generated(root):
    """Lets the families emit kernels, and returns the hash of each."""
    file = pathlib.Path(root) / "kernels"
    command = ["go", "test", "-tags=grpcnotrace,netgo,osusergo", "-trimpath", "-vet=off", "-count=1", "-run", "^TestSame$",
               "./plugins/nvidia/gemmgen/families"]
    env = os.environ | {"ORIGAMI_SAME_KERNELS": str(file)}
    p = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True)
    if p.returncode or not file.exists():
        sys.exit(f"same: the kernels could not be generated:\n{p.stdout}{p.stderr}")
    lines = (line.rsplit(" ", 1) for line in file.read_text().splitlines())
    return {"kernels": {"answer": {name: [digest[:16]] for name, digest in lines}}}


# ---- what is meant to differ

def glob(pattern):
    """A regular expression in which each * is a group, and all else stands for itself."""
    return re.compile("(.*)".join(re.escape(part) for part in pattern.split("*")) + r"\Z", re.DOTALL)


class Renames:
    def __init__(self, path):
        self.keys, self.values = [], []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            rule, _, reason = line.partition(" # ")
            if not rule.strip() or rule.startswith("#"):
                continue
            try:
                self.add(*rule.strip().split(None, 1))
                if not reason.strip():
                    raise ValueError("it has no reason; write one behind ' # '")
            except (ValueError, re.error, TypeError) as e:
                sys.exit(f"same: {path}:{number}: {e}")

    def add(self, what, rest):
        command = re.compile("")
        if " in " in rest:
            rest, _, within = rest.rpartition(" in ")
            command = re.compile(within.strip())
        if what == "key":
            old, new = (side.strip() for side in rest.split("->"))
            self.keys.append((glob(old), old, new, command))
        elif what == "value":
            self.values.append((glob(rest.strip()), command))
        else:
            raise ValueError(f"{what} is neither key nor value")

    def key(self, key, name, new):
        """The new name of a key, or None if it is meant to be gone. new are the keys that there are now: a rule is not
        for keys that stay, nor where its new name is missing."""
        if key in new:
            return key
        for pattern, old, to, command in self.keys:
            if old != "-" and command.search(name) and (m := pattern.match(key)):
                if to == "-":
                    return None
                groups = iter(m.groups())
                renamed = re.sub(r"\*", lambda _: next(groups), to)
                if renamed in new:
                    return renamed
        return key

    def is_new(self, key, name):
        return any(old == "-" and glob(new).match(key) and command.search(name)
                   for _, old, new, command in self.keys)

    def may_differ(self, key, name):
        return any(pattern.match(key) and command.search(name) for pattern, command in self.values)


# ---- comparing

def listed(values):
    """The values that are stored, how many there were, and their hash."""
    if isinstance(values, dict):
        return values["first"], values["count"], values["hash"]
    return values, len(values), ""


def alike(a, b, tolerance):
    if a == b and isinstance(a, bool) == isinstance(b, bool):
        return True
    try:
        return tolerance > 0 and abs(float(a) - float(b)) <= tolerance * max(abs(float(a)), abs(float(b)))
    except (TypeError, ValueError):
        return False


def difference(old, new, tolerance):
    """The first pair that differs, or None."""
    (a, count_a, hash_a), (b, count_b, hash_b) = listed(old), listed(new)
    for i, (x, y) in enumerate(zip(a, b)):
        if not alike(x, y, tolerance):
            at = f"[{i}] " if max(count_a, count_b) > 1 else ""
            return f"{at}{x}", f"{at}{y}"
    if count_a != count_b:
        return f"{count_a} values", f"{count_b} values: {b[len(a):][:1]}"
    if hash_a != hash_b and tolerance == 0:
        return f"a value behind the first {FIRST} of {count_a}", "another value"
    return None


def compare(before, now, renames, tolerance, only):
    """Yields (name, key, old, new) for each difference that is not named."""
    for name, old in before.items():
        if not only.search(name):
            continue
        if name not in now:
            yield name, "(all)", "an answer", "none"
            continue
        new, seen = dict(now[name]["answer"]), set()
        for key, values in old["answer"].items():
            to = renames.key(key, name, new)
            if to is None:
                continue
            seen.add(to)
            if renames.may_differ(key, name) or renames.may_differ(to, name):
                continue
            shown = key if key == to else f"{key} -> {to}"
            if to not in new:
                yield name, shown, listed(values)[0][:1], "(gone)"
            elif found := difference(values, new[to], tolerance):
                yield name, shown, *found
        for key in new:
            if key not in seen and not renames.is_new(key, name) and not renames.may_differ(key, name):
                yield name, key, "(not there)", listed(new[key])[0][:1]
    for name in now:
        if name not in before:
            yield name, "(all)", "none: it is not in the state", "an answer"


def show(differences, keys_only):
    by_key = collections.defaultdict(list)
    for name, key, old, new in differences:
        by_key[key].append((name, old, new))
    for key, found in sorted(by_key.items(), key=lambda item: -len(item[1])):
        if keys_only:
            print(f"{len(found):4} {key}")
            continue
        by_change = collections.defaultdict(list)
        for name, old, new in found:
            by_change[f"{str(old)[:LONG]}  →  {str(new)[:LONG]}"].append(name)
        for change, names in list(by_change.items())[:5]:
            where = names[0] if len(names) == 1 else f"{len(names)} times, as in {names[0]}"
            print(f"{key}: {change}\n      {where}")
        if len(by_change) > 5:
            rest = sum(len(names) for names in list(by_change.values())[5:])
            print(f"{key}: {len(by_change) - 5} other changes\n      {rest} times")


def costs(before, now):
    """Shows what takes more memory or time, and what takes less, the largest changes first."""
    rows = []
    for name, new in now.items():
        old = before.get(name, {})
        for what, limit, least, unit in (("cpu", CPU, SHORT, "s"), ("memory", MEMORY, 0, "MiB")):
            a, b = old.get(what), new.get(what)
            if a and b and max(a, b) > least and not 1 / limit < b / max(a, 0.001) < limit:
                ratio = b / max(a, 0.001)
                rows.append((ratio, f"{ratio:6.2f} {what:7}{a:8.2f} →{b:8.2f} {unit:4} {name[:90]}"))
    rows.sort(key=lambda row: -max(row[0], 1 / row[0]))
    if rows:
        print(f"\nCosts that changed by more than {CPU} (CPU) or {MEMORY} (memory); they do not fail:")
        print("\n".join(line for _, line in rows[:30]))
    for what, unit in (("cpu", "s"), ("memory", "MiB")):
        both = [(before[n][what], now[n][what]) for n in now if n in before and what in now[n] and what in before[n]]
        if both:
            print(f"{what} of all: {sum(a for a, _ in both):.1f} → {sum(b for _, b in both):.1f} {unit}")


def dearer(name, new, before):
    old = before.get(name, {})
    return ("cpu" in old and (new["cpu"] > CPU * max(old["cpu"], SHORT) or new["memory"] > MEMORY * old["memory"]))


def gather(options, before):
    """Runs everything. Returns the answers and, when storing, those of a second run. Otherwise it fills before, the
    stored state."""
    origami = os.path.abspath(os.environ.get("ORIGAMI") or REPO / "bin/origami")
    if not os.path.exists(origami):
        sys.exit(f"same: there is no {origami}; build it with `make build`, or name another in ORIGAMI")
    MASKS.insert(0, (re.compile(re.escape(origami)), "ORIGAMI"))
    commands = Commands(origami, options.only)
    answers = {}
    with tempfile.TemporaryDirectory(prefix="same-") as root, ProcessPoolExecutor(options.jobs) as pool:
        run = functools.partial(commands.run, root=root)
        rounds = [list(pool.map(run, commands.lines)) for _ in range(2 if options.store else 1)]
        if options.only.search("server"):
            answers |= served(origami, root)
        if options.only.search("kernels"):
            answers |= generated(root)
        found = [dict(answer for done in one for answer in commands.answers(done)) for one in rounds]
        if not options.store:  # not earlier: what this process has counts as memory of the commands
            before |= json.loads(gzip.decompress(STATE.read_bytes()))
        costly = {name for name, new in found[0].items() if dearer(name, new, before)}
        again = [line for line, done in zip(commands.lines, rounds[0]) if any(step[0] in costly for step in done)]
        for done in pool.map(run, again):
            for name, _, _, (_, cpu, memory), *_ in done:
                found[0][name]["cpu"] = min(found[0][name]["cpu"], cpu)
                found[0][name]["memory"] = min(found[0][name]["memory"], memory)
    found[0] |= answers
    return found


def store(found):
    first, second = found
    same_ones = {name: first[name] for name in second}
    unsteady = list(compare(second, same_ones, Renames(pathlib.Path(os.devnull)), 0, re.compile("")))
    if unsteady:
        show(unsteady, False)
        sys.exit("same: these differ from run to run; add masks or other commands. Nothing was stored")
    for name, again in second.items():
        for cost in ("cpu", "memory"):
            first[name][cost] = min(first[name][cost], again[cost])
    text = json.dumps(first, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    STATE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"same: stored {len(first)} answers in {STATE.stat().st_size / 1e6:.2f} MB")


def main():
    parser = argparse.ArgumentParser(description="compare answers, kernels and costs with the stored state")
    parser.add_argument("--store", action="store_true", help="store what the program answers now")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX",
                        help="only these commands; also server, kernels")
    parser.add_argument("--keys", action="store_true", help="list differences by key only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="commands at a time")
    parser.add_argument("--tolerance", type=float, default=0, help="relative difference of numbers that is none")
    options = parser.parse_args()
    start = time.time()
    if options.store:
        if options.only.pattern:
            parser.error("--store takes everything; leave --only out")
        return store(gather(options, {}))
    renames = Renames(HERE / "renames.txt")
    before = {}
    now = gather(options, before)[0]
    differences = list(compare(before, now, renames, options.tolerance, options.only))
    show(differences, options.keys)
    costs(before, now)
    names = len({name for name, *_ in differences})
    said = f"{len(differences)} differences in {names} answers" if differences else "same"
    print(f"{said}: {len(now)} answers compared in {time.time() - start:.0f} s")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
