"""What another Triton, or another version of a kernel, makes of the same configurations: for CI, without a GPU."""

from __future__ import annotations

import json
import re

from origami_gemm import lib
from origami_gemm.pin import _choose as chosen

ACCESS = re.compile(r"\b(?:ld|st)\.global[\w.:]*?(?:\.v(\d))?\.[bfus](\d+)\b")
COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s*(?:\[[^\]]*\],?\s*){2}(0x[0-9a-f]+|\d+)")


def facts(text, ptx):
    """Asynchronous copies, mean bytes of an access to global memory, and matrix instructions of a kernel."""
    widths = [int(n or 1) * int(bits) // 8 for n, bits in ACCESS.findall(ptx)] + [int(n, 0) for n in COPY.findall(ptx)]
    kind = next((k for k, name in (("tcgen05", "tcgen05.mma"), ("wgmma", "wgmma.mma_async"), ("mma", "mma.sync"))
                 if name in ptx), "")
    return {"async": len(re.findall(r"async_copy_global_to_local|async_tma_copy_global|cp\.async\.bulk", text)),
            "width": round(sum(widths) / len(widths), 2) if widths else 0, "matrix": kind}


def survey(launches, arch, jobs=None):
    """Every configuration of launches, dicts with name, kernel, args, grid, and perhaps configs, kwargs and trips."""
    import triton

    name, device, _, shared = where = chosen.target(arch)
    rows = []
    for one in launches:
        args, kwargs = one.get("args", ()), dict(one.get("kwargs") or {})
        if isinstance(args, dict):
            args, kwargs = (), {**args, **kwargs}
        function, made = chosen.launches(one["kernel"], args, kwargs, one["grid"], one.get("configs"))
        for entry, got, described in chosen.compiled(function, args, made, where, one.get("trips"), jobs):
            row = {"name": one.get("name") or function.__name__, **entry}
            rows.append(row)
            if row["error"]:
                continue
            row.update(facts(got["ttgir"], got["ptx"]))
            if row["shared"] > shared:
                row["error"] = f"{row['shared']} B of shared memory of {shared} B"
            if not isinstance(described, str):  # an unknown construct has no time
                row["kernel"], row["path"] = described[0], round(described[0]["path"])
    timed = [r for r in rows if "kernel" in r]
    if timed:
        found = lib.load().ask({"ask": "pin", "arch": name, "device": device, "kernels": [r.pop("kernel") for r in timed]})
        for row, time in zip(timed, found["times"]):
            row["seconds"] = chosen.rounded(time["seconds"])
    return {"triton": triton.__version__, "arch": f"{name}@{device}", "rows": rows}


def compare(old, new, slower=1.05):
    """Lines about what got worse from one survey to another, the worst first, and how many configurations both have."""
    before = {(r["name"], json.dumps(r["config"], sort_keys=True)): r for r in old["rows"]}
    found, both = [], 0
    for r in new["rows"]:
        at = r["name"], json.dumps(r["config"], sort_keys=True)
        o = before.get(at)
        if o is None:
            continue
        both += 1
        said = []
        if r["error"] and not o["error"]:
            said.append(f"does not compile or fit now: {r['error']}")
        elif not r["error"] and not o["error"]:
            if r["spills"] > o["spills"]:
                said.append(f"spills {r['spills']} registers of a thread, {o['spills']} before")
            if r["async"] < o["async"]:
                said.append(f"{r['async']} asynchronous copies, {o['async']} before")
            if r["width"] < o["width"] * 0.9:
                said.append(f"accesses of {r['width']} B on average, {o['width']} before")
            if r["matrix"] != o["matrix"] and o["matrix"]:
                said.append(f"matrix instruction {r['matrix'] or 'none'}, {o['matrix']} before")
        cost = r["seconds"] / o["seconds"] if r.get("seconds") and o.get("seconds") else None
        if cost and cost > slower and not said:
            said.append(f"registers {r['registers']}, {o['registers']} before; shared memory {r['shared']} B, {o['shared']} B; "
                        f"a program alone takes {r['path']} cycles, {o['path']} before")
        if said:
            line = f"{r['name']} {at[1]}: " + "; ".join(said) + (f"; predicted {cost:.2f} of the time" if cost else "")
            found.append((-(cost or 1e9), line))
    return [line for _, line in sorted(found)], both
