"""Kernels of the family wgmma beside cuBLAS, in CUDA graphs with cold weights. OUT=folder python3 measure.py [section=seconds ...]"""

import concurrent.futures
import dataclasses
import json
import math
import os
import random
import statistics
import sys
import time

import torch

import origami_gemm.torch as og
from origami_gemm import _layers as L
from origami_gemm.torch import _verify

OUT, F, BF16, FP8 = os.environ.get("OUT", "."), torch.nn.functional, torch.bfloat16, torch.float8_e4m3fn
# N and K of layers of Qwen2-7B, Llama 3 8B, BERT-large, gpt-oss and others; and of others that nothing was chosen on.
LAYERS = [(4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944), (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336),
          (3072, 1024), (1024, 4096), (2880, 2880), (1536, 8960), (4096, 1536)]
KEPT = [(8192, 3584), (3584, 4096), (28672, 3584), (3584, 14336), (7680, 5120), (5120, 5120), (35840, 5120), (5120, 17920),
        (5120, 2880)]
held = []  # what graphs read and write, until they end


def dump(name, what):
    with open(os.path.join(OUT, name + ".json"), "w") as file:
        json.dump(what, file)


def geomean(x):
    return math.exp(statistics.fmean(map(math.log, x)))


def operands(m, n, k):
    w = torch.randn(n, k, device="cuda", dtype=BF16)
    copies = max(2, min(-(-100 * 2**20 // w.nbytes), (1 << 30) // w.nbytes))
    x, out = torch.randn(m, k, device="cuda", dtype=BF16), torch.empty(m, n, device="cuda", dtype=BF16)
    return x, out, [w] + [torch.randn_like(w) for _ in range(copies - 1)]


def launcher(layer, m, pick, x, out):
    own, config = layer.device.own, L.config(pick) | {"group_m": pick.group_m}
    plan = L.Plan(own._library, *own._library.load({**own._request, **layer.key.problem(m), "config": config}, 0), pick)
    zeros = torch.zeros(max(16, plan.counters), device="cuda", dtype=torch.uint8)
    room = torch.empty(max(16, plan.partials), device="cuda", dtype=torch.uint8)
    held.append((zeros, room))
    return lambda w: plan.launch(x.data_ptr(), w.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream, 0,
                                 zeros.data_ptr(), room.data_ptr())


def times(layer, m, n, k, picks, rounds=7):
    """Microseconds of cuBLAS and of picks by name, in turns; every result is compared with cuBLAS's."""
    x, out, ws = operands(m, n, k)
    runs, why = {"cublas": lambda w: F.linear(x, w)}, {}
    for name, pick in picks.items():
        try:
            runs[name] = launcher(layer, m, pick, x, out)
        except Exception as e:
            why[name] = str(e)[:200]
    with torch.no_grad():
        want = F.linear(x, ws[0]).float()
        for name, run in list(runs.items())[1:]:
            out.fill_(float("nan"))
            run(ws[0])
            off = float((out.float() - want).abs().max() / want.abs().max())
            if not off < 8e-3:
                print("WRONG", m, n, k, name, off, flush=True)
        graphs = {name: _verify._graph(run, ws) for name, run in runs.items()}
        found = {name: [] for name in graphs}
        for _ in range(rounds):
            for name, graph in graphs.items():
                found[name].append(_verify._time(graph) / _verify.LAUNCHES * 1e3)
    del graphs, ws
    held.clear()
    torch.cuda.empty_cache()
    return {name: statistics.median(t) for name, t in found.items()} | why


def layer_of(n, k, device):
    return L.Layer(L.Key(0, n, k, "bf16", "bf16", False, True), device)


def picks(seconds, top=30):
    """The model's first picks, and the best pick of each further tile."""
    end, rows, device = time.time() + seconds, [], L.Device(0)
    for m in (256, 512, 1000, 128, 2048):
        for n, k in LAYERS:
            if time.time() > end:
                return
            tiles, chosen = set(), {}
            for pick in device.own.rank(m, n, k, dtype="bf16", trans_b=True, top=400):
                tile = pick.block_m, pick.block_n, pick.split_k
                if len(chosen) < top and (len(chosen) < top // 2 or tile not in tiles):
                    tiles.add(tile)
                    chosen.setdefault(str(pick), pick)
            got = times(layer_of(n, k, device), m, n, k, chosen, 5)
            ours = {name: t for name, t in got.items() if name != "cublas" and not isinstance(t, str)}
            first = next(name for name in chosen if name in ours)
            best = min(ours, key=ours.get)
            rows.append(dict(m=m, n=n, k=k, cublas=got["cublas"], first=first, best=best, us=ours,
                             predicted={name: p.seconds * 1e6 for name, p in chosen.items()}))
            dump("picks", rows)
            print(f"{m}x{n}x{k} cublas {got['cublas']:.1f} first {ours[first]:.1f} {first} best {ours[best]:.1f} {best}", flush=True)


def invariant(seconds):
    """One order of sums for all M, beside cuBLAS and the pick without that."""
    end, rows, device = time.time() + seconds, [], L.Device(0)
    for n, k in KEPT:
        layer = layer_of(n, k, device)
        ordered = device.ordered(dataclasses.replace(layer.key, invariant=True))
        for m in (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096):
            if time.time() > end:
                return
            pick, free = (one.select(m, n, k, dtype="bf16", trans_b=True) for one in (ordered, device.own))
            rows.append(dict(m=m, n=n, k=k, pick=str(pick), free_pick=str(free),
                             **times(layer, m, n, k, {"invariant": pick, "free": free})))
            dump("invariant", rows)
    ratio = [r["cublas"] / r["invariant"] for r in rows]
    print(f"cuBLAS's time ÷ ours: {geomean(ratio):.4f}, worst {min(ratio):.3f}, of {len(ratio)}")


def product_of(n, k, kind):
    """Rows, their scales, and a product of them with weights: the same numbers in each process."""
    seeded = torch.Generator(device="cuda").manual_seed(n * k)
    x, w = (torch.randn(s, k, device="cuda", generator=seeded).to(BF16 if kind == "bf16" else FP8) for s in (4096, n))
    rows, columns = (torch.rand(s, device="cuda", generator=seeded) + 0.5 for s in ((4096, 1), (1, n)))
    if kind == "bf16":
        return x, rows, lambda x, rows: F.linear(x, w)
    return x, rows, lambda x, rows: torch._scaled_mm(x, w.t(), rows, columns, out_dtype=BF16, use_fast_accum=kind == "fast")


def differ(x, y):
    """How many rows have other bits."""
    return int((x.view(torch.int16) != y.view(torch.int16)).any(1).sum())


def bits(seconds, kinds=("bf16",)):
    """Rows of products of any M against those of the whole, eager and compiled, in two processes: PHASE=write, then read."""
    begin, total, different, done = time.time(), 0, 0, 0
    phase, folder = os.environ.get("PHASE", "write"), "/tmp/bits"
    os.makedirs(folder, exist_ok=True)
    og.enable_batch_invariant()
    work = [(n, k, kind) for n, k in KEPT for kind in kinds]
    layers = [L.registry.layer(L.Key(0, n, k, "bf16" if kind == "bf16" else "fp8", "bf16", trans_b=True, invariant=True,
                                     epilogue="" if kind == "bf16" else "scales", promote=kind == "promoted"))
              for n, k, kind in work]
    with concurrent.futures.ThreadPoolExecutor() as pool:  # one after the other would take a minute
        list(pool.map(lambda layer: layer.prepare(1, 4096), layers))
    refused = [span.why for layer in layers for span in layer.spans if span.why]
    print(f"{sum(len(layer.spans) for layer in layers)} bands compiled, {time.time() - begin:.0f} s, refused: {refused}",
          flush=True)
    for n, k, kind in work:
        if time.time() - begin > seconds:
            break
        x, rows, product = product_of(n, k, kind)
        whole, path, tried, bad = product(x, rows), f"{folder}/{n}-{k}-{kind}.pt", 0, 0
        if phase == "write":
            torch.save(whole[::64].cpu(), path)
        else:
            tried, bad = 64, differ(torch.load(path).cuda(), whole[::64])
        draw, compiled = random.Random(n + len(phase)), torch.compile(product, dynamic=True)
        for i in range(1000 // len(kinds)):
            m = int(2 ** draw.uniform(0, 12))
            first = draw.randrange(4096 - m + 1)
            index = torch.arange(first, first + m, device="cuda") if i % 2 else torch.randperm(4096, device="cuda")[:m]
            y = (compiled if i % 5 == 0 and m > 1 else product)(x[index], rows[index])
            tried, bad = tried + m, bad + differ(y, whole[index])
        torch._dynamo.reset()
        total, different, done = total + tried, different + bad, done + 1
        print(f"  {n}x{k} {kind}: {tried} rows, {bad} differ, {time.time() - begin:.0f} s", flush=True)
    print(f"bits, {phase}: {done} of {len(work)} products, {total} rows, {different} differ", flush=True)


def bits8(seconds):
    """The same in fp8, with promoted and fast sums."""
    bits(seconds, ("promoted", "fast"))


for one in sys.argv[1:] or ["picks=100", "invariant=60", "bits=60"]:
    name, _, seconds = one.partition("=")
    begin = time.time()
    globals()[name](float(seconds))
    print(f"{name}: {time.time() - begin:.0f} s", flush=True)
