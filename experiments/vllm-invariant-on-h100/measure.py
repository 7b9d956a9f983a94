"""Tables of `origami table invariant` beside vLLM's fixed tile and the kernels that vLLM has, on one GPU.

    PYTHONPATH=experiments OUT=folder python3 experiments/vllm-invariant-on-h100/measure.py TABLE.json…

`flattened` computes as vLLM 0.33.0's matmul_kernel_persistent: a CTA for each SM at most, one loop over tiles and K,
masked K, B stored N×K, fp32 sums in the order of K. `apart` is the Triton executor's kernel, whose loops are not one and
which masks K where it must. Each launch of a graph has a weight of its own, and the weights of a graph do not fit into
the L2. Operands are random. Bits: the rows of every M, and those of a part of a batch, are compared with the same rows
among all. `wgmma` are origami's generated kernels of one order, if ORIGAMI_LIB is liborigami.so. ONLY=column,… leaves
the other columns out.
"""

import concurrent.futures
import csv
import json
import math
import multiprocessing
import os
import pathlib
import sys
import time

import torch
import triton
import triton.language as tl

import bench

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "plugins/triton/origami_triton"))
from product import multiply_persistent, place  # noqa: E402

try:
    sys.path.insert(0, str(ROOT / "bindings/python"))
    import origami_gemm.torch as og
    from origami_gemm.torch._ops import product
except (ImportError, RuntimeError):
    og = None

SHIPPED = ROOT / "cmd/origami/internal/verb/tablecmd/testdata/vllm-0.33.0/tables.csv"
MOST, START = float(os.environ.get("SECONDS_MOST", 230)), time.time()
ONLY = os.environ.get("ONLY")
SIZES = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
MOST_LOGITS = 1024  # lm_head has a row for each sequence, not for each token
FIXED = {"bm": 128, "bn": 128, "bk": 64, "warps": 8, "stages": 3}
COLD = 3  # the weights of a graph are this many times the L2
GROUP, KINDS, BANDS = 8, ("flattened", "apart"), ((1, 64), (65, 8192), (1, 4096))


@triton.jit
def multiply_flattened(a, b, c, m, n, k, stride_am, stride_bn, stride_cm, BM: tl.constexpr, BN: tl.constexpr,
                       BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    depth = tl.arange(0, BK)
    stored = tl.program_id(0) - PROGRAMS  # the tile that is stored has an index of its own, so that the loops can fuse
    for index in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        row, column = place(index, tiles_m, tiles_n, GROUP)
        rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < m, rows, 0), BM), BM)
        columns = tl.max_contiguous(tl.multiple_of(tl.where(columns < n, columns, 0), BN), BN)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(tl.cdiv(k, BK)):
            at, left = step * BK + depth, k - step * BK
            x = tl.load(a + rows[:, None] * stride_am + at[None, :], mask=depth[None, :] < left, other=0.0)
            y = tl.load(b + at[:, None] + columns[None, :] * stride_bn, mask=depth[:, None] < left, other=0.0)
            total = tl.dot(x, y, total)
        stored += PROGRAMS
        row, column = place(stored, tiles_m, tiles_n, GROUP)
        rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        tl.store(c + stride_cm * rows[:, None] + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


def launcher(kind, t, a, b, c):
    """A function that launches a kernel of Triton."""
    (m, k), n = a.shape, b.shape[0]
    programs = min(SMS, triton.cdiv(m, t["bm"]) * triton.cdiv(n, t["bn"]))
    options = {"num_warps": t["warps"], "num_stages": t["stages"]}
    tile = {"BM": t["bm"], "BN": t["bn"], "BK": t["bk"], "GROUP": GROUP}
    if kind == "flattened":
        return lambda: multiply_flattened[(programs,)](a, b, c, m, n, k, k, k, n, **tile, PROGRAMS=SMS, **options)
    return lambda: multiply_persistent[(programs,)](a, b, c, m, n, k, k, 1, 1, k, n, **tile, EVEN_K=k % t["bk"] == 0,
                                                    **options)


def begin():
    """Reads the device, in each process."""
    global SMS, L2
    properties = torch.cuda.get_device_properties(0)
    SMS, L2 = properties.multi_processor_count, properties.L2_cache_size


def compiled(kind, tile, m, even):
    """Puts a kernel into Triton's cache on disk. Of M it depends on whether it is 1 and whether 16 divides it."""
    k = tile["bk"] * 16 + (0 if even else 16)
    a, b, c = (torch.zeros(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (256, k), (m, 256)))
    try:
        launcher(kind, tile, a, b, c)()
        torch.cuda.synchronize()
    except triton.runtime.errors.OutOfResources:
        pass  # measure says so


def compile_all(work):
    """Compiles the kernels of all layers, in as many processes as there are cores."""
    jobs = {}
    for layer, ways, sizes in work:
        for m in sizes:
            for rows in (m, max(1, m // 2)):
                for who, of in ways.items():
                    for kind in filter(lambda kind: wanted(f"{kind} {who}"), KINDS):
                        job = (kind, of(rows), rows if rows == 1 else 16 if rows % 16 == 0 else 8,
                               kind == "flattened" or layer["k"] % of(rows)["bk"] == 0)
                        jobs[repr(job)] = job
    spawn, most = multiprocessing.get_context("spawn"), min(14, os.cpu_count(), len(jobs) or 1)
    with concurrent.futures.ProcessPoolExecutor(most, spawn, begin) as pool:
        for future in [pool.submit(compiled, *job) for job in jobs.values()]:
            future.result()
    print(f"{len(jobs)} kernels compiled: {time.time() - START:.0f} s", flush=True)


def wanted(column):
    return ONLY is None or column in ONLY.split(",")


def ways_of(layer, own):
    """The kernels of Triton that are compared: functions from M to a tile."""
    buckets = [(t["m"], {"bm": t["block_m"], "bn": t["block_n"], "bk": layer["block_k"], "warps": t["num_warps"],
                         "stages": t["num_stages"]}) for t in layer["kernels"]]
    ways = {"fixed": lambda m: FIXED, "table": lambda m: bucket(buckets, m)}
    if (layer["n"], layer["k"]) in own:
        ways["shipped"] = lambda m: bucket(own[layer["n"], layer["k"]], m)
    return ways


def columns_of(ways):
    """What is compared: functions from rows, weights and what gets the product to a launch."""
    columns = {f"{kind} {who}": lambda a, w, c, kind=kind, of=of: launcher(kind, of(len(a)), a, w, c)
               for kind in KINDS for who, of in ways.items()}
    if og is not None:
        columns["wgmma"] = lambda a, w, c: lambda: product(a, w, turned=True, invariant=True, into=c)
    columns["torch.matmul"] = lambda a, w, c: lambda: torch.mm(a, w.T, out=c)
    return {name: column for name, column in columns.items() if wanted(name)}


def bucket(buckets, m):
    """vLLM's choice: the first kernel whose M is not smaller, or the last."""
    return next((t for most, t in buckets if m <= most), buckets[-1][1])


def shipped(capability):
    """vLLM's own kernels for an architecture, by (N, K)."""
    family = {(9, 0): "hopper", (8, 9): "ada", (10, 0): "blackwell", (12, 0): "sm120"}.get(capability)
    found = {}
    for row in csv.DictReader(SHIPPED.open()):
        if row["family"] == family:
            keys = {"bm": "block_m", "bn": "block_n", "bk": "block_k", "warps": "num_warps", "stages": "num_stages"}
            tile = {short: int(row[long]) for short, long in keys.items()}
            found.setdefault((int(row["n"]), int(row["k"])), []).append((int(row["m"]), tile))
    return found


def measure(name, layer, ways, sizes):
    """Rows for one layer."""
    n, k = layer["n"], layer["k"]
    predicted = {t["m"]: t for t in layer["kernels"]}
    weights = [torch.randn(n, k, device="cuda").bfloat16() / math.sqrt(k)
               for _ in range(max(2, math.ceil(COLD * L2 / (2 * n * k))))]
    whole = torch.randn(sizes[-1], k, device="cuda").bfloat16()
    rows, all_rows, columns = [], {}, columns_of(ways)
    if "wgmma" in columns:
        og.prepare(weights[0], m=(1, sizes[-1]), invariant=True)
    for m in reversed(sizes):
        a, c = whole[:m], torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        row = {"for": name, "layers": layer["names"], "count": layer["count"], "n": n, "k": k, "m": m, "us": {},
               "different_bits": {}, "wrong": [], "tile": ways["table"](m)}
        exact = whole[: min(m, 64)].float() @ weights[0].float().T
        for who, column in columns.items():
            try:
                column(a, weights[0], c)()
            except triton.runtime.errors.OutOfResources as error:
                row["wrong"].append(f"{who}: {error}")
                continue
            if not torch.allclose(c[: len(exact)].float(), exact, atol=3e-2, rtol=2e-2):
                row["wrong"].append(f"{who}: wrong result")
            same = all_rows.setdefault(who, c.clone())
            different = (same[:m] != c).any(1).sum().item()
            part = torch.empty(max(1, m // 2), n, device="cuda", dtype=torch.bfloat16)  # other rows, another M
            first = sizes[-1] - len(part)
            column(whole[first:], weights[0], part)()
            different += (same[first:] != part).any(1).sum().item()
            row["different_bits"][who] = different
            cold = bench.graph([column(a, w, c) for w in weights])  # a launch is among launches with other weights
            row["us"][who] = bench.in_turns({"": cold.replay}, 9)[""] * 1e6 / len(weights)
        if m in predicted:
            row["predicted_us"] = {"table": predicted[m]["seconds"] * 1e6, "fixed": predicted[m]["fixed_seconds"] * 1e6}
        rows.append(row)
    return rows


def summary(rows):
    """Prints the time of all layers by M, and the gains."""
    for name in dict.fromkeys(r["for"] for r in rows):
        of = [r for r in rows if r["for"] == name]
        whos = [w for w in of[0]["us"] if all(w in r["us"] for r in of)]
        print(f"\n{name}: µs of all layers but lm_head above M = {MOST_LOGITS}")
        print("     M " + " ".join(f"{w:>18}" for w in whos))
        for m in SIZES:
            at = [r for r in of if r["m"] == m]
            print(f"{m:6d} " + " ".join(f"{sum(r['count'] * r['us'][w] for r in at):18.1f}" for w in whos))
        pairs = {f"{kind} table": [f"{kind} fixed", f"{kind} shipped", "torch.matmul"] for kind in KINDS}
        pairs["wgmma"] = [*(f"{kind} fixed" for kind in KINDS), "torch.matmul"]
        for own, others in pairs.items():
            for low, high in BANDS:
                part = [r for r in of if low <= r["m"] <= high and own in r["us"]]
                for other in others:
                    gains = [r["us"][other] / r["us"][own] for r in part if other in r["us"]]
                    if gains:
                        print(f"{own}, M {low} to {high}: {bench.geomean(gains):.3f} times as fast as {other} (worst {min(gains):.3f}), "
                              f"{len(gains)} products")
                both = [r for r in part if "predicted_us" in r and others[0] in r["us"] and own != "wgmma"]
                if both:
                    said = bench.geomean([r["predicted_us"]["fixed"] / r["predicted_us"]["table"] for r in both])
                    done = bench.geomean([r["us"][others[0]] / r["us"][own] for r in both])
                    print(f"  {done:.3f} in {len(both)} products for which {said:.3f} is predicted")
        for way in of[0]["different_bits"]:
            bad = [(r["m"], r["n"], r["k"], r["different_bits"][way]) for r in of if r["different_bits"].get(way)]
            print(f"rows with other bits, {way}: {sum(b[-1] for b in bad)} {bad or ''}")
        for r in of:
            for text in r["wrong"]:
                print(f"WRONG {r['m']}x{r['n']}x{r['k']}: {text}")


def main():
    begin()
    torch.manual_seed(1)
    properties, work = torch.cuda.get_device_properties(0), []
    own, rows = shipped(torch.cuda.get_device_capability(0)), []
    for file in sys.argv[1:]:
        table = json.loads(pathlib.Path(file).read_text())
        if table["device_name"] != properties.name:
            sys.exit(f"{file} is for {table['device_name']}, and this is {properties.name}")
        for layer in table["layers"]:
            sizes = [m for m in SIZES if layer["names"] != ["lm_head"] or m <= MOST_LOGITS]
            work.append((layer | {"for": table["for"]}, ways_of(layer, own), sizes))
    compile_all(work)
    for layer, ways, sizes in work:
        if time.time() - START > MOST:
            print(f"out of time before {layer['for']} {layer['names']}")
            break
        rows += measure(layer["for"], layer, ways, sizes)
        print(f"{layer['for']} {layer['names']}: {time.time() - START:.0f} s", flush=True)
        bench.save("result", bench.about() | {"triton": triton.__version__, "rows": rows})
    summary(rows)


if __name__ == "__main__":
    main()
