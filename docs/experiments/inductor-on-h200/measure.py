"""torch.compile with Inductor's own list of Triton kernels beside origami's picks: time of the first call, time of the
kernels, error of the results.

    python3 measure.py products --out RESULT.json [--resume OLD.json] [--seconds 400]
    python3 measure.py models   --out RESULT.json [--resume OLD.json] [--seconds 250]

Needs an NVIDIA GPU, torch 2.10 or 2.11, and liborigami (`make lib`); the second part also needs transformers. Results are
written after every product and model. With --resume, what the old file has is not measured again. A part stops before
the next measurement that might not end within --seconds. --rehearse runs small sizes on the CPU, to try the script.

First calls have empty caches, and compile workers that are already running. Kernel times are medians by device events
of replays of a CUDA graph with a cold L2 (512 MiB are written before each), the contenders in turns. Operands are
standard normal. Results are compared with the same computation in fp32.
"""

import argparse
import contextlib
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import types

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(CHECKOUT / "bindings" / "python"), str(pathlib.Path(__file__).resolve().parent)]

import torch  # noqa: E402
from torch._inductor import config, select_algorithm  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402

import origami_gemm.inductor as oi  # noqa: E402
import origami_gemm.triton  # noqa: E402
import workloads  # noqa: E402

TUNED = "max-autotune-no-cudagraphs"
# Name: mode of torch.compile, arguments of enable() or None, changes of Inductor's settings.
CONTENDERS = {
    "default": (None, None, {}),  # cuBLAS
    "top1": (TUNED, {"top": 1}, {}),
    "top4": (TUNED, {"top": 4}, {}),
    "top1-aten": (TUNED, {"top": 1, "aten": True}, {}),
    "top4-aten": (TUNED, {"top": 4, "aten": True}, {}),
    "own": (TUNED, None, {}),
    # In the cache that "own" leaves, so its first call is not comparable.
    "own-triton": (TUNED, None, {"max_autotune_gemm_backends": "TRITON"}),
}
WARM = "own-triton"
MODELS = {name: CONTENDERS[name] for name in ("default", "top1", "top4", "top1-aten", "own")}
MODELS["top1-default-mode"] = (None, {"top": 1}, {})


class Machine:
    """Where it runs: the GPU, or the CPU for a rehearsal."""

    def __init__(self, rehearse):
        self.device = "cpu" if rehearse else "cuda"
        if not rehearse:
            self.flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def captured(self, call):
        """A call as one launch, where that can be."""
        if self.device == "cpu":
            return call
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            graph.kept = call()
        return graph.replay

    def seconds(self, calls, budget=0.15, least=7, most=60):
        """Seconds of each of the calls, in turns, with a cold L2. The number of rounds follows from the time that each
        may take."""
        begin = time.perf_counter()
        for call in calls.values():
            self.timed(call)
        rounds = int(budget * len(calls) / (time.perf_counter() - begin))
        times = {name: [] for name in calls}
        for _ in range(max(least, min(most, rounds))):
            for name, call in calls.items():
                times[name].append(self.timed(call))
        return {name: {"median": statistics.median(t), "least": min(t), "rounds": len(t)} for name, t in times.items()}

    def timed(self, call):
        if self.device == "cpu":
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        self.flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3

    def describe(self):
        about = {"torch": torch.__version__, "date": time.strftime("%Y-%m-%d", time.gmtime()), "cores": os.cpu_count()}
        if self.device == "cuda":
            query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
            about["nvidia_smi"] = subprocess.run(query, capture_output=True, text=True).stdout.strip()
            about["model"] = repr(origami_gemm.triton.model_of_gpu())
        return about


class Results:
    """The file of results. It is replaced as a whole after every change."""

    def __init__(self, out, resume, machine):
        self.out = pathlib.Path(out)
        self.data = json.loads(pathlib.Path(resume).read_text()) if resume else {"products": {}, "models": {}}
        self.data["machine"] = machine.describe()

    def put(self, part, name, value):
        self.data[part][name] = value
        text = self.out.with_suffix(".part")
        text.write_text(json.dumps(self.data, indent=1))
        text.replace(self.out)


def fresh(function, name):
    """The function with a code object of its own: Dynamo keeps what it compiled by code object."""
    code = function.__code__.replace(co_name=f"{function.__name__}_{name.replace('-', '_')}")
    return types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__, function.__closure__)


@contextlib.contextmanager
def contender(name):
    """What is in force for a contender while it compiles. Yields the mode of torch.compile and what is learnt."""
    mode, ours, changes = (CONTENDERS | MODELS)[name]
    learnt = {"timed": []}

    def saved(timings, operation, *_, **__):
        if timings:
            best = min(timings, key=timings.get)
            learnt["timed"].append({"operation": operation, "choices": len(timings), "best": best.name,
                                    "description": getattr(best, "description", "")})

    oi.clear()
    select_algorithm.add_feedback_saver(saved)
    try:
        with config.patch(changes), (oi.enable(**ours) if ours else contextlib.nullcontext()):
            yield mode, learnt
    finally:
        select_algorithm.clear_feedback_savers()
        learnt["report"] = [str(row) for row in oi.report()]


def first_call(machine, name, function, arguments):
    """A compiled function, its first result and how long that took."""
    with contender(name) as (mode, learnt):
        compiled = torch.compile(fresh(function, name), mode=mode, dynamic=False)
        machine.wait()
        begin = time.perf_counter()
        result = compiled(*arguments)
        machine.wait()
        learnt["first_call_s"] = None if name == WARM else time.perf_counter() - begin
    return compiled, result, learnt


def error(result, want):
    """The relative error of a result in the Frobenius norm; NaN is infinite."""
    value = ((result.double() - want.double()).norm() / want.double().norm()).item()
    return value if value == value else float("inf")


def product(machine, spec):
    """All that is measured of one product."""
    arguments, want = workloads.operands(spec, machine.device)
    function = workloads.FUNCTIONS[spec["operation"]]
    row = dict(spec, contenders={})
    calls = {}
    with torch.no_grad(), contextlib.ExitStack() as caches:
        for name in CONTENDERS:
            if name != WARM:
                caches.close()
                caches.enter_context(fresh_cache())
            try:
                compiled, result, learnt = first_call(machine, name, function, arguments)
                learnt["error"] = error(result, want)
                calls[name] = machine.captured(lambda compiled=compiled: compiled(*arguments))
            except Exception as e:  # a contender that fails is a result too
                learnt = {"failed": f"{type(e).__name__}: {e}"[:500]}
            row["contenders"][name] = learnt
        for name, times in machine.seconds(calls).items():
            row["contenders"][name]["kernel_s"] = times
    return row


def products(machine, results, options):
    measure_all(machine, results, options, "products", workloads.products(options.rehearse), product)


def models(machine, results, options):
    measure_all(machine, results, options, "models", workloads.models(options.rehearse), model)


def measure_all(machine, results, options, part, specs, measure):
    """Measures what the file does not have yet, as long as the time lasts."""
    begin = time.perf_counter()
    worst = 0.0
    for spec in specs:
        name = spec["name"]
        if name in results.data[part] or options.only and options.only not in name:
            continue
        spent = time.perf_counter() - begin
        if spent + 0.7 * worst > options.seconds:
            print(f"stopped after {spent:.0f} s; {name} and those after it are left", flush=True)
            return
        start = time.perf_counter()
        try:
            results.put(part, name, measure(machine, spec) | {"took_s": time.perf_counter() - start})
            said = line(results.data[part][name])
        except Exception as e:  # the others can still be measured; --resume tries it again
            said = f"not measured: {type(e).__name__}: {e}"
        worst = max(worst, time.perf_counter() - start)
        print(f"{time.perf_counter() - begin:6.1f} s  {name}: {said}", flush=True)
        torch._dynamo.reset()
        gc.collect()
        if machine.device == "cuda":
            torch.cuda.empty_cache()


def line(row):
    """A row in short."""
    parts = []
    for name, c in row["contenders"].items():
        if "failed" in c:
            parts.append(f"{name} FAILED")
            continue
        time_s = c["kernel_s" if "kernel_s" in c else "step_s"]["median"]
        first = "" if c["first_call_s"] is None else f" {c['first_call_s']:.1f} s"
        parts.append(f"{name}{first} {time_s * 1e6:.1f} us")
    return ", ".join(parts)


def model(machine, spec):
    """All that is measured of one model: a step is forward and backward."""
    eager, arguments = workloads.model(spec, machine.device)
    want, gradient = step(eager, arguments)
    row = dict(spec, contenders={}, parameters=sum(p.numel() for p in eager.parameters()), loss=want, gradient=gradient)
    for name in MODELS:
        torch._dynamo.reset()
        net, _ = workloads.model(spec, machine.device)
        with fresh_cache(), contender(name) as (mode, learnt):
            compiled = torch.compile(net, mode=mode, dynamic=False)
            machine.wait()
            begin = time.perf_counter()
            try:
                loss, norm = step(compiled, arguments)
            except Exception as e:
                row["contenders"][name] = {"failed": f"{type(e).__name__}: {e}"[:500]}
                continue
            learnt["first_call_s"] = time.perf_counter() - begin
            learnt |= {"loss": loss, "gradient": norm}
            # Not in turns: each model and its gradients would have to stay in memory.
            learnt["step_s"] = machine.seconds({name: lambda: step(compiled, arguments)}, budget=1.5, most=20)[name]
        row["contenders"][name] = learnt
    return row


def step(net, arguments):
    """One step: the loss and the norm of the gradient."""
    for p in net.parameters():
        p.grad = None
    loss = workloads.loss(net, arguments)
    loss.backward()
    norm = torch.stack([p.grad.float().norm() for p in net.parameters()]).norm()
    return loss.item(), norm.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("products", "models"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--resume")
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--only", help="products or models with this in their name")
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    machine = Machine(options.rehearse)
    results = Results(options.out, options.resume, machine)
    # Compile workers start, and libraries load, before the first measurement.
    with torch.no_grad(), fresh_cache():
        x = torch.randn(256, 256, device=machine.device)
        torch.compile(lambda x: (x @ x).relu(), mode=TUNED)(x)
    torch._dynamo.reset()
    {"products": products, "models": models}[options.part](machine, results, options)


if __name__ == "__main__":
    main()
