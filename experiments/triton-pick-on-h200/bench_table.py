"""The result of bench_triton.py as Markdown."""

import math
import statistics


def table(r, shapes):
    """A result as Markdown."""
    def geomean(values):
        return math.exp(statistics.fmean(map(math.log, values)))

    n = r["autotune_configs"]
    cold, kinds = r["cold"], ("autotune", "pick", "shortlist")
    lines = [
        f"{r['device']}, {r['software']}; model {r['model']['model']}, rung {r['model']['rung']}, "
        f"kernel family {r['model']['kernel']}.",
        "",
        "| what | time |",
        "| --- | --- |",
        "| load the library and open the model, once | "
        f"{(r['open_seconds']['import'] + r['open_seconds']['open']) * 1e3:.1f} ms |",
        f"| pick for a problem that was not asked before | {r['per_call_us']['new']:.0f} µs |",
        f"| the same again | {r['per_call_us']['again']:.2f} µs |",
        f"| the best 8 | {r['per_call_us']['rank_8']:.0f} µs |",
        f"| expected regret, and how many are worth measuring | {r['per_call_us']['expected_regret']:.0f} µs |",
        f"| launch of a plain kernel, host | {r['per_launch_us']['plain']:.1f} µs |",
        f"| launch through `origami_gemm.triton.pick` | {r['per_launch_us']['pick']:.1f} µs |",
        f"| launch through `triton.autotune`, tuned already | {r['per_launch_us']['autotune']:.1f} µs |",
        "",
        "First result in a new process with an empty Triton cache, without importing torch (`triton.autotune` over "
        f"{n} configurations):",
        "",
        '| shape | `triton.autotune` | `pick` | `pick(shortlist="auto")` |',
        "| --- | --- | --- | --- |",
    ]
    for i, (m, n, k) in enumerate(shapes[:len(cold["pick"]["first_result"])]):
        lines.append(
            f"| {m}×{n}×{k} | " + " | ".join(f"{cold[kind]['first_result'][i]:.2f} s" for kind in kinds) + " |"
        )
    lines.append("| all | " + " | ".join(f"{sum(cold[kind]['first_result']):.1f} s" for kind in kinds) + " |")
    lines += ["", "Time of the kernel, cold L2; a ratio above 1 is slower than `triton.autotune`'s best:", "",
              "| shape | `triton.autotune`'s best | pick ÷ it | short list ÷ it | torch.matmul ÷ it | pick |",
              "| --- | --- | --- | --- | --- | --- |"]
    names = ("pick", "shortlist", "torch")
    for kind, rows in (
        ("aligned", [row for row in r["shapes"] if aligned(row)]),
        ("unaligned", [row for row in r["shapes"] if not aligned(row)]),
    ):
        for row in rows:
            ms = row["ms"]
            lines.append(
                f"| {row['m']}×{row['n']}×{row['k']} | {ms['autotune'] * 1e3:.1f} µs | "
                + " | ".join(f"{ms[name] / ms['autotune']:.3f}" for name in names)
                + f" | {short(row['config']['pick'])} |"
            )
        for what, of in (("geometric mean", geomean), ("worst", max)) if rows else ():
            values = (of([row["ms"][name] / row["ms"]["autotune"] for row in rows]) for name in names)
            lines.append(
                f"| **{len(rows)} {kind}: {what}** | | " + " | ".join(f"**{value:.3f}**" for value in values) + " | |"
            )
    noise = [abs(row["ms"]["pick_again"] / row["ms"]["pick"] - 1) for row in r["shapes"]]
    lines += ["", f"The same kernel measured twice differs by {statistics.median(noise) * 100:.1f} % (median), "
              f"{max(noise) * 100:.1f} % at most."]
    return "\n".join(lines) + "\n"


def aligned(row):
    """Whether Triton loads the kernel's operands, row-major, in more than single elements."""
    return row["k"] % 16 == 0 and row["n"] % 16 == 0


def short(config):
    """A triton.Config's text in the form of origami's."""
    values = dict(part.split(": ") for part in config.split(", "))
    return (f"{values['BLOCK_SIZE_M']}x{values['BLOCK_SIZE_N']}x{values['BLOCK_SIZE_K']},"
            f"warps={values['num_warps']},stages={values['num_stages']},group={values['GROUP_SIZE_M']}")
