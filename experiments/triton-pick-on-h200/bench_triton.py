"""What origami_gemm.triton costs per call, and what it picks, beside triton.autotune on the same kernel. Needs a GPU, torch
and triton.

    python3 bench_triton.py run RESULT.json [--shapes N] [--cold N]
    python3 bench_triton.py table RESULT.json

`run` measures and checks; `table` prints the result as Markdown.

The kernel is examples/matmul.py's: fp16 in, fp32 accumulation, row-major, K masked. The list of triton.autotune is that
of Triton's matrix multiplication tutorial, 16 configurations. Operands are standard normal; every result is compared
with torch.matmul in fp32. Kernel times are medians by device events of runs with a cold L2 (256 MiB are written before
each, as triton.testing.do_bench does), the contenders in turns, so that the clock's wander meets all alike. Launch
times are the host's, without waiting for the device.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

CLIENT = pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"
sys.path[:0] = [str(CLIENT), str(CLIENT / "examples")]

from bench_table import table  # noqa: E402

# Squares, odd sizes, few rows (decoding), many rows, deep and shallow K.
SHAPES = [
    (4096, 4096, 4096),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (8192, 8192, 8192),
    (1000, 3000, 777),
    (4095, 4097, 4100),
    (16, 4096, 4096),
    (64, 14336, 4096),
    (128, 4096, 14336),
    (256, 28672, 4096),
    (2048, 6144, 4096),
    (4096, 128, 8192),
    (8192, 8192, 512),
    (64, 64, 32768),
    (16384, 1024, 1024),
    (640, 640, 5120),
    (3072, 768, 768),
    (300, 50257, 1024),
    (1, 8192, 8192),
    # More that Triton loads element by element, of both operands, of A and of B.
    (5000, 5000, 5000),
    (2047, 2049, 2051),
    (2048, 4096, 1001),
    (16, 4097, 4096),
]

# Triton's tutorial 03-matrix-multiplication.py, get_cuda_autotune_config: block m, n, k, stages, warps. The groups are
# of 8.
TUTORIAL = [
    (128, 256, 64, 3, 8),
    (64, 256, 32, 4, 4),
    (128, 128, 32, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (128, 32, 32, 4, 4),
    (64, 32, 32, 5, 2),
    (32, 64, 32, 5, 2),
    (128, 256, 128, 3, 8),
    (256, 128, 128, 3, 8),
    (256, 64, 128, 4, 4),
    (64, 256, 128, 4, 4),
    (128, 128, 128, 4, 4),
    (128, 64, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (128, 32, 64, 4, 4),
]


def contenders():
    """The kernel under triton.autotune, under origami's pick, under its short list, and as it is."""
    import triton

    import matmul
    import origami_gemm.triton

    configs = [
        triton.Config(
            {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 8},
            num_stages=stages,
            num_warps=warps,
        )
        for m, n, k, stages, warps in TUTORIAL
    ]
    plain = matmul.matmul_kernel.fn
    return {
        "autotune": triton.autotune(configs=configs, key=["M", "N", "K"])(plain),
        "pick": matmul.matmul_kernel,
        "shortlist": origami_gemm.triton.pick(shortlist="auto")(plain),
        "plain": plain,
    }


def operands(m, n, k):
    import torch

    torch.manual_seed(m + 3 * n + 7 * k)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    return a, b, torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)


def checked(kernel, a, b, c, **meta):
    import matmul

    c.fill_(float("nan"))
    matmul.launch(kernel, a, b, c, **meta)
    if matmul.wrong(c, a, b):
        raise SystemExit(f"{tuple(a.shape)} x {tuple(b.shape)} with {kernel}: wrong")


def first_results(kind, count):
    """In a process of its own, with an empty cache: seconds to the first result of each of the first shapes, and of
    what comes before."""
    begin = time.perf_counter()
    import torch

    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    ready = time.perf_counter()
    kernel = contenders()[kind]
    import matmul

    imported = time.perf_counter()
    times = []
    for shape in SHAPES[:count]:
        a, b, c = operands(*shape)
        torch.cuda.synchronize()
        start = time.perf_counter()
        matmul.launch(kernel, a, b, c)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if matmul.wrong(c, a, b):
            raise SystemExit(f"{shape} by {kind}: wrong")
    print(
        json.dumps(
            {
                "import_torch_and_cuda": ready - begin,
                "import_triton_and_origami": imported - ready,
                "first_result": times,
            }
        )
    )


def in_fresh_process(*arguments):
    """What a run of this script in a process of its own prints, with an empty TRITON_CACHE_DIR."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TRITON_CACHE_DIR": cache}
        out = subprocess.run([sys.executable, __file__, *arguments], env=environment, capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(out.stdout + out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def library_open():
    """In a process of its own: seconds to load the library and open the model, and for the first pick of all."""
    begin = time.perf_counter()
    from origami_gemm.lib import Model

    imported = time.perf_counter()
    model = Model("sm90", "h200")
    opened = time.perf_counter()
    model.select(4096, 4096, 4096)
    picked = time.perf_counter()
    print(json.dumps({"import": imported - begin, "open": opened - imported, "first_pick": picked - opened}))


def per_call(report):
    """Microseconds of a pick that was not asked before, and of one that was."""
    import origami_gemm.triton

    model = origami_gemm.triton.model_of_gpu()

    def median(call, count):
        times = []
        for i in range(count):
            begin = time.perf_counter()
            call(i)
            times.append(time.perf_counter() - begin)
        return statistics.median(times) * 1e6

    empty = median(lambda i: None, 2000)
    report["per_call_us"] = {
        "new": median(lambda i: model.select(64 + i, 4096, 4096), 2000) - empty,
        "again": median(lambda i: model.select(64 + i, 4096, 4096), 2000) - empty,
        "rank_8": median(lambda i: model.rank(64 + i, 4096, 4096, top=8), 500) - empty,
        "expected_regret": median(lambda i: model.expected_regret(64 + i, 4096, 4096), 200) - empty,
    }


def per_launch(kernels, report):
    """Microseconds of the host per launch of a small problem, by how the configuration comes to the kernel."""
    import torch

    import matmul

    a, b, c = operands(64, 64, 64)
    checked(kernels["pick"], a, b, c)
    best = kernels["pick"].best_config
    ways = {
        "plain": dict(best.kwargs, num_warps=best.num_warps, num_stages=best.num_stages),
        "pick": {},
        "autotune": {},
    }
    for name, meta in ways.items():
        checked(kernels[name], a, b, c, **meta)
    samples = {name: [] for name in ways}
    for _ in range(40):
        for name, meta in ways.items():  # in turns
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(100):  # fewer than the device's queue holds
                matmul.launch(kernels[name], a, b, c, **meta)
            samples[name].append((time.perf_counter() - begin) / 100 * 1e6)
    torch.cuda.synchronize()
    report["per_launch_us"] = {name: statistics.median(times) for name, times in samples.items()}


def kernel_times(runs, seconds=0.25):
    """Median milliseconds of each of the runs, a dict of functions, in turns and with a cold L2; and how many rounds
    there were."""
    import torch

    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    samples = {name: [] for name in runs}
    begin = time.perf_counter()
    while (
        len(next(iter(samples.values()))) < 10
        or time.perf_counter() - begin < seconds
        and len(next(iter(samples.values()))) < 60
    ):
        for name, run in runs.items():
            flush.zero_()
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            run()
            last.record()
            last.synchronize()
            samples[name].append(first.elapsed_time(last))
    return {name: statistics.median(times) for name, times in samples.items()}, len(samples[name])


def quality(kernels, shapes, report):
    """Kernel times of the pick, of the short list's best, and of autotune's best, per shape."""
    import torch

    import matmul
    import origami_gemm.triton

    model = origami_gemm.triton.model_of_gpu()
    rows = report["shapes"] = []
    for shape in shapes:
        m, n, k = shape
        a, b, c = operands(*shape)
        row = {"m": m, "n": n, "k": k, "first_seconds": {}, "config": {}}
        runs = {}
        for name in ("autotune", "pick", "shortlist"):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            matmul.launch(kernels[name], a, b, c)
            torch.cuda.synchronize()
            row["first_seconds"][name] = time.perf_counter() - begin
            best = kernels[name].best_config
            row["config"][name] = str(best)
            meta = dict(best.kwargs, num_warps=best.num_warps, num_stages=best.num_stages)
            checked(kernels["plain"], a, b, c, **meta)
            runs[name] = lambda meta=meta: matmul.launch(kernels["plain"], a, b, c, **meta)
        runs["pick_again"] = runs["pick"]
        runs["torch"] = lambda: torch.matmul(a, b, out=c)
        times, row["rounds"] = kernel_times(runs)
        row["ms"] = times
        row["predicted_ms"] = model.select(m, n, k).seconds * 1e3
        regret = model.expected_regret(m, n, k)
        if regret:
            row["expected_regret"], row["worth_measuring"] = regret.expected, regret.worth_measuring
        rows.append(row)
        print(
            f"{m}x{n}x{k}:", ", ".join(f"{name} {ms:.4f} ms" for name, ms in times.items()), file=sys.stderr, flush=True
        )


def run(arguments):
    report = {}
    report["open_seconds"] = in_fresh_process("library-open")
    report["cold"] = {
        kind: in_fresh_process("first-results", kind, str(arguments.cold)) for kind in ("autotune", "pick", "shortlist")
    }
    print(f"cold: {report['cold']}", file=sys.stderr, flush=True)
    import torch
    import triton

    import origami_gemm.triton

    description = origami_gemm.triton.model_of_gpu().description
    report["device"] = torch.cuda.get_device_name()
    report["model"] = {key: description[key] for key in ("arch", "device", "model", "kernel", "rung")}
    report["software"] = f"Triton {triton.__version__}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}"
    report["autotune_configs"] = len(TUTORIAL)
    kernels = contenders()
    per_call(report)
    per_launch(kernels, report)
    quality(kernels, SHAPES[:arguments.shapes], report)
    pathlib.Path(arguments.result).write_text(json.dumps(report, indent=1) + "\n")
    print(table(report, SHAPES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    of_run = commands.add_parser("run")
    of_run.add_argument("result")
    of_run.add_argument("--shapes", type=int, default=len(SHAPES))
    of_run.add_argument("--cold", type=int, default=4)
    of_table = commands.add_parser("table")
    of_table.add_argument("result")
    of_first = commands.add_parser("first-results")
    of_first.add_argument("kind")
    of_first.add_argument("count", type=int)
    commands.add_parser("library-open")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    elif arguments.command == "first-results":
        first_results(arguments.kind, arguments.count)
    elif arguments.command == "library-open":
        library_open()
    else:
        print(table(json.loads(pathlib.Path(arguments.result).read_text()), SHAPES), end="")


if __name__ == "__main__":
    main()
