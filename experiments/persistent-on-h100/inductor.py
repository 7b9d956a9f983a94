"""Inductor's kernels of both templates, mm and the persistent one with TMA: the times of its own configurations and of
origami's picks, and how long autotuning takes with and without the picks.

    python3 inductor.py RESULT.json [--seconds 235]

Needs an NVIDIA GPU of compute capability 9.0, torch 2.11, and liborigami (`make lib`). Results are written after every
product. Times are of a CUDA graph of launches whose weights are cold: the copies of the weights, used in turn, are more than
twice the L2. The other operand and C stay where the launch before left them. Each time is the median of rounds in which all
kernels run in a random order. Operands are standard normal. Errors are the root mean square of the difference from
the product in fp32, ÷ that of cuBLAS.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import time
from unittest import mock

BEGIN = time.perf_counter()
os.environ["TORCHINDUCTOR_QUIESCE_ASYNC_COMPILE_POOL"] = "0"

import torch  # noqa: E402
import torch._inductor.compile_fx as compile_fx  # noqa: E402
from torch._inductor import config, select_algorithm  # noqa: E402
from torch._inductor.async_compile import AsyncCompile  # noqa: E402
from torch._inductor.choices import InductorChoices  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402

import origami_gemm.inductor as oi  # noqa: E402
import origami_gemm.triton  # noqa: E402
from origami_gemm.inductor import _choices, _nodes, _problem  # noqa: E402

# Layers of the shapes of Phi-4, StarCoder2, ChatGLM3, Qwen and Falcon 3, which are in no fit. Those of fp8 are last.
PRODUCTS = [
    ("bf16", 16, 17920, 5120), ("bf16", 2048, 6144, 4608), ("bf16", 128, 4608, 18432), ("bf16", 4096, 13696, 4096),
    ("bf16", 512, 3584, 7168), ("bf16", 1000, 23040, 3072), ("bf16", 32, 8960, 1536), ("bf16", 8192, 4096, 13696),
    ("bf16", 256, 18432, 4608), ("bf16", 64, 5120, 17408), ("bf16", 1536, 21504, 3584), ("bf16", 6144, 3072, 23040),
    ("fp8", 1536, 21504, 3584), ("fp8", 64, 5120, 17408),
]
AUTOTUNED = [PRODUCTS[i] for i in (4, 0, 1, 3)]
PICKED = 16  # picks of each family, for the template of each
CONTENDERS = {"list": None, "top=1": {"top": 1}, "top=4": {"top": 4}, "top=4 without cuBLAS": {"top": 4, "aten": False}}
TMA = {"triton.enable_persistent_tma_matmul": True, "max_autotune_gemm": True}
L2 = 50 << 20
FIELDS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages", "GROUP_M")


def say(*words):
    print(f"[{time.perf_counter() - BEGIN:.0f} s]", *words, flush=True)


def function(dtype):
    if dtype == "bf16":
        return lambda x, w: x @ w.t()
    return lambda x, w, a, b: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16, use_fast_accum=True)


def operands(dtype, m, n, k, copies):
    """x, and copies of w with what else the function takes."""
    element = {"bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}[dtype]
    generator = torch.Generator("cuda").manual_seed(m + n + k)
    x, w = (torch.randn(rows, k, device="cuda", generator=generator).to(element) for rows in (m, n))
    more = [] if dtype == "bf16" else [torch.ones((), device="cuda"), torch.ones((), device="cuda")]
    return x, [w, *(w.clone() for _ in range(copies - 1))], more


class Collected(BaseException):
    """Ends a compilation when the choices are known. Inductor wraps an Exception in its own."""


class Everything(InductorChoices):
    """All choices of both templates: Inductor's own, and the picks of both families for each."""

    def __init__(self, models):
        super().__init__()
        self.models = models

    def _finalize_template_configs(self, template_choices, kernel_inputs, templates, op_name, kwarg_overrides=None):
        problem = _nodes.problem(kernel_inputs, False)
        asked = _problem.with_constants(problem, kernel_inputs.dtype().itemsize, _choices._static(kernel_inputs))
        layout, found = kernel_inputs.output_layout(flexible=False), []
        picks = []
        for model in self.models:
            built = [_problem.configuration(p, problem["dtype"]) for p in model.rank(**asked, top=4 * PICKED)]
            picks += [blocks for blocks in built if blocks][:PICKED]
        for template in templates:
            if template in _choices.TILED + _choices.PERSISTENT:
                own = list(self.get_ktc(kernel_inputs, template, op_name, (kwarg_overrides or {}).get(template.uid, {})))
                made = [_choices._choice(own[0], blocks, layout, None) for blocks in picks]
                if problem["dtype"] == "fp8" and template in _choices.TILED:
                    own = []  # a hundred
                found += {values(choice): choice for choice in own + made}.values()
        return found


def values(choice):
    given = choice.params.to_kwargs()
    return tuple(given[name] for name in FIELDS)


def collected(dtype, m, n, k, models):
    """The choices for a product. Nothing is compiled yet."""
    taken = []

    def call(_, name, choices, *__, **___):
        taken.extend(choices)
        raise Collected

    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        element = {"bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}[dtype]
        arguments = [torch.empty(rows, k, dtype=element) for rows in (m, n)]
        arguments += [torch.empty(()) for _ in range(2 * (dtype == "fp8"))]
    graph = torch.fx.symbolic_trace(function(dtype))
    with (mock.patch.object(select_algorithm.AlgorithmSelectorCache, "__call__", call), torch.no_grad(),
          V.set_choices_handler(Everything(models)), config.patch(TMA), contextlib.suppress(Collected)):
        compile_fx.compile_fx(graph, arguments)
    return taken


def submitted(choice):
    source = pathlib.Path(choice.bmreq.module_path).read_text()
    return AsyncCompile().triton(choice.bmreq.kernel_name, source).future


def captured(calls, times):
    """A graph of the calls, times over. calls are made by a function, on the stream that is captured."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        made = calls()
        made[0]()
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            graph.kept = made, [call() for _ in range(times) for call in made]
        finally:
            graph.capture_end()
    return graph


def timed(graphs, launches, limit):
    """Median microseconds of a launch in each graph."""
    taken = {name: [] for name in graphs}
    names, begin = list(graphs), time.perf_counter()
    for graph in graphs.values():
        graph.replay()
    for nth in range(9):
        if nth > 2 and time.perf_counter() - begin > limit:
            break
        random.shuffle(names)
        for name in names:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[name].replay()
            end.record()
            torch.cuda.synchronize()
            taken[name].append(1e3 * start.elapsed_time(end) / launches)
    return {name: statistics.median(t) for name, t in taken.items()}, nth


def copies_of(dtype, m, n, k):
    """Copies of the weights, and how often a graph takes all."""
    itemsize = 2 if dtype == "bf16" else 1
    copies = max(2, math.ceil(2 * L2 / (n * k * itemsize)) + 1)
    seconds = max(2 * m * n * k * itemsize / 1.2e15, n * k * itemsize / 3e12) + 2e-6
    return copies, max(1, round(3e-4 / seconds / copies))


def measured(product, choices, last):
    """The times of all choices for a product, as far as they are ready before the last moment."""
    copies, times = copies_of(*product)
    x, weights, more = operands(*product, copies)
    reference = x.float() @ weights[0].float().t()
    out = torch.empty(reference.shape, dtype=torch.bfloat16, device=x.device)
    direct = function(product[0])
    graphs, errors = {"cuBLAS": captured(lambda: [lambda w=w: direct(x, w, *more) for w in weights], times)}, {}
    base = (direct(x, weights[0], *more).float() - reference).square().mean().sqrt().item()
    failed = {}
    scales = [s.view(1, 1) for s in more]
    for choice in choices:
        if time.perf_counter() - BEGIN > last:
            break
        ktc = choice.annotations["ktc"]
        key = ("tma" if ktc.template in _choices.PERSISTENT else "mm", *values(ktc))
        try:
            out.fill_(math.nan)
            graphs[key] = captured(lambda c=choice: [
                c.bmreq.make_run_fn(x, w.t(), *scales, out=out) for w in weights], times)
            out.fill_(math.nan)
            graphs[key].replay()
            errors[key] = (out.float() - reference).square().mean().sqrt().item() / base
        except Exception as e:
            failed[key] = f"{type(e).__name__}: {e}".splitlines()[0][:160]
            graphs.pop(key, None)
    del reference
    median, rounds = timed(graphs, times * copies, limit=4)
    rows = [[*key, round(us, 3), round(errors.get(key, 1), 3)] for key, us in median.items() if key != "cuBLAS"]
    return {"cublas_us": round(median["cuBLAS"], 3), "copies": copies, "launches": copies * times, "rounds": rounds,
            "kernels": sorted(rows, key=lambda r: r[7]), "failed": [[*key, why] for key, why in failed.items()]}


def autotuned(product, contender):
    """How long a first call takes, with empty caches, and the graph of what it made."""
    copies, times = copies_of(*product)
    x, weights, more = operands(*product, copies)
    torch._dynamo.reset()
    enabled = CONTENDERS[contender]
    best = []
    select_algorithm.add_feedback_saver(
        lambda timings, *_: best.append(min((seconds, f"{c.name} {c.description}") for c, seconds in timings.items())[1]))
    with torch.no_grad(), fresh_cache(), config.patch(TMA), oi.enable(**enabled) if enabled else contextlib.nullcontext():
        compiled = torch.compile(function(product[0]))
        torch.cuda.synchronize()
        begin = time.perf_counter()
        compiled(x, weights[0], *more)
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        graph = captured(lambda: [lambda w=w: compiled(x, w, *more) for w in weights], times)
    select_algorithm.clear_feedback_savers()
    report = str(oi.report()[-1]) if enabled and oi.report() else ""
    oi.clear()
    return {"first_call_s": round(first, 2), "report": report, "best": best[-1:]}, graph, copies * times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=235)
    options = parser.parse_args()
    AsyncCompile.wait_pool_ready()
    say("compile workers are ready")
    model = origami_gemm.triton.model_of_gpu()
    models = model, model.sibling("triton_persistent")
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
    data = {"gpu": subprocess.run(query, capture_output=True, text=True).stdout.strip(), "torch": torch.__version__,
            "date": time.strftime("%Y-%m-%d", time.gmtime()), "cores": os.cpu_count(), "products": {}, "autotuned": {}}

    def put(part, name, value):
        data[part][name] = value
        options.out.write_text(json.dumps(data))

    work = {}
    for product in PRODUCTS:
        choices = collected(*product, models)
        work[product] = choices, [submitted(c) for c in choices]
    say(sum(len(c) for c, _ in work.values()), "kernels are being compiled")
    last = options.seconds - 75
    for product, (choices, futures) in work.items():
        for future in futures:
            with contextlib.suppress(Exception):
                future.result(timeout=max(0.01, last - (time.perf_counter() - BEGIN)))
        if time.perf_counter() - BEGIN > last:
            say("no time for", product)
            for future in futures:
                future.cancel()
            continue
        try:
            name = " ".join([product[0], "x".join(map(str, product[1:]))])
            row = measured(product, [c for c, f in zip(choices, futures) if f.done()], last)
            put("products", name, row)
            say(name, row["cublas_us"], row["kernels"][0], len(row["kernels"]), row["rounds"], row["failed"][:2])
        except Exception as e:
            say(product, "failed", f"{type(e).__name__}: {e}"[:300])
        torch.cuda.empty_cache()
    for product in AUTOTUNED:
        if time.perf_counter() - BEGIN > options.seconds - 20:
            say("no time to autotune", product)
            continue
        name, rows, graphs = " ".join([product[0], "x".join(map(str, product[1:]))]), {}, {}
        for contender in CONTENDERS:
            try:
                rows[contender], graphs[contender], launches = autotuned(product, contender)
                say(name, contender, rows[contender])
            except Exception as e:
                rows[contender] = {"failed": f"{type(e).__name__}: {e}"[:300]}
                say(name, contender, rows[contender])
            put("autotuned", name, rows)
        for contender, us in timed(graphs, launches, limit=1)[0].items():
            rows[contender]["us"] = round(us, 3)
        put("autotuned", name, rows)
        graphs.clear()
        torch.cuda.empty_cache()
    say("end")
    os._exit(0)  # compile workers may still be busy


if __name__ == "__main__":
    main()
