"""Compares what two runs computed, as origami_gemm.torch.Recorder recorded it.

    python -m origami_gemm.exact first.json second.json"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import sys


def difference(first: list[dict], second: list[dict]) -> str | None:
    """The first tensor that differs between two records, or None. The order is that of computation."""
    for number, (a, b) in enumerate(itertools.zip_longest(first, second), 1):
        if a == b:
            continue
        if a is None or b is None:
            one, other, tensor = ("second", "first", b) if a is None else ("first", "second", a)
            return f"tensor {number}, {tensor['what']} of {tensor['name']}, is in the {one} run only: the {other} has {number - 1}"
        if (a["name"], a["what"]) != (b["name"], b["what"]):
            return f"tensor {number} is first the {a['what']} of {a['name']}, and then the {b['what']} of {b['name']}"
        for part in ("shape", "dtype"):
            if a[part] != b[part]:
                return f"tensor {number}, {a['what']} of {a['name']}: the {part} is {a[part]} and {b[part]}"
        return f"tensor {number} of {len(first)}, {a['what']} of {a['name']} ({a['dtype']} {tuple(a['shape'])}), has other bits"
    return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m origami_gemm.exact", description="Names the first tensor that differs.")
    parser.add_argument("first", type=pathlib.Path)
    parser.add_argument("second", type=pathlib.Path)
    given = parser.parse_args(arguments)
    records = []
    for path in (given.first, given.second):
        try:
            records.append(json.loads(path.read_text()))
        except (OSError, ValueError) as e:
            print(f"{path}: {e}; give a file that Recorder.save() wrote", file=sys.stderr)
            return 2
    found = difference(*records)
    print(found or f"all {len(records[0])} tensors have the same bits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
