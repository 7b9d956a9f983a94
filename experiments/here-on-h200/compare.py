"""Counts how many measured times of sizes that `origami here` did not measure lie in the intervals of answers before and
after it. Arguments: the folder of the answers."""
import json, math, pathlib, statistics, sys
out = pathlib.Path(sys.argv[1])
def rows(name):
    path = out / name
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        try:
            a = json.loads(line)
        except ValueError:
            continue
        if "problem" in a:
            p = a["problem"]
            found[p["m"], p["n"], p["k"], p["dtype"], p["trans_b"]] = a
    return found
def ends(a):
    i = a["predicted"].get("interval_seconds") or a["predicted"].get("interval")
    if isinstance(i, dict):
        i = list(i.values())
    return i
def measured(a):
    m = a.get("measured")
    if isinstance(m, dict):
        for c in m.get("candidates", []):
            if c.get("chosen") and c.get("median_seconds"):
                return c["median_seconds"], c["config"]
    return None, None
print(f"{'family':14} | {'before':>17} {'width':>6} {'held':>6} | {'after':>17} {'width':>6} {'held':>6}")
for family in ("triton", "wgmma", "mma", "library", "triton-fp8", "wgmma-fp8", "mma-fp8", "library-fp8"):
    library = family.split("-")[0] == "library"
    side = {"before": [0, 0, [], set()], "after": [0, 0, [], set()]}
    for name, s in side.items():
        times = rows(f"measured-{family}.jsonl" if library else f"measured-{name}-{family}.jsonl")
        answers = rows(f"{name}-{family}.jsonl") if library else times
        for key, m in times.items():
            t = m.get("seconds") if library else measured(m)[0]
            a = answers.get(key)
            if not t or not a or not ends(a):
                continue
            low, high = ends(a)
            s[1] += 1
            s[0] += low <= t <= high
            s[2].append(high / low)
            s[3].add(a.get("evidence"))
    if side["before"][1] or side["after"][1]:
        cells = []
        for held, of, widths, grades in side.values():
            w = f"{statistics.median(widths):6.2f}" if widths else "     -"
            cells.append(f"{'/'.join(sorted(filter(None, map(str, grades)))):>17} {w} {held:>3}/{of:<2}")
        print(f"{family:14} | " + " | ".join(cells))
