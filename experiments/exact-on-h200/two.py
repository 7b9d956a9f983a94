"""The tree over two GPUs: bits, times beside NCCL's all-reduce behind cuBLAS, and training at one and at two ranks.

    python3 two.py        on a host with two GPUs (TWO_BACKEND=gloo TWO_DEVICE=cpu tries the program); results go to $OUT

Two ranks have a part each of a row-parallel layer (K) and of a column-parallel layer (N). Rank 0 computes the same on one
GPU, and compares every element."""

import json
import math
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import origami_gemm.torch as og
from origami_gemm import _layers

OUT = pathlib.Path(os.environ.get("OUT", "."))
SHAPES = [(6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288), (1536, 8960), (8960, 1536), (2048, 2048)]
SIZES, DRAWS, WORLD = (1, 16, 100, 512, 2048, 4096), 20, 2
DEVICE = os.environ.get("TWO_DEVICE", "cuda")
STEPS, HIDDEN, HEADS, GROUPS, HEAD, WIDE, SEQUENCE = 20, 1024, 16, 8, 64, 3072, 512
START = time.time()
if DEVICE == "cpu":
    SHAPES, SIZES, DRAWS, STEPS, HIDDEN, HEADS, WIDE, SEQUENCE = [(128, 128)], (5, 64), 2, 3, 256, 8, 512, 64
    GROUPS, HEAD = 4, 32


def save(name, result):
    result |= {"seconds": round(time.time() - START, 1), "torch": torch.__version__,
               "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"}
    (OUT / f"two-{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def leaves_of(k):
    return next(n for n in (8, 4, 2, 1) if k % (64 * n) == 0)


def half(seed, *shape):
    return torch.randn(shape, generator=torch.Generator(DEVICE).manual_seed(seed), device=DEVICE).bfloat16()


def gathered(x, axis):
    parts = [torch.empty_like(x) for _ in range(WORLD)]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts, axis)


def part(size, r):
    return slice(r * size // WORLD, (r + 1) * size // WORLD)


def bits(r):
    rows = []
    for n, k in SHAPES:
        leaves = leaves_of(k), leaves_of(n)
        w = half(n + k, n, k) / math.sqrt(k)
        for m in SIZES:
            row = {"n": n, "k": k, "m": m, "draws": 0, "different": 0, "errors": []}
            for draw in range(DRAWS):
                x, dy = half(draw, m, k), half(draw + 1000, m, n)
                try:
                    got = []
                    for rows_of in (True, False):  # of the weight, or columns of it
                        a = (x[:, part(k, r)] if rows_of else x).clone().requires_grad_()
                        v = (w[:, part(k, r)] if rows_of else w[part(n, r)]).clone().requires_grad_()
                        y = og.parallel_linear(a, v, rows=rows_of, leaves=leaves, tokens_per_block=256)
                        y.backward(dy if rows_of else dy[:, part(n, r)])
                        got += [y.detach() if rows_of else gathered(y.detach(), 1), gathered(a.grad, 1) if rows_of else a.grad,
                                gathered(v.grad, 1 if rows_of else 0)]
                    if r == 0:
                        a, v = x.clone().requires_grad_(), w.clone().requires_grad_()
                        y = og.linear(a, v, invariant=True, leaves=leaves, tokens_per_block=256)
                        y.backward(dy)
                        row["different"] += sum((one != other).sum().item() for one, other in zip(got, 2 * [y.detach(), a.grad, v.grad]))
                except Exception as e:
                    row["errors"].append(f"rank {r}: {type(e).__name__}: {e}"[:300])
                    break
                row["draws"] += 1
            rows.append(row)
            stop = torch.tensor([float(bool(row["errors"]))], device=DEVICE)
            dist.all_reduce(stop)
            if r == 0:
                print("bits", row, flush=True)
                save("bits", {"rows": rows})
            if stop.item():
                return


def timed(run):
    """Milliseconds of a call in a loop, of the slowest rank."""
    for _ in range(3):
        run()
    times = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        torch.cuda.synchronize()
        begin.record()
        for _ in range(10):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    slowest = torch.tensor(times, device=DEVICE)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return statistics.median(slowest.tolist())


def graphed(run):
    """A replay of a graph of the call: the host's part is not in the time."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        run()
    return graph.replay


def speed(r):
    rows = []
    for n, k in SHAPES:
        w = half(1, n, k // WORLD) / math.sqrt(k)
        for m in (16, 256, 1024, 4096, 8192):
            x, leaves = half(2, m, k // WORLD), leaves_of(k)

            def library():
                y = torch.mm(x, w.t())
                dist.all_reduce(y)
                return y

            tree = lambda: og.parallel_linear(x, w, rows=True, leaves=leaves)
            sums = torch.ops.origami_gemm.ordered_mm(x, w.t(), leaves // WORLD, torch.float32)
            row = {"n": n, "k": k, "m": m, "us": {}}
            ways = {"cuBLAS and NCCL": library, "tree": tree, "cuBLAS alone": lambda: torch.mm(x, w.t()),
                    "our product alone": lambda: torch.ops.origami_gemm.ordered_mm(x, w.t(), leaves // WORLD, torch.float32),
                    "tree_all_reduce alone": lambda: og.tree_all_reduce(sums, None, torch.bfloat16),
                    "NCCL alone": lambda y=sums.bfloat16(): dist.all_reduce(y)}
            with torch.no_grad():
                for who, run in ways.items():
                    try:
                        row["us"][who] = timed(graphed(run)) * 1e3
                    except Exception as e:
                        row["us"][who], row["error"] = None, f"{who}: {e}"[:200]
            rows.append(row)
            if r == 0:
                print("speed", row, flush=True)
                save("speed", {"rows": rows})


class Layer(torch.nn.Module):
    """A decoder layer whose heads and columns are spread over the ranks, or that has all of them."""

    def __init__(self, seed, ranks, r):
        super().__init__()
        group = HEADS // GROUPS + 2  # the columns of a group of heads: queries, a key, a value
        make = lambda i, o, s: half(seed * 10 + s, o, i) / math.sqrt(i)
        mine = lambda w, axis: torch.nn.Parameter((w.chunk(ranks, axis)[r] if ranks > 1 else w).clone())
        self.qkv = mine(make(HIDDEN, GROUPS * group * HEAD, 1), 0)
        self.o = mine(make(HEADS * HEAD, HIDDEN, 2), 1)
        self.gate, self.up = mine(make(HIDDEN, WIDE, 3), 0), mine(make(HIDDEN, WIDE, 4), 0)
        self.down = mine(make(WIDE, HIDDEN, 5), 1)
        self.ranks = ranks

    def product(self, x, w, rows):
        size = w.shape[0] * (1 if rows else self.ranks), w.shape[1] * (self.ranks if rows else 1)
        leaves = leaves_of(size[1]), leaves_of(size[0])
        if self.ranks == 1:
            return og.linear(x, w, invariant=True, leaves=leaves, tokens_per_block=128)
        return og.parallel_linear(x, w, rows=rows, leaves=leaves, tokens_per_block=128)

    def forward(self, x):
        norm = lambda z: torch.nn.functional.rms_norm(z.float(), (HIDDEN,)).bfloat16()
        group, heads = HEADS // GROUPS + 2, []
        for one in self.product(norm(x), self.qkv, False).split(group * HEAD, 1):  # the same kernels whatever the ranks
            q, k, v = one.split([(group - 2) * HEAD, HEAD, HEAD], 1)
            q = q.reshape(-1, group - 2, HEAD).transpose(0, 1)
            k, v = (z.reshape(-1, 1, HEAD).transpose(0, 1).expand(group - 2, -1, -1) for z in (k, v))
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
                y = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
            heads.append(y.transpose(0, 1).reshape(-1, (group - 2) * HEAD))
        x = x + self.product(torch.cat(heads, 1), self.o, True)
        z = norm(x)
        return x + self.product(torch.nn.functional.silu(self.product(z, self.gate, False)) * self.product(z, self.up, False), self.down, True)


def losses(ranks, r):
    torch.use_deterministic_algorithms(True)
    layers = [Layer(s, ranks, r) for s in (1, 2)]
    optimizer = torch.optim.AdamW([p for one in layers for p in one.parameters()], lr=1e-3, foreach=False)
    found = []
    for step in range(STEPS):
        x, target = half(step, SEQUENCE, HIDDEN), half(step + 500, SEQUENCE, HIDDEN)
        for one in layers:
            x = one(x)
        loss = (x.float() - target.float()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item().hex())
    return found


def train(r):
    try:
        two = losses(WORLD, r)
        one = losses(1, 0) if r == 0 else None
        error = None
    except Exception as e:
        one = two = None
        error = f"rank {r}: {type(e).__name__}: {e}"[:400]
        print(error, flush=True)
    if r == 0:
        save("train", {"equal": one is not None and one == two, "one": one, "two": two, "error": error})
        print("train", one == two, one and [float.fromhex(v) for v in (one[0], one[-1])], error, flush=True)
    dist.barrier()


def rank(r, names):
    _layers.octave = lambda m, turned=False: (m, m)  # kernels of the sizes that are measured, and no others
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531", "NCCL_NVLS_ENABLE": "0"}
    if DEVICE == "cuda":
        torch.cuda.set_device(r)
    else:
        from tests import test_exact
        test_exact.kernels().start()
    dist.init_process_group(os.environ.get("TWO_BACKEND", "nccl"), rank=r, world_size=WORLD)
    for name in names:
        globals()[name](r)
        if r == 0:
            print(name, f"{time.time() - START:.0f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[1:] or ["train", "bits", "speed"],), nprocs=WORLD)
