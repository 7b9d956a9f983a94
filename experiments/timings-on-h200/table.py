"""What the page of experiments says, from result.jsonl and unseen.jsonl. Needs nothing but Python.

    python3 table.py
"""

import json
import math
import pathlib
import statistics

FAMILIES = ("cublas", "triton", "wgmma", "mma")
PREDICTED = {"cublas": "library"}
TIMINGS = ("events", "warm", "layers", "layers5", "behind", "sustained", "host")
L2_BYTES = 60e6


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def within(ratios, factor):
    return 100 * statistics.fmean(abs(math.log(r)) <= math.log(factor) for r in ratios)


def moved(row):
    """Bytes of A, B and C, at most the L2: they push as many dirty lines out."""
    m, n, k = row["m"], row["n"], row["k"]
    return min((1 if row["dtype"] == "fp8" else 2) * (m * k + n * k) + 2 * m * n, L2_BYTES)


def line(rows, family):
    """Launch and bandwidth of: events - model = launch + moved / bandwidth, least squares of relative errors."""
    points = [(moved(r), r["seconds"][family]["events"], r["seconds"][family]["model"]) for r in rows]
    s = [0.0] * 5
    for x, events, model in points:
        w, y = 1 / events**2, events - model
        for i, v in enumerate((w, w * x, w * x * x, w * y, w * x * y)):
            s[i] += v
    slope = (s[0] * s[4] - s[1] * s[3]) / (s[0] * s[2] - s[1] ** 2)
    launch = (s[3] - slope * s[1]) / s[0]
    return launch, 1 / slope, [(model + launch + slope * x) / events for x, events, model in points]


def read(name):
    return [json.loads(x) for x in (pathlib.Path(__file__).parent / name).read_text().splitlines()][1:]


def unseen():
    """Predicted against measured of sizes that nothing was fitted to, in two timings, and the family named fastest."""
    rows = read("unseen.jsonl")
    print("\n| unseen sizes | " + " | ".join(FAMILIES) + " | fastest named |\n| --- |" + " --- |" * 5)
    for timing in ("model", "events"):
        cells = []
        for f in FAMILIES:
            ratios = [r["predicted"][PREDICTED.get(f, f)][timing] / r["seconds"][f][timing] for r in rows]
            error = math.expm1(statistics.median(abs(math.log(x)) for x in ratios))
            cells.append(f"{geomean(ratios):.2f}, {100 * error:.1f} %, {within(ratios, 1.1):.0f} %")
        named = leads = 0
        for r in rows:
            measured = sorted((r["seconds"][f][timing], f) for f in FAMILIES[:3])
            if measured[1][0] >= 1.05 * measured[0][0]:
                leads += 1
                pick = min(FAMILIES[:3], key=lambda f: r["predicted"][PREDICTED.get(f, f)][timing])
                named += pick == measured[0][1]
        print(f"| `{timing}` | " + " | ".join(cells) + f" | {named} of {leads} |")


def main():
    rows = read("result.jsonl")
    print("| time ÷ model's | " + " | ".join(FAMILIES) + " |\n| --- |" + " --- |" * 4)
    for timing in TIMINGS:
        cells = []
        for f in FAMILIES:
            ratios = [r["seconds"][f][timing] / r["seconds"][f]["model"] for r in rows if timing in r["seconds"][f]]
            cells.append(f"{geomean(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
        print(f"| `{timing}` | " + " | ".join(cells) + " |")
    print("\n| predicted ÷ measured | " + " | ".join(FAMILIES) + " |\n| --- |" + " --- |" * 4)
    for timing in ("model", "events"):
        cells = []
        for f in FAMILIES:
            ratios = [r["predicted"][PREDICTED.get(f, f)] / r["seconds"][f][timing] for r in rows]
            cells.append(f"{geomean(ratios):.2f}, {within(ratios, 1.1):.0f} %, {within(ratios, 1.2):.0f} %")
        print(f"| `{timing}` | " + " | ".join(cells) + " |")
    print("\n| `events` from `model` | launch, µs | TB/s | within 5 % | within 10 % |\n| --- | --- | --- | --- | --- |")
    for f in FAMILIES:
        launch, bandwidth, ratios = line(rows, f)
        print(f"| {f} | {launch * 1e6:.2f} | {bandwidth / 1e12:.1f} | {within(ratios, 1.05):.0f} % | {within(ratios, 1.1):.0f} % |")
    unseen()


if __name__ == "__main__":
    main()
