"""Exact training on one H200: bits, speed, a step of two layers, and the contract tests of RL-Kernel.

    python3 run.py bits SEED | speed | trees | step | contract | summary        results go to $OUT

bits      random M, rows, micro-batches and ranks (simulated on one GPU) against one whole product, eager and compiled, 1,000
          draws of each layer. Two processes, with seeds of their own, have the same digests of the whole products.
speed     the products of Qwen3-8B's layers, forward and both gradients, beside cuBLAS, in one order and in trees: medians of
          CUDA graphs whose weights do not fit into the L2
trees     the model's first kernels of trees
step      a training step of two layers of Qwen3-8B, plain, with PyTorch's deterministic algorithms, and in one order"""

import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import random
import statistics
import sys
import time

import torch

import origami_gemm.torch as og
from origami_gemm import _layers, lib
from origami_gemm.torch import _ops
from origami_gemm.torch._exact import digest

OUT = pathlib.Path(os.environ.get("OUT", "."))
HERE = pathlib.Path(__file__).resolve().parent
START = time.time()
OPS = torch.ops.origami_gemm
SHAPES = [(6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288), (1536, 8960), (8960, 1536), (2048, 2048)]
ROWS, BLOCK = 4096, 256
QWEN = {"qkv": (6144, 4096), "o": (4096, 4096), "gate_up": (24576, 4096), "down": (4096, 12288)}
SIZES = (16, 64, 256, 1024, 2048, 4096, 8192)


def most(default):
    return float(os.environ.get("SECONDS_MOST", default))


def save(name, result):
    result["seconds"] = round(time.time() - START, 1)
    (OUT / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def leaves_of(k):
    """The most leaves of whole blocks."""
    return next(n for n in (8, 4, 2, 1) if k % (64 * n) == 0)


def half(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def over_ranks(a, w, leaves, ranks):
    """a · wᵀ of so many ranks that have a part of K each."""
    k = a.shape[1] // ranks
    parts = [OPS.ordered_mm(a[:, i * k:(i + 1) * k], w[:, i * k:(i + 1) * k].t(), leaves // ranks, torch.float32) for i in range(ranks)]
    return og.tree_sum(parts).bfloat16()


def split(blocks):
    """Micro-batches of a random number of blocks."""
    parts = []
    while blocks:
        parts.append(random.randint(1, min(blocks, 7)))
        blocks -= parts[-1]
    return parts


DRAWS, ANCHORS = 1000, 16


def few_kernels():
    """Sizes up to each of a few random ones, which it returns, have the kernel that the model takes for that one: all sizes have
    more kernels than a run can compile."""
    sizes = sorted({ROWS, *(int(2 ** random.uniform(0, 12)) for _ in range(ANCHORS - 1))})
    of_all = lib.Model.bands

    def octave(m, turned=False):
        return (m, m) if turned else next((low + 1, high) for low, high in zip([0, *sizes], sizes) if m <= high)

    def bands(model, m, *shape, **options):
        return [dataclasses.replace(one, m_low=m[0]) for one in of_all(model, (m[1], m[1]), *shape, **options)]

    _layers.octave, lib.Model.bands = octave, bands
    return sizes


class Shape:
    """The operands of a layer, and its kernels, which a pool compiles."""

    def __init__(self, n, k, sizes, pool):
        torch.manual_seed(n * 131 + k)
        self.n, self.k, self.leaves, self.back = n, k, leaves_of(k), leaves_of(n)
        self.x, self.w, self.dy = half(ROWS, k), half(n, k) / math.sqrt(k), half(ROWS, n)
        self.jobs = []
        for a, b, leaves in ((self.x, self.w.t(), self.leaves), (self.dy, self.w, self.back)):
            for ranks in (1, 2, 4, 8):
                if ranks <= leaves:
                    part = a.shape[1] // ranks
                    kind = torch.bfloat16 if ranks == 1 else torch.float32
                    self.ahead(pool, a[:, :part], b[:part], leaves // ranks, kind, sizes)
                    self.ahead(pool, a[:1, :part], b[:part], leaves // ranks, kind, [1])  # has dense rows
        for leaves in (1, 2, 4, 8):
            rows = slice(leaves * BLOCK)
            self.ahead(pool, self.dy[rows].t(), self.x[rows], leaves, torch.float32, [n])

    def ahead(self, pool, a, b, leaves, kind, sizes):
        key, _ = _ops.key_of(a, b, None, "", False, kind, False, True, False, False, leaves)
        for m in sizes:
            self.jobs.append(pool.submit(_layers.registry.layer(key).prepare, *_layers.octave(m, key.trans_a)))


def bits(seed):
    limit, rows = most(170), []
    random.seed(seed)
    sizes = few_kernels()
    _layers._compiler = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        shapes = [Shape(n, k, sizes, pool) for n, k in sorted(SHAPES, key=lambda s: s[0] * s[1])]
        for shape in shapes:
            rows.append(of_shape(shape, seed, sizes, START + limit))
            save(f"bits-{seed}", {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows})
        pool.shutdown(cancel_futures=True)


def of_shape(shape, seed, sizes, until):
    """Draws of one layer. What is compared stays on the GPU, which is asked every 50 draws."""
    n, k, leaves, back, x, w, dy = (getattr(shape, name) for name in ("n", "k", "leaves", "back", "x", "w", "dy"))
    waited = time.time()
    for job in shape.jobs:
        job.result()
    begin = time.time()
    layer = lambda x, w, grad=None: og.linear(x, w, invariant=True, leaves=(leaves, back), tokens_per_block=BLOCK, grad=grad)
    compiled = torch.compile(layer, dynamic=True)
    a, v = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = layer(a, v)
    y.backward(dy)
    y, dx, dw = y.detach(), a.grad, v.grad
    row = {"n": n, "k": k, "leaves": [leaves, back], "process": seed, "draws": 0, "errors": [], "kernels_up_to": sizes,
           "waited": round(begin - waited, 1), "digests": [digest(t) for t in (y, dx, dw)]}
    reference = x[:256].float() @ w.float().t()
    row["wrong"] = not torch.allclose(y[:256].float(), reference, atol=3e-2, rtol=2e-2)
    row["wrong_dw"] = not torch.allclose(dw.float(), dy.float().t() @ x.float(), atol=1.0, rtol=2e-2)
    row["wrong_dx"] = not torch.allclose(dx[:256].float(), dy[:256].float() @ w.float(), atol=3e-1, rtol=2e-2)
    del a, v, reference
    names, compared, different = {}, [0] * 64, torch.zeros(64, dtype=torch.int64, device="cuda")

    def count(what, got, wanted):
        """Adds to the elements that differ, as bits."""
        at = names.setdefault(what, len(names))
        compared[at] += 1
        different[at] += (got.detach().view(torch.int16) != wanted.view(torch.int16)).sum()

    def draw(number):
        m = min(ROWS, int(2 ** random.uniform(0, 12.01)))
        at = random.randint(0, ROWS - m)
        mine, parts = slice(at, at + m), split(ROWS // BLOCK)
        run, kind = random.choice([(layer, "eager"), (compiled, "compiled")])
        part = x[mine].detach().requires_grad_()
        got = run(part, w)
        got.backward(dy[mine])
        count(f"forward {kind}", got, y[mine])
        count(f"input's gradient {kind}", part.grad, dx[mine])
        first, v = 0, w.detach().requires_grad_()
        for blocks in parts:
            rows_of = slice(first, first + blocks * BLOCK)
            if number % 4 == 0:
                run(x[rows_of], v, grad).backward(dy[rows_of])
            else:
                OPS.ordered_add_grad(grad.sums, grad.rows, dy[rows_of], x[rows_of], BLOCK)
            first += blocks * BLOCK
        count("weight's gradient in micro-batches" + (f" {kind}" if number % 4 == 0 else ""), grad.finish(torch.bfloat16), dw)
        for what, a, b, of, whole in (("forward", x, w, leaves, y), ("input's gradient", dy, w.t(), back, dx)):
            ranks = random.choice([t for t in (2, 4, 8) if t <= of])
            count(f"{what} over {ranks} ranks", over_ranks(a[mine], b, of, ranks), whole[mine])
        if number % 8 == 1:
            ranks = random.choice((2, 4))
            sums = [OPS.ordered_weight_grad(g, z, BLOCK, torch.float32) for g, z in zip(dy.chunk(ranks), x.chunk(ranks))]
            count(f"weight's gradient over {ranks} ranks", og.tree_sum(sums).bfloat16(), dw)

    grad = og.WeightGrad(w, BLOCK, batch=ROWS)
    while row["draws"] < DRAWS and (time.time() < until or row["draws"] < 50) and len(row["errors"]) < 4:
        try:
            draw(row["draws"])
            row["draws"] += 1
            if row["draws"] % 50 == 0:
                torch.cuda.synchronize()
        except Exception as e:
            row["errors"].append(f"draw {row['draws']}: {type(e).__name__}: {e}"[:400])
            grad.rows[0] = 0
    row["compared"] = {what: compared[at] for what, at in names.items()}
    row["different"] = {what: int(different[at]) for what, at in names.items()}
    row["seconds"] = round(time.time() - begin, 1)
    torch._dynamo.reset()
    print(f"process {seed}:", n, k, "waited", row["waited"], "draws", row["draws"], "different", sum(row["different"].values()),
          row["different"] if any(row["different"].values()) else "", row["wrong"], row["wrong_dx"], row["wrong_dw"], row["errors"][:1],
          f"{row['seconds']} s, at {time.time() - START:.0f} s", flush=True)
    return row


def graph(launches):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for launch in launches:
            launch()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for launch in launches:
            launch()
    return g


def timed(ways, count):
    """Microseconds of a launch of each way, which take turns."""
    graphs, times = {}, {who: [] for who in ways}
    for who, launches in ways.items():
        try:
            graphs[who] = graph(launches)
        except Exception as e:
            print(f"{who}: {type(e).__name__}: {e}"[:300], flush=True)
            del times[who]
    for turn in range(9):
        for who, g in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            g.replay()
            end.record()
            end.synchronize()
            if turn > 1:
                times[who].append(begin.elapsed_time(end) * 1e3 / count)
    return {who: statistics.median(of) for who, of in times.items()}


def products(n, k, m, copies):
    """The three products of a layer, each as ways of which each has a launch for each copy of the operands."""
    xs, ws, gs = ([half(*shape) for _ in range(copies)] for shape in ((m, k), (n, k), (m, n)))
    ordered = lambda a, b, leaves: lambda: OPS.ordered_mm(a, b, leaves)
    plain = lambda a, b: lambda: torch.mm(a, b)
    weight = lambda g, x, tokens: lambda: OPS.ordered_weight_grad(g, x, tokens)
    triples = list(zip(xs, ws, gs))
    for what, pairs in (("forward", [(x, w.t()) for x, w, _ in triples]), ("input", [(g, w) for _, w, g in triples])):
        yield what, {"cublas": [plain(a, b) for a, b in pairs], "one order": [ordered(a, b, 0) for a, b in pairs],
                     **{f"{leaves} leaves": [ordered(a, b, leaves) for a, b in pairs] for leaves in (2, 4, 8)}}
    ways = {"cublas": [plain(g.t(), x) for x, _, g in triples], "one order": [weight(g, x, 0) for x, _, g in triples]}
    for tokens in (1024, 2048, 4096):
        if m > tokens:
            ways[f"blocks of {tokens}"] = [weight(g, x, tokens) for x, _, g in triples]
    yield "weight", ways


def kernels():
    """Which kernels the layers have, by layer."""
    return {row.layer: row.kernel for row in og.explain() if row.kernel and row.calls}


def speed():
    rows, limit = [], most(110)
    for m in sorted(SIZES, key=lambda m: (m not in (16, 1024, 8192), m)):
        for name, (n, k) in QWEN.items():
            if time.time() - START > limit:
                print("out of time before", name, m)
                continue
            copies = max(2, min(16, math.ceil(200e6 / (2 * (n * k + m * (n + k))))))
            for what, ways in products(n, k, m, copies):
                us = timed(ways, copies)
                rows.append({"layer": name, "n": n, "k": k, "m": m, "product": what, "us": {w: round(t, 2) for w, t in us.items()}})
                print(name, m, what, {w: f"{t:.1f} ({us['cublas'] / t:.3f})" for w, t in us.items()}, flush=True)
            save("speed", {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows, "kernels": kernels()})
            torch.cuda.empty_cache()


def named(pick):
    return f"{pick.block_m}x{pick.block_n}x{pick.block_k} w{pick.num_warps} s{pick.num_stages} split={pick.split_k} {pick.axes}"


def trees():
    """How fast the model's first kernels of a tree are beside each other."""
    picks, limit = [], most(120)
    for n, k, m, leaves in ((4096, 4096, 4096, 2), (4096, 4096, 4096, 8), (6144, 4096, 4096, 2), (4096, 12288, 4096, 8), (6144, 4096, 1024, 8),
                            (4096, 12288, 8192, 2), (4096, 12288, 4096, 4)):
        if time.time() - START > limit:
            break
        pairs = [(half(m, k), half(n, k).t()) for _ in range(2)]
        key, _ = _ops.key_of(*pairs[0], None, "", False, torch.bfloat16, False, True, False, False, leaves)
        layer = _layers.registry.layer(key)
        OPS.ordered_mm(*pairs[0], leaves)
        ways = {}
        for pick in layer._model()._ranked(layer.key.problem(m), 200):
            if len(ways) < 12 and (pick.num_stages, pick.axes) not in {(p.num_stages, p.axes) for p, _ in ways.values()
                                                                     if (p.block_m, p.block_n) == (pick.block_m, pick.block_n)}:
                ways[named(pick)] = pick, pick.seconds
        us = {}
        for way, (pick, seconds) in ways.items():
            _ops._calls.clear()
            layer.plans[m] = layer._load(m, pick)
            us[way] = [round(seconds * 1e6, 1), round(timed({"": [lambda a=a, b=b: OPS.ordered_mm(a, b, leaves) for a, b in pairs]}, 2)[""], 1)]
        picks.append({"n": n, "k": k, "m": m, "leaves": leaves, "predicted and measured us": us})
        print(picks[-1], flush=True)
        save("trees", {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "picks": picks})
        torch.cuda.empty_cache()


class Layer(torch.nn.Module):
    """A decoder layer of Qwen3-8B without biases."""

    def __init__(self, by_sequence, hidden=4096, heads=32, groups=8, head=128, wide=12288):
        super().__init__()
        self.by_sequence = by_sequence
        make = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.heads, self.groups, self.head = heads, groups, head
        self.qkv, self.o = make(hidden, (heads + 2 * groups) * head), make(heads * head, hidden)
        self.gate_up, self.down = make(hidden, 2 * wide), make(wide, hidden)
        self.before, self.behind = torch.nn.RMSNorm(hidden), torch.nn.RMSNorm(hidden)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.before(x)).split([self.heads * self.head, self.groups * self.head, self.groups * self.head], -1)
        q, k, v = (z.view(b, t, -1, self.head).transpose(1, 2) for z in (q, k, v))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            y = torch.cat([torch.nn.functional.scaled_dot_product_attention(*one, is_causal=True, enable_gqa=True)
                           for one in (zip(*(z.split(1) for z in (q, k, v))) if self.by_sequence else [(q, k, v)])])
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        gate, up = self.gate_up(self.behind(x)).chunk(2, -1)
        return x + self.down(torch.nn.functional.silu(gate) * up)


def step():
    """Times of a training step, and whether two runs, in one micro-batch and in four, agree. The gradient of flash attention has
    an order that depends on the sequences of a launch: so the last two ways have one launch for each."""
    result, sequence, batch = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "ways": {}}, 2048, 4
    torch.manual_seed(1)
    x, target = half(batch, sequence, 4096), half(batch, sequence, 4096)
    for way, deterministic, leaves, by_sequence in (
            ("plain", False, None, False), ("deterministic", True, None, False), ("one order, one attention", True, 0, False),
            ("one order", True, 0, True), ("tree", True, (2, 2), True)):
        for compiled in (False, True):
            name = f"{way}{' compiled' if compiled else ''}"
            try:
                torch.use_deterministic_algorithms(deterministic)
                torch.manual_seed(2)
                model = torch.nn.Sequential(Layer(by_sequence), Layer(by_sequence)).to("cuda", torch.bfloat16)
                training = None if leaves is None else og.exact(model, sequence, sequence, sequence * batch, leaves)
                optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
                run = torch.compile(model) if compiled else model

                def one(micro):
                    for part, wanted in zip(x.split(micro), target.split(micro)):
                        ((run(part).float() - wanted.float()).square().sum() / target.numel()).backward()
                    if training:
                        training.finish()

                digests = []
                for micro in (batch, 1, batch):
                    one(micro)
                    digests.append({of: digest(p.grad) for of, p in model.named_parameters()})
                    optimizer.zero_grad()
                times = []
                for i in range(8):
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    one(batch)
                    optimizer.step()
                    optimizer.zero_grad()
                    end.record()
                    end.synchronize()
                    times.append(begin.elapsed_time(end))
                others = lambda run: [of for of, one in digests[0].items() if one != digests[run][of]]
                result["ways"][name] = {"ms": statistics.median(times[2:]), "all": times, "again_other": others(2),
                                        "micro_batches_other": others(1), "digests": digests[0]}
                del model, training, optimizer
            except Exception as e:
                result["ways"][name] = {"error": f"{type(e).__name__}: {e}"[:600]}
            torch._dynamo.reset()
            torch.cuda.empty_cache()
            print(name, {of: v for of, v in result["ways"][name].items() if of != "digests"}, flush=True)
            save("step", result)
    torch.use_deterministic_algorithms(False)


def contract():
    """RL-Kernel's own tests of its deterministic GEMM, with ours in its place."""
    import types

    from origami_gemm.torch import rl_kernel
    folder = HERE / "rl-kernel"
    for path in sorted(folder.glob("*.whl")):
        sys.path.insert(0, str(path))
    import pytest
    sys.modules["triton"] = None  # its other backend is not what is tested
    native = types.SimpleNamespace(**{name: getattr(rl_kernel, name) for name in dir(rl_kernel) if name.startswith("det_gemm")})
    parts = {"rl_engine.kernels.ops.base": {"_C": native, "_EXT_AVAILABLE": True},
             "rl_engine.kernels.ops.cuda.matmul": {"deterministic_gemm": rl_kernel.deterministic_gemm, "DetGemmOp": rl_kernel.DetGemmOp},
             "rl_engine.backends.cuda.gemm": {"deterministic_gemm": rl_kernel.deterministic_gemm, "DetGemmOp": rl_kernel.DetGemmOp},
             "rl_engine.kernels.gtest.tolerance": {"load_contract": lambda: json.loads((folder / "tolerance_contract.json").read_text())}}
    for name, values in parts.items():
        path = name.split(".")
        for i in range(1, len(path) + 1):
            module = sys.modules.setdefault(".".join(path[:i]), types.ModuleType(".".join(path[:i])))
            module.__path__ = []
        vars(module).update(values)

    class Results:
        def __init__(self):
            self.rows = {}

        def pytest_runtest_logreport(self, report):
            if report.when == "call" or report.outcome != "passed":
                self.rows[report.nodeid] = [report.outcome, str(report.longrepr)[-500:] if report.failed else ""]

    results = Results()
    code = pytest.main(["-q", "-rf", "-p", "no:cacheprovider", *map(str, sorted(folder.glob("test_*.py")))], plugins=[results])
    count = {kind: sum(r[0] == kind for r in results.rows.values()) for kind in ("passed", "failed", "skipped")}
    print(count, code)
    save("contract", {"count": count, "tests": results.rows})


def geomean(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def summary():
    read = lambda name: json.loads((OUT / f"{name}.json").read_text()) if (OUT / f"{name}.json").exists() else None
    one, two = read("bits-1"), read("bits-2")
    for result in filter(None, (one, two)):
        rows = result["rows"]
        print("bits:", sum(r["draws"] for r in rows), "draws of", len(rows), "shapes, different:",
              {w: sum(r["different"].get(w, 0) for r in rows) for r in rows for w in r["different"]}, "errors:", sum(len(r["errors"]) for r in rows),
              "wrong:", [(r["n"], r["k"]) for r in rows if r["wrong"] or r["wrong_dx"] or r["wrong_dw"]])
    if one and two:
        print("both processes agree:", all(a["digests"] == b["digests"] for a, b in zip(one["rows"], two["rows"])))
    rows = (read("speed") or {"rows": []})["rows"]
    for what in ("forward", "input", "weight"):
        of = [r for r in rows if r["product"] == what]
        for who in dict.fromkeys(w for r in of for w in r["us"] if w != "cublas"):
            ratios = [(r["us"]["cublas"] / r["us"][who], r["layer"], r["m"]) for r in of if who in r["us"]]
            print(f"{what}, {who}: {geomean(r[0] for r in ratios):.3f} of cuBLAS, worst {min(ratios)}, {len(ratios)} sizes")
            prices = [r["us"][who] / r["us"]["one order"] for r in of if who in r["us"] and "one order" in r["us"]]
            if prices and who != "one order":
                print(f"    beside one order: {geomean(prices):.3f} of the time, at most {max(prices):.3f}")
    for name, way in (read("step") or {"ways": {}})["ways"].items():
        print("step,", name, {k: v for k, v in way.items() if k not in ("all", "digests")})
    print("contract:", (read("contract") or {}).get("count"))


if __name__ == "__main__":
    part = sys.argv[1]
    if part not in ("contract", "bits"):
        _layers.octave = lambda m, turned=False: (m, m)  # kernels of the sizes that are measured, and no others
    bits(int(sys.argv[2])) if part == "bits" else globals()[part](*sys.argv[2:])
