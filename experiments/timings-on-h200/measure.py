"""Times the same kernels of cuBLAS, triton, wgmma and mma under different stopwatches, on one GPU.

    python3 measure.py FOLDER OUT.jsonl [--seconds 480] [--only TYPE]

FOLDER is prepare.py's. Needs torch and triton. OUT has the environment, and then a line per product.

The stopwatches, in seconds per kernel:

  events     events around one launch, after 256 MiB were written: an L2 full of dirty lines, as triton.testing.do_bench
  warm       a CUDA graph of the same launch again and again, with the same operands
  layers     a CUDA graph of six layers with weights of their own, replayed; layers5 the same of five
  model      a CUDA graph of so many layers that their weights are at least four times the L2: weights come from DRAM. A is
             one buffer and C one of two, as the activations of a running model
  behind     model, but before each product a small kernel writes A, and its own time is taken off
  sustained  model, replayed for seconds at the power limit; the last quarter counts
  host       the CPU's clock around one call, launch and synchronising included, cold weights

Operands are standard normal (B divided by the root of K). Contenders take turns, so the clock's wander meets all. Each
figure is the median of the rounds. Every kernel's result is compared with float64 first.
"""

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

BEGIN = time.perf_counter()
FLUSH_BYTES = 256 << 20
L2_BYTES = 60 << 20


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bn, stride_cm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """C = A B^T, the loop of Triton's matrix multiplication tutorial with K masked, A and B contiguous along K."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    first = program // (GROUP_M * tiles_n) * GROUP_M
    height = min(tiles_m - first, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    tile_m, tile_n = first + within % height, within // height
    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    depth = tl.arange(0, BLOCK_K)
    at_a = a_ptr + rows[:, None].to(tl.int64) * stride_am + depth[None, :]
    at_b = b_ptr + depth[:, None] + columns[None, :].to(tl.int64) * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        x = tl.load(at_a, mask=depth[None, :] < left, other=0.0)
        y = tl.load(at_b, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        at_a += BLOCK_K
        at_b += BLOCK_K
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    at_c = c_ptr + rows[:, None].to(tl.int64) * stride_cm + columns[None, :]
    tl.store(at_c, total.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def contenders(folder, row):
    """By family, a function of (a, b, c) that enqueues the product on the current stream."""
    m, n, k = row["m"], row["n"], row["k"]
    if row["dtype"] == "fp8":
        one = torch.ones((), device="cuda")
        calls = {"cublas": lambda a, b, c: torch._scaled_mm(a, b.t(), one, one, out_dtype=c.dtype, use_fast_accum=True,
                                                            out=c)}
    else:
        calls = {"cublas": lambda a, b, c: torch.mm(a, b.t(), out=c)}
    c0 = row["families"]["triton"]["config"]
    grid = (triton.cdiv(m, c0["block_m"]) * triton.cdiv(n, c0["block_n"]),)
    calls["triton"] = lambda a, b, c: product[grid](
        a, b, c, m, n, k, k, k, n, c0["block_m"], c0["block_n"], c0["block_k"], c0["group_m"],
        num_warps=c0["num_warps"], num_stages=c0["num_stages"])
    for family in ("wgmma", "mma"):
        path = folder / (row["families"][family]["module"] + ".py")
        spec = importlib.util.spec_from_file_location(path.parent.name.replace("-", "_"), path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = module.Kernel()
        calls[family] = lambda a, b, c, kernel=kernel: kernel(a, b, c, stream=torch.cuda.current_stream().cuda_stream)
    return calls


class Clock:
    """Clock, power and temperature by NVML."""

    def __init__(self):
        import pynvml
        pynvml.nvmlInit()
        self.nvml, self.device = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)

    def read(self):
        n, d = self.nvml, self.device
        return {"sm_mhz": n.nvmlDeviceGetClockInfo(d, n.NVML_CLOCK_SM), "watts": n.nvmlDeviceGetPowerUsage(d) / 1e3,
                "celsius": n.nvmlDeviceGetTemperature(d, n.NVML_TEMPERATURE_GPU)}


def captured(launch, count):
    """A CUDA graph of `count` launches, launch(i) each."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(min(count, 3)):
            launch(i)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            launch(i)
    return graph


def span(do, repeats):
    """Seconds of one of `repeats` runs, by events around all."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        do()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / repeats


def measure(folder, row, flush, clock, rounds=5):
    m, n, k = row["m"], row["n"], row["k"]
    dtype, out = {"bf16": (torch.bfloat16,) * 2, "fp16": (torch.float16,) * 2,
                  "fp8": (torch.float8_e4m3fn, torch.float16)}[row["dtype"]]
    size = dtype.itemsize * n * k
    layers = max(8, min(512, -(-4 * L2_BYTES // size)))
    torch.manual_seed(m + 3 * n + 7 * k)
    a = torch.randn(m, k, device="cuda").to(dtype)
    weights = torch.empty(layers, n, k, device="cuda", dtype=dtype)
    for weight in weights:  # fp8 has too few small numbers to divide
        weight.copy_(torch.randn(n, k, device="cuda") / (1 if dtype.itemsize == 1 else k ** 0.5))
    outs = [torch.empty(m, n, device="cuda", dtype=out) for _ in range(2)]
    calls = contenders(folder, row)
    made = {key: row[key] for key in ("m", "n", "k", "dtype")} | {"layers": layers, "seconds": {}, "error": {}}
    want = a.double() @ weights[0].double().t() if m * n * k < 1 << 34 else None
    for name, call in list(calls.items()):
        outs[0].fill_(float("nan"))
        try:
            call(a, weights[0], outs[0])
            torch.cuda.synchronize()
        except Exception as e:  # the others can still be measured
            made["error"][name] = str(e)[:200]
            del calls[name]
            continue
        reference = want if want is not None else torch.mm(a.half(), weights[0].half().t()).double()
        error = ((outs[0].double() - reference).norm() / reference.norm()).item()
        made["error"][name] = error
        if not error < 0.01:
            del calls[name]
    del want, reference

    source = a.clone()
    writes = captured(lambda i: a.copy_(source), layers)
    graphs = {}
    for name, call in calls.items():
        graphs[name] = {
            "model": (captured(lambda i: call(a, weights[i], outs[i % 2]), layers), layers),
            "warm": (captured(lambda i: call(a, weights[0], outs[0]), 12), 12),
            "layers": (captured(lambda i: call(a, weights[i], outs[i % 2]), 6), 6),
            "layers5": (captured(lambda i: call(a, weights[i], outs[i % 2]), 5), 5),
            "behind": (captured(lambda i: (a.copy_(source), call(a, weights[i], outs[i % 2])), layers), layers),
        }
    samples = {name: {} for name in calls}

    def note(name, timing, seconds):
        samples[name].setdefault(timing, []).append(seconds)

    for _ in range(rounds):
        write = span(writes.replay, 1) / layers
        for name, call in calls.items():
            for timing, (graph, count) in graphs[name].items():
                graph.replay()
                each = span(graph.replay, max(1, min(20, 60 // count))) / count
                note(name, timing, each - write if timing == "behind" else each)
            for i in range(3):
                torch.cuda._sleep(1 << 20)  # the host gets ahead, however long a launch takes it
                flush.zero_()
                note(name, "events", span(lambda: call(a, weights[i % layers], outs[0]), 1))
            torch.cuda.synchronize()
            begin = time.perf_counter()
            call(a, weights[-1], outs[0])
            torch.cuda.synchronize()
            note(name, "host", time.perf_counter() - begin)
    made["clock"] = clock.read()
    for name, timings in samples.items():
        made["seconds"][name] = {t: statistics.median(s) for t, s in timings.items()}
        made.setdefault("spread", {})[name] = {
            t: (statistics.quantiles(s, n=4)[2] - statistics.quantiles(s, n=4)[0]) / statistics.median(s)
            for t, s in timings.items()}
    return made, graphs


def rounded(value):
    """Numbers with five digits."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def sustained(made, graphs, clock, seconds=2.0):
    """`model` again and again: the time per kernel in the last quarter, and the clock there."""
    for name, timings in graphs.items():
        graph, count = timings["model"]
        each = made["seconds"][name]["model"] * count
        rounds = max(4, int(seconds / each))
        for _ in range(3 * rounds // 4):
            graph.replay()
        made["seconds"][name]["sustained"] = span(graph.replay, rounds // 4) / count
        made.setdefault("sustained_clock", {})[name] = clock.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--only", help="type of A and B")
    o = parser.parse_args()
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    plan = [r for r in json.loads((o.folder / "plan.json").read_text()) if o.only in (None, r["dtype"])]
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    clock = Clock()
    properties = torch.cuda.get_device_properties(0)
    result = {"device": properties.name, "torch": torch.__version__, "triton": triton.__version__,
              "cuda": torch.version.cuda, "driver": clock.nvml.nvmlSystemGetDriverVersion(),
              "l2_bytes": properties.L2_cache_size, "flush_bytes": FLUSH_BYTES}
    o.out.write_text(json.dumps(result) + "\n")
    heavy = 0
    for number, row in enumerate(plan):
        if time.perf_counter() - BEGIN > o.seconds:
            print("left:", len(plan) - number, "sizes", file=sys.stderr)
            break
        torch.cuda.empty_cache()
        try:
            made, graphs = measure(o.folder, row, flush, clock)
            if 2 * row["m"] * row["n"] * row["k"] > 3e10 and heavy < 12:  # long enough to reach the power limit
                heavy += 1
                sustained(made, graphs, clock)
            del graphs
        except torch.OutOfMemoryError as e:
            made = {key: row[key] for key in ("m", "n", "k", "dtype")} | {"error": {"all": str(e)[:200]}, "seconds": {}}
        made["predicted"] = {name: family["seconds"] for name, family in row["families"].items()}
        with o.out.open("a") as file:
            print(json.dumps(rounded(made)), file=file)
        print(made["m"], made["n"], made["k"], made["dtype"],
              {f: {t: round(s * 1e6, 2) for t, s in x.items()} for f, x in made["seconds"].items()}, flush=True)


if __name__ == "__main__":
    main()
