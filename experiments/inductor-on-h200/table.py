"""The results of measure.py as Markdown.

    python3 table.py RESULT.json
"""

import json
import pathlib
import re
import statistics
import sys

# A result is as right as cuBLAS's if its error is at most this much larger: another order of the same sums.
EQUAL = 1.25

OURS = ("top1", "top4", "top1-triton", "top4-triton", "top1-aten", "top4-aten")
FIRST = ("default", "default-tuned", *OURS)
KERNELS = ("own-triton", "default", *OURS)


def median(contender, what="kernel_s"):
    return contender.get(what, {}).get("median")


def ratios(rows, name, to="own", what="kernel_s"):
    """The times of a contender in those of another, by product."""
    found = {}
    for product, row in rows.items():
        one, other = (median(row["contenders"].get(c, {}), what) for c in (name, to))
        if one and other:
            found[product] = one / other
    return found


def firsts(rows, name, to="own"):
    found = {}
    for product, row in rows.items():
        one, other = (row["contenders"].get(c, {}).get("first_call_s") for c in (name, to))
        if one and other:
            found[product] = other / one
    return found


def short(name, description):
    """A choice of Inductor in the words of a Pick, or its name if it is no Triton kernel."""
    value = dict(re.findall(r"(\w+)=(\d+)", description))
    if "BLOCK_M" not in value:
        return name
    return "{BLOCK_M}x{BLOCK_N}x{BLOCK_K} w{num_warps} s{num_stages} g{GROUP_M}".format(**value)


def is_triton(name):
    return name[:1].isdigit()  # 128x128x64 …; functions of cuBLAS have names


def fastest(contender):
    """What Inductor's own timing preferred: a Pick's words, or the name of a kernel of cuBLAS."""
    timed = (contender.get("timed") or [{}])[-1]
    return short(timed.get("best", "–"), timed.get("description", ""))


def best_triton(contenders):
    """The time of the fastest Triton kernel of Inductor's list, in seconds. Where cuBLAS was faster and the list without
    it was not measured, the difference is that of Inductor's own timing. None if that is not known."""
    own = contenders.get("own", {})
    if is_triton(fastest(own)):
        return median(own)
    if alone := median(contenders.get("own-triton", {})):
        return alone
    times = (own.get("timed") or [{}])[-1].get("ms", [])
    kernels = [ms for name, ms in times if is_triton(name)]
    return median(own) + (min(kernels) - times[0][1]) / 1e3 if kernels and median(own) else None


def summary(rows):
    # Inductor makes no matrix product of a single row, so that nothing is picked or timed.
    rows = {p: r for p, r in rows.items() if any(c.get("report") for c in r["contenders"].values())}
    yield "| | geometric mean | worst | products |"
    yield "| --- | --- | --- | --- |"
    for name in KERNELS:
        yield from spread(f"kernel time, {label(name)} ÷ Inductor's best", ratios(rows, name))
    for name in ("top1", "top1-triton"):
        against = {p: time / best for p, r in rows.items()
                   if (best := best_triton(r["contenders"])) and (time := median(r["contenders"].get(name, {})))}
        yield from spread(f"kernel time, {label(name)} ÷ Inductor's best Triton kernel", against)
    for name in FIRST:
        yield from spread(f"first call, Inductor's list ÷ {label(name)}", firsts(rows, name), min, ".1f")


def spread(what, found, worst=max, form=".3f"):
    """A line of the summary: the geometric mean and the worst of some ratios by product."""
    if found:
        product = worst(found, key=found.get)
        yield (f"| {what} | {statistics.geometric_mean(found.values()):{form}} | {found[product]:{form}} ({product}) | "
               f"{len(found)} |")


def label(name):
    return {"default": "cuBLAS", "own": "Inductor's list", "own-triton": "Inductor's list without cuBLAS",
            "top1": "top=1", "top4": "top=4", "top1-triton": "top=1 without cuBLAS",
            "top4-triton": "top=4 without cuBLAS", "top1-aten": "top=1 and cuBLAS timed",
            "top4-aten": "top=4 and cuBLAS timed", "top1-default-mode": "top=1, mode default",
            "default-tuned": "cuBLAS, mode max-autotune"}[name]


def products(rows):
    """Only contenders that were measured have a column."""
    shown = [name for name in KERNELS if any(median(r["contenders"].get(name, {})) for r in rows.values())]
    timed = [n for n in ("default", "default-tuned", "own", "top1", "top4", "top1-triton")
             if any(r["contenders"].get(n, {}).get("first_call_s") for r in rows.values())]
    heads = " | ".join(label(name) for name in shown)
    yield f"| product | first call, s: {' · '.join(map(label, timed))} | list's best, µs | {heads} | error ÷ cuBLAS's |"
    yield "| --- " * (4 + len(shown)) + "|"
    for product, row in rows.items():
        c = row["contenders"]
        first = " · ".join(number(c.get(n, {}).get("first_call_s"), ".1f") for n in timed)
        own = median(c.get("own", {}))
        cells = [number(own and own * 1e6, ".1f")]
        for name in shown:
            time = median(c.get(name, {}))
            cells.append("failed" if "failed" in c.get(name, {}) else number(time and own and time / own, ".3f"))
        yield f"| {product} | {first} | {' | '.join(cells)} | {errors(c)} |"


def errors(contenders):
    """The largest error of a contender in that of cuBLAS."""
    base = contenders.get("default", {}).get("error")
    ours = [c["error"] for name, c in contenders.items() if name.startswith("top") and "error" in c]
    if base is None or not ours:
        return "–"
    ratio = max(ours) / base if base else float("inf") if max(ours) else 1
    return f"{ratio:.2f}" + ("" if ratio <= EQUAL else " **wrong**")


def number(value, form):
    return "–" if value is None else format(value, form)


def picked(rows):
    yield "| product | Inductor's best | origami's pick, and why |"
    yield "| --- | --- | --- |"
    for product, row in rows.items():
        c = row["contenders"]
        best = fastest(c.get("own", {}))
        why = "<br>".join((c.get("top1") or c.get("top1-triton", {})).get("report", [])) or "–"
        yield f"| {product} | {best} | {why} |".replace("\n", " ")


def models(rows):
    yield "| model | | first step, s | step, ms | loss | norm of the gradient |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, row in rows.items():
        yield f"| {name} | eager | | | {row['loss']:.5g} | {row['gradient']:.5g} |"
        for contender, c in row["contenders"].items():
            if "failed" in c:
                yield f"| | {label(contender)} | failed: {c['failed'][:80]} | | | |"
                continue
            yield (f"| | {label(contender)} | {c['first_call_s']:.1f} | {c['step_s']['median'] * 1e3:.2f} | "
                   f"{c['loss']:.5g} | {c['gradient']:.5g} |")


def text(data):
    machine = data["machine"]
    about = ", ".join(str(machine[key]) for key in ("nvidia_smi", "torch", "model", "date") if machine.get(key))
    parts = [f"Measured on {about}."]
    rows = data["products"]
    if rows:
        parts += ["\n".join(summary(rows)),
                  "The kernel times on the right are divided by the list's best.\n\n" + "\n".join(products(rows)),
                  "\n".join(picked(rows))]
    if data["models"]:
        parts.append("\n".join(models(data["models"])))
    return "\n\n".join(parts)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    print(text(json.loads(pathlib.Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
