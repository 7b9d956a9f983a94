"""torch.compile with Inductor's own list of Triton kernels beside origami's picks: time of the first call, time of the
kernels, error of the results.

    python3 measure.py all --out RESULT.json [--seconds 600]
    python3 measure.py products --out RESULT.json [--only 'linear bf16 16x']
    python3 measure.py models --out RESULT.json [--resume OLD.json]

Needs an NVIDIA GPU, torch 2.10 or 2.11, and liborigami (`make lib`); one of the models also needs transformers. "all"
has the most telling first: products of every kind, a model, the other products, the other model. Results are written
after every contender. What the file of --out (or else of --resume) has is not measured again, so the same command
goes on where it was cut off. It stops before a measurement that might not end within --seconds. A contender that takes
longer than --limit counts as failed. The status is 75 if the GPU or a call hangs or breaks for good: run it again.
--rehearse runs small sizes on the CPU, to try the script.

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
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import types

BEGIN = time.perf_counter()  # before torch is imported, which takes long on a machine that just started
AGAIN = 75  # EX_TEMPFAIL of sysexits.h

# Inductor reads these when it is imported. The workers stay, so that no first call waits for their start.
for name in [name for name in os.environ if name.startswith(("TORCHINDUCTOR_", "TORCH_COMPILE", "ORIGAMI_INDUCTOR"))]:
    del os.environ[name]
os.environ["TORCHINDUCTOR_QUIESCE_ASYNC_COMPILE_POOL"] = "0"

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "bindings" / "python"), str(pathlib.Path(__file__).resolve().parent)]

import torch  # noqa: E402
from torch._inductor import config, select_algorithm  # noqa: E402
from torch._inductor.async_compile import AsyncCompile  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402

import origami_gemm.inductor as oi  # noqa: E402
import origami_gemm.triton  # noqa: E402
import table  # noqa: E402
import workloads  # noqa: E402

TUNED = "max-autotune-no-cudagraphs"
ATEN_ONLY, TRITON_ONLY = {"max_autotune_gemm_backends": "ATEN"}, {"max_autotune_gemm_backends": "TRITON"}
# Name: mode of torch.compile, arguments of enable() or None, changes of Inductor's settings. Most telling first.
CONTENDERS = {
    "default": (None, None, {}),  # cuBLAS
    "top1": (TUNED, {"top": 1}, {}),
    "own": (TUNED, None, {}),
    # In the cache that "own" leaves, so its first call is not comparable.
    "own-triton": (TUNED, None, TRITON_ONLY),
    "top4": (TUNED, {"top": 4}, {}),
    "top1-triton": (TUNED, {"top": 1, "aten": False}, {}),
    "top4-triton": (TUNED, {"top": 4, "aten": False}, {}),
    "top1-aten": (TUNED, {"top": 1, "aten": True}, {}),
    "top4-aten": (TUNED, {"top": 4, "aten": True}, {}),
    # What the mode costs besides matrix products: it also tunes kernels of reductions and element-wise operations.
    "default-tuned": (TUNED, None, ATEN_ONLY),
}
WARM = "own-triton"
MODELS = {
    "default": CONTENDERS["default"],
    "top1-default-mode": (None, {"top": 1}, {}),
    "top1": CONTENDERS["top1"],
    "default-tuned": CONTENDERS["default-tuned"],
    "own": CONTENDERS["own"],
    "top1-triton": CONTENDERS["top1-triton"],
}


# Inductor decides by a timing of its own whether it pads operands of odd sizes. It decides differently from one
# compilation to the next, and a product without takes up to three times as long: here all contenders pad.
PADDED = {"force_shape_pad": True}


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

    def check(self):
        """Ends the process if the GPU takes no more work, as after an address that is out of bounds."""
        if self.device == "cpu":
            return
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError as e:
            say(f"the GPU takes no more work; run it again: {e}")
            os._exit(AGAIN)

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
        old = next((p for p in (self.out, resume and pathlib.Path(resume)) if p and p.exists()), None)
        self.data = json.loads(old.read_text()) if old else {"products": {}, "models": {}}
        self.data["machine"] = machine.describe()

    def has(self, part, name, contenders):
        """Whether nothing is left to measure. A product's contenders are timed in turns, so none is added later."""
        row = self.data[part].get(name, {})
        return "took_s" in row and (part == "products" or set(contenders) <= set(row["contenders"]))

    def put(self, part, name, value):
        self.data[part][name] = value
        text = self.out.with_suffix(".part")
        text.write_text(json.dumps(self.data, indent=1))
        text.replace(self.out)


class Watch:
    """Limits what a contender may take: an exception at the limit, and the end of the process if that does not help,
    because a call into the driver or a lock does not come back."""

    GRACE = 20  # seconds

    def __init__(self, limit):
        self.limit = limit
        signal.signal(signal.SIGALRM, self.alarm)

    def alarm(self, *_):
        raise TimeoutError(f"took more than {self.limit:.0f} s")

    @contextlib.contextmanager
    def __call__(self, times=1):
        last = threading.Timer(times * self.limit + self.GRACE, self.end)
        last.daemon = True
        last.start()
        signal.setitimer(signal.ITIMER_REAL, times * self.limit)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            last.cancel()

    @staticmethod
    def end():
        print(f"{time.perf_counter() - BEGIN:6.1f} s  hangs; run it again", flush=True)
        os._exit(AGAIN)


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
            best, *_ = order = sorted(timings, key=timings.get)
            learnt["timed"].append({
                "operation": operation, "choices": len(timings), "best": best.name,
                "description": getattr(best, "description", ""),
                # By Inductor's own timing, in milliseconds; inf is a kernel that does not start.
                "ms": [[table.short(choice.name, getattr(choice, "description", "")), timings[choice]]
                       for choice in order if timings[choice] < float("inf")]})

    oi.clear()
    select_algorithm.add_feedback_saver(saved)
    try:
        with config.patch(changes | PADDED), (oi.enable(**ours) if ours else contextlib.nullcontext()):
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


def product(machine, spec, row, watch, put, contenders):
    """Fills the row with all that is measured of one product. What a process before has left undone counts as
    failed."""
    arguments, want = workloads.operands(spec, machine.device)
    function = workloads.FUNCTIONS[spec["operation"]]
    calls = {}
    with torch.no_grad(), contextlib.ExitStack() as caches:
        for name in contenders:
            if tried(row, name):
                continue
            put(name, {"failed": HUNG})
            if name != WARM:
                caches.close()
                caches.enter_context(fresh_cache())
            try:
                with watch():
                    compiled, result, learnt = first_call(machine, name, function, arguments)
                    learnt["error"] = error(result, want)
                    calls[name] = machine.captured(lambda compiled=compiled: compiled(*arguments))
            except Exception as e:  # a contender that fails is a result too
                learnt = failure(e)
            put(name, learnt)
            machine.check()
        if calls:
            with watch():
                for name, times in machine.seconds(calls).items():
                    row["contenders"][name]["kernel_s"] = times


HUNG = "the process ended or hung here"


def tried(row, name):
    """Whether a contender ended the process before, so that it is not tried again. Others are: their calls are gone."""
    return row["contenders"].get(name, {}).get("failed") == HUNG


def failure(e):
    return {"failed": " ".join(f"{type(e).__name__}: {e}".split())[:500]}


def plan(part, rehearse):
    """The measurements of a part in their order."""
    every = {"products": list(workloads.products(rehearse)), "models": list(workloads.models(rehearse))}
    if part != "all":
        return [(part, spec) for spec in every[part]]
    some, (block, *other) = workloads.KINDS, every["models"]
    return [("products", s) for s in every["products"][:some]] + [("models", block)] + \
        [("products", s) for s in every["products"][some:]] + [("models", s) for s in other]


def measure_all(machine, results, options):
    """Measures what the file does not have yet, as long as the time lasts."""
    measures = {"products": product, "models": model}
    contenders = {"products": chosen(CONTENDERS, options.contenders),
                  "models": chosen(MODELS, options.model_contenders)}
    worst, watch = {}, Watch(options.limit)
    for part, spec in plan(options.part, options.rehearse):
        name = spec["name"]
        names = [c for c in contenders[part] if c not in spec.get("without", ())]
        if results.has(part, name, names) or options.only and not re.search(options.only, name):
            continue
        spent = time.perf_counter() - BEGIN
        if spent + 0.7 * worst.get(part, 0) > options.seconds:
            say(f"{name} is left: it might not end within {options.seconds:.0f} s")
            continue
        row = spec | {"contenders": dict(results.data[part].get(name, {}).get("contenders", {}))}

        def put(contender, value, part=part, name=name, row=row):
            row["contenders"][contender] = value
            results.put(part, name, row)

        start = time.perf_counter()
        try:
            measures[part](machine, spec, row, watch, put, names)
            results.put(part, name, row | {"took_s": time.perf_counter() - start})
            said = line(row)
        except Exception as e:  # the others can still be measured; the next run tries it again
            said = f"not measured: {failure(e)['failed']}"
        worst[part] = max(worst.get(part, 0), time.perf_counter() - start)
        say(f"{name}: {said}")
        torch._dynamo.reset()
        gc.collect()
        machine.check()


def chosen(known, names):
    """The contenders with the names given, in the order of those that are known."""
    names = names.split(",")
    if wrong := set(names) - set(known):
        raise SystemExit(f"no contender {', '.join(sorted(wrong))}; there are {', '.join(known)}")
    return [name for name in known if name in names]


def say(text):
    print(f"{time.perf_counter() - BEGIN:6.1f} s  {text}", flush=True)


def line(row):
    """A row in short."""
    parts = []
    for name, c in row["contenders"].items():
        if "failed" in c:
            parts.append(f"{name} FAILED")
            continue
        timed = c.get("kernel_s") or c.get("step_s")
        if not timed:
            parts.append(f"{name} untimed")
            continue
        time_s = timed["median"]
        first = "" if c["first_call_s"] is None else f" {c['first_call_s']:.1f} s"
        parts.append(f"{name}{first} {time_s * 1e6:.1f} us")
    return ", ".join(parts)


def model(machine, spec, row, watch, put, contenders):
    """Fills the row with all that is measured of one model: a step is forward and backward."""
    eager, arguments = workloads.model(spec, machine.device)
    want, gradient = step(eager, arguments)
    row |= {"parameters": sum(p.numel() for p in eager.parameters()), "loss": want, "gradient": gradient}
    del eager
    for name in contenders:
        if name in row["contenders"]:
            continue
        put(name, {"failed": HUNG})
        torch._dynamo.reset()
        net, _ = workloads.model(spec, machine.device)
        try:
            with watch(4), fresh_cache(), contender(name) as (mode, learnt):
                compiled = torch.compile(net, mode=mode, dynamic=False)
                machine.wait()
                begin = time.perf_counter()
                loss, norm = step(compiled, arguments)
                learnt["first_call_s"] = time.perf_counter() - begin
                learnt |= {"loss": loss, "gradient": norm}
                # Not in turns: each model and its gradients would have to stay in memory.
                timed = machine.seconds({name: lambda: step(compiled, arguments)}, budget=1.5, most=20)
                learnt["step_s"] = timed[name]
        except Exception as e:
            learnt = failure(e)
        put(name, learnt)
        say(f"{spec['name']}: {line({'contenders': {name: learnt}})}")
        machine.check()


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
    parser.add_argument("part", choices=("all", "products", "models"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--resume", help="results of an earlier run, if the file of --out does not exist")
    parser.add_argument("--seconds", type=float, default=600, help="for everything, the start included")
    parser.add_argument("--limit", type=float, default=45,
                        help="seconds for a contender of a product; one of a model has four times that")
    parser.add_argument("--only", help="products or models whose name has a match of this regular expression")
    parser.add_argument("--contenders", default="default,top1,own,top4,top1-triton",
                        help=f"for products, of {','.join(CONTENDERS)}; %(default)s if not given")
    parser.add_argument("--model-contenders", default="default,top1-default-mode,top1,default-tuned",
                        help=f"for models, of {','.join(MODELS)}; %(default)s if not given")
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    imported = time.perf_counter() - BEGIN
    machine = Machine(options.rehearse)
    results = Results(options.out, options.resume, machine)
    # Compile workers start, and libraries load, before the first measurement: one kernel is compiled and timed.
    begin = time.perf_counter()
    AsyncCompile.wait_pool_ready()
    workers, begin = time.perf_counter() - begin, time.perf_counter()
    with torch.no_grad(), fresh_cache(), oi.enable(top=1, aten=True):
        x = torch.randn(256, 256, device=machine.device)
        torch.compile(lambda x: (x @ x).relu(), mode=TUNED)(x)
    torch._dynamo.reset()
    first = time.perf_counter() - begin
    say(f"ready: imports {imported:.0f} s, workers {workers:.0f} s, first compilation {first:.0f} s; "
        f"{results.data['machine']}")
    measure_all(machine, results, options)


if __name__ == "__main__":
    main()
