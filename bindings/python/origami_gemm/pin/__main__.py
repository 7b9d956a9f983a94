"""python -m origami_gemm.pin: pins of a file's launches, and a check of two compilers or two versions of kernels."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

from origami_gemm.errors import Error


def launches_of(path):
    """LAUNCHES of a Python file: dicts with name, kernel, args, grid."""
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    found = runpy.run_path(path).get("LAUNCHES")
    if not found:
        raise Error(f"{path}: it has no LAUNCHES; give a list of dicts with kernel, args and grid")
    return list(found)


def surveyed(python, file, arch):
    """The survey of a file by an interpreter, or a survey saved as JSON."""
    if python.endswith(".json"):
        return json.loads(pathlib.Path(python).read_text())
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([python, "-m", "origami_gemm.pin", "survey", file, "--arch", arch, "-o", out.name], check=True)
        return json.load(out)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m origami_gemm.pin", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--arch", default=None, help="as in sm90@h200; $ORIGAMI_PIN_ARCH, or this machine's GPU")
    choose = verbs.add_parser("choose", parents=[common], help="the configuration of each launch, without a clock")
    choose.add_argument("file", help="a Python file with LAUNCHES; it is run")
    choose.add_argument("--all", action="store_true", help="all candidates")
    survey = verbs.add_parser("survey", parents=[common], help="what each configuration takes, as JSON")
    survey.add_argument("file")
    survey.add_argument("-o", "--output", default="-")
    check = verbs.add_parser("check", parents=[common], help="what got worse; exit status 1 if anything did")
    check.add_argument("file", nargs="?", help="a Python file with LAUNCHES")
    check.add_argument("--old", required=True, help="a Python interpreter, or JSON of survey")
    check.add_argument("--new", default=sys.executable, help="the same; this interpreter by default")
    check.add_argument("--slower", type=float, default=1.05, help="predicted time ÷ before from which on it is said")
    a = parser.parse_args(argv)
    try:
        return {"choose": _choose, "survey": _survey, "check": _check}[a.verb](a)
    except (Error, OSError, ValueError, subprocess.CalledProcessError) as e:
        print(f"pin: {e}", file=sys.stderr)
        return 2


def _choose(a):
    from origami_gemm import pin

    for one in launches_of(a.file):
        c = pin.choose(one["kernel"], one.get("args", ()), one["grid"], a.arch, kwargs=one.get("kwargs"),
                       configs=one.get("configs"), trips=one.get("trips"))
        line = {"name": one.get("name"), "config": c.config, "seconds": c.seconds, "interval": c.interval,
                "evidence": c.evidence, "why": c.why, "assumed": c.assumed, "key": c.key}
        if a.all:
            line["candidates"] = [{k: getattr(x, k) for k in ("config", "seconds", "bound", "registers", "spills", "error")}
                                  for x in c.candidates]
        print(json.dumps(line))
    return 0


def _survey(a):
    from origami_gemm.pin import _check as checking

    text = json.dumps(checking.survey(launches_of(a.file), a.arch), sort_keys=True)
    if a.output == "-":
        print(text)
    else:
        pathlib.Path(a.output).write_text(text + "\n")
    return 0


def _check(a):
    from origami_gemm.pin import _check as checking

    arch = a.arch or os.environ.get("ORIGAMI_PIN_ARCH") or "auto"
    old, new = surveyed(a.old, a.file, arch), surveyed(a.new, a.file, arch)
    lines, both = checking.compare(old, new, a.slower)
    for line in lines:
        print(line)
    print(f"{len(lines)} of {both} configurations got worse from Triton {old['triton']} to {new['triton']} on {new['arch']}")
    return 1 if lines or not both else 0


if __name__ == "__main__":
    sys.exit(main())
