"""Times every configuration of public autotuned kernels beside the pinned one.

    python3 measure.py pins    # no GPU: the pins and what is predicted, to OUT/pins.json
    python3 measure.py times   # on an H200: all configurations timed, to OUT/times.jsonl
    python3 measure.py score   # OUT/times.jsonl beside the rules

CASES=kinds or CASES=attention takes those cases in place of cases.py's. Packages' sources are in src/ beside this file, or
installed. A case's function is called, and each autotuned launch is caught the first time that a case makes it.
"""

import importlib
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
OUT = pathlib.Path(os.environ.get("OUT", HERE / "out"))
ARCH = os.environ.get("ARCH", "sm90@h200")
UNTIL = time.time() + float(os.environ.get("DEADLINE", 1e9))
CASES = os.environ.get("CASES", "cases")
ONLY = os.environ.get("ONLY", "")
os.environ.setdefault("FLA_CACHE_MODE", "disabled")
if (HERE / "src").exists():
    sys.path.insert(0, str(HERE / "src"))
sys.path.insert(0, str(HERE))


def no_gpu():
    """Triton and PyTorch as packages ask them at import and around a launch, on a machine without a GPU."""
    import torch
    import triton
    from origami_gemm.pin._compile import _driver
    from triton.runtime.jit import JITFunction

    driver = _driver(90, 232448)
    driver.get_active_torch_device = lambda: torch.device("cuda", 0)
    driver.get_device_interface = lambda: torch.cuda
    triton.runtime.driver.set_active(driver)

    class Properties:
        name = "NVIDIA H200"
        multi_processor_count, major, minor, total_memory, L2_cache_size = 132, 9, 0, 141 << 30, 60 << 20
        shared_memory_per_block_optin, shared_memory_per_multiprocessor, warp_size = 232448, 233472, 32
        max_threads_per_multi_processor, regs_per_multiprocessor, gcnArchName = 2048, 65536, ""

    class Nothing:
        cuda_stream = 0

        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    c = torch.cuda
    c.is_available, c.device_count, c.current_device = lambda: True, lambda: 1, lambda: 0
    c.get_device_capability, c.get_device_name = lambda *_, **__: (9, 0), lambda *_, **__: Properties.name
    c.get_device_properties, c.set_device, c.synchronize = lambda *_, **__: Properties(), lambda *_: None, lambda *_: None
    c.device = c.device_of = c.stream = c.Stream = Nothing
    c.current_stream = lambda *_, **__: Nothing()
    run = JITFunction.run

    def compiled_only(self, *args, warmup=False, **kwargs):
        return run(self, *args, warmup=True, **kwargs) if warmup else None

    JITFunction.run = compiled_only


def caught(function, act, launched):
    """Calls a function; act(tuner, args, kwargs) stands before the first launch of each autotuned kernel."""
    KNOWN = importlib.import_module(CASES).KNOWN
    from origami_gemm.pin._choose import unwrapped
    from origami_gemm.pin._launch import replaced

    seen = set()

    def run(self, *args, **kwargs):
        name = unwrapped(self)[0].__name__
        config = self.configs[0]
        if name not in seen and name not in KNOWN and len(self.configs) > 1:
            seen.add(name)
            try:
                config = act(self, name, args, kwargs) or config
            except Exception:
                traceback.print_exc()
        self.best_config = config
        if not launched:
            return None
        if config.pre_hook is not None:
            config.pre_hook({**dict(zip(self.arg_names, args)), **kwargs, **config.all_kwargs()})
        return self.fn.run(*args, **kwargs, **config.all_kwargs())

    with replaced(run):
        function()


def pick(tuner, args, kwargs):
    from origami_gemm.pin._launch import pinned

    return pinned(tuner, args, kwargs, ARCH, None)[:2]


def of_this_launch(tuner, args, kwargs):
    """The choice for a launch itself; pinned() has it for the launch of typical sizes that stands for it."""
    from origami_gemm.pin._choose import choose
    from origami_gemm.pin._launch import _of_tuner

    with _of_tuner(tuner, args):
        own = tuner.prune_configs(dict(kwargs))
    rest = {k: v for k, v in kwargs.items() if k not in ("grid", "warmup")}
    return choose(tuner.fn, args, kwargs.get("grid") or (1,), ARCH, kwargs=rest, configs=list(own))


def each(device, act, launched):
    import torch
    cases = importlib.import_module(CASES).cases
    for name, shape, make in cases(torch, device):
        case = f"{name} {'x'.join(map(str, shape))}"
        if ONLY and not re.search(ONLY, case):
            continue
        if time.time() > UNTIL:
            break
        begun = time.time()
        try:
            torch.manual_seed(0)
            caught(make(), lambda *a: act(case, *a), launched)
        except Exception as e:
            print("FAILED", case, f"{type(e).__name__}: {e}"[:200], flush=True)
            if os.environ.get("TB"):
                traceback.print_exc()
        print(f"{time.time() - begun:6.1f} s {case}", flush=True)
        if device != "cpu":
            torch.cuda.empty_cache()


def pins():
    no_gpu()
    out = {}

    def act(case, tuner, name, args, kwargs):
        begun = time.time()
        _, choice = pick(tuner, args, kwargs)
        if choice is not None:
            exact = of_this_launch(tuner, args, kwargs)
            out[f"{name} | {case}"] = {
                "of_this_launch": exact.config, "key": choice.key, "config": choice.config, "evidence": choice.evidence,
                "predicted": [[c.config, c.seconds, c.error] for c in exact.candidates], "why": choice.why,
                "assumed": choice.assumed, "seconds": round(time.time() - begun, 2)}
            (OUT / "pins.json").write_text(json.dumps(out, indent=1, sort_keys=True))

    each("cpu", act, False)
    print(len(out), "pins of", len({k.split(" | ")[0] for k in out}), "kernels")


def seconds_of(launch, flush, torch, rounds=5, n=6):
    """Time of a launch with a cold L2: graphs of n launches between flushes, less graphs of the flushes."""
    def graph(do):
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            for _ in range(n):
                flush.zero_()
                if do:
                    launch()
        return g

    launch()
    torch.cuda.synchronize()
    both = [graph(True), graph(False)]
    found = [[], []]
    for _ in range(rounds + 1):
        for g, times in zip(both, found):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            g.replay()
            b.record()
            torch.cuda.synchronize()
            times.append(a.elapsed_time(b) / 1e3 / n)
    return statistics.median(found[0][1:]) - statistics.median(found[1][1:])


def planned():
    return json.loads((OUT / "pins.json").read_text()) if (OUT / "pins.json").exists() else {}


def times():
    import torch
    from origami_gemm.pin._choose import order, plain

    flush = torch.empty(128 << 20, dtype=torch.int8, device="cuda")
    path, begun, pins = OUT / "times.jsonl", OUT / "begun.txt", planned()
    done = set(begun.read_text().splitlines()) if begun.exists() else set()  # also what ended an earlier process

    def act(case, tuner, name, args, kwargs):
        full = f"{name} | {case}"
        if full in done or time.time() > UNTIL:
            return None
        with begun.open("a") as f:
            f.write(full + "\n")
        wrong = {order(c): error for c, _, error in pins.get(full, {}).get("predicted", ())}
        rows, best = [], (math.inf, None)
        tuner.nargs = dict(zip(tuner.arg_names, args))
        for c in tuner.prune_configs(dict(kwargs)):
            row = {"config": plain(c), "error": wrong.get(order(plain(c)), "")}
            rows.append(row)
            if row["error"]:
                continue
            try:
                def launch(c=c):
                    tuner.fn.run(*args, **kwargs, **c.all_kwargs())
                if c.pre_hook is not None:  # clears locks, which each launch leaves open
                    c.pre_hook({**tuner.nargs, **kwargs, **c.all_kwargs()})
                row["seconds"] = seconds_of(launch, flush, torch)
                best = min(best, (row["seconds"], c), key=lambda x: x[0])
            except Exception as e:
                row["error"] = f"{type(e).__name__}: {e}"[:160]
                if "illegal" in row["error"]:
                    raise
        with path.open("a") as f:
            f.write(json.dumps({"case": full, "kernel": name, "rows": rows}) + "\n")
        print(f"  {full} {sum('seconds' in r for r in rows)}/{len(rows)} best {best[0] * 1e6:.1f} us", flush=True)
        return best[1]

    each("cuda", act, True)
    score()


def blocks(config):
    n = config["num_stages"]
    for k, v in config["kwargs"].items():
        if isinstance(v, int) and not isinstance(v, bool) and re.search(r"(?i)block|tile|^b[a-z]{0,2}$", k):
            n *= max(1, v)
    return n, config["num_warps"]


def score():
    rows = [json.loads(line) for line in (OUT / "times.jsonl").open()]
    pins, found, best_of, inside, order = planned(), {}, {}, [], [0, 0]
    for r in rows:
        if r["case"] in pins:
            r["pick"] = pins[r["case"]].get("of_this_launch")
            predicted = {json.dumps(c, sort_keys=True): t for c, t, _ in pins[r["case"]].get("predicted", ())}
            for x in r["rows"]:
                x["predicted"] = predicted.get(json.dumps(x["config"], sort_keys=True))
        good = [x for x in r["rows"] if x.get("seconds", 0) > 0]
        if len(good) > 1:
            best_of[r["case"]] = min(good, key=lambda x: x["seconds"])["config"]
    for r in rows:
        good = [x for x in r["rows"] if x.get("seconds", 0) > 0]
        if len(good) < 2:
            continue
        best = min(x["seconds"] for x in good)
        of = {json.dumps(x["config"], sort_keys=True): x["seconds"] for x in good}
        mine = of.get(json.dumps(r.get("pick"), sort_keys=True))
        others = [json.dumps(best_of[o["case"]], sort_keys=True) for o in rows
                  if o["kernel"] == r["kernel"] and o is not r and o["case"] in best_of]
        others = [o for o in others if o in of]
        picks = {"first": good[0]["seconds"], "smallest": min(good, key=lambda x: blocks(x["config"]))["seconds"],
                 "random": len(good) / sum(1 / x["seconds"] for x in good)}
        if r.get("pick"):
            picks["pin"] = mine
        if others:
            picks["other shapes"] = of[max(sorted(set(others)), key=others.count)]
        for rule, t in picks.items():
            found.setdefault(rule, {}).setdefault(r["kernel"], []).append(best / t if t else 1e-3)
        for x in good:
            if x.get("predicted"):
                inside.append(.35 <= x["seconds"] / x["predicted"] <= 1.7)
        for i, x in enumerate(good):
            for y in good[:i]:
                if x.get("predicted") and y.get("predicted") and not 1 / 1.2 < x["predicted"] / y["predicted"] < 1.2:
                    order[0] += (x["predicted"] < y["predicted"]) == (x["seconds"] < y["seconds"])
                    order[1] += 1

    def geo(v):
        return math.exp(sum(map(math.log, v)) / len(v))

    for rule, by in found.items():
        v = [x for one in by.values() for x in one]
        print(f"{rule:14s} geomean {geo(v):.3f} worst {min(v):.3f} below 0.7: {sum(x < .7 for x in v)} of {len(v)}, {len(by)} kernels")
    for k, v in sorted(found.get("pin", {}).items()):
        print(f"  {k:50s} {geo(v):.3f} {min(v):.3f} {len(v)}")
    if inside:
        print(f"intervals hold {sum(inside) / len(inside):.3f} of {len(inside)}; order right {order[0]} of {order[1]}")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    {"pins": pins, "times": times, "score": score}[sys.argv[1]]()
