"""Epilogues of origami_gemm.torch on a Hopper GPU: right, and how fast. OUT=folder python3 measure.py"""
import concurrent.futures, json, math, os, random, statistics, sys, tempfile, time, types
HERE = os.path.dirname(os.path.abspath(__file__))
T0 = time.time()
os.environ.setdefault("ORIGAMI_LIB", os.path.join(HERE, "liborigami.so"))
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
sys.path.insert(0, HERE)
import torch
import torch.nn.functional as F
import origami_gemm.torch as og
from origami_gemm import _layers as L
from origami_gemm.torch import _ops, _prepare, _verify
OUT, MOST = os.environ.get("OUT", "."), float(os.environ.get("SECONDS_MOST", 235))
results = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda}
BF16 = torch.bfloat16


def save():
    with open(os.path.join(OUT, "result.json"), "w") as f:
        json.dump(results, f, indent=1)


gpu = L.Device(0)
assert gpu.why is None, gpu.why
both, only = (gpu.own, gpu.library), (gpu.own, None)


def device(models):
    og.clear()
    L.registry._devices[0] = L.Device(0, models)


# Kernels of every kind; which of them a size gets is drawn. What the family does not have for an epilogue is left out.
CONFIGS = ["64x32x64,8,6,1,", "64x160x64,8,6,1,", "128x256x64,12,4,1,cluster=2", "192x144x64,16,5,1,", "128x128x64,8,4,2,",
           "256x128x64,12,4,1,cluster=2", "128x256x64,12,4,1,stream_k=1", "128x64x128,8,4,1,cluster_n=2", "128x224x64,12,4,3,",
           "8x128x64,8,8,1,", "24x256x64,12,6,1,", "104x256x64,8,4,1,", "40x128x128,8,5,2,", "176x128x64,8,4,1,cluster=2",
           "72x256x64,12,4,1,stream_k=1", "16x128x64,8,8,4,", "56x128x64,8,6,1,cluster=2"]


def pick(text):
    tile, warps, stages, split, axes = text.split(",", 4)
    m, n, k = map(int, tile.split("x"))
    return types.SimpleNamespace(block_m=m, block_n=n, block_k=k, num_warps=int(warps), num_stages=int(stages),
                                 split_k=int(split), axes=axes)


def correctness():
    """Each epilogue at 20 sizes: our kernel beside float64, and PyTorch's own operators beside it."""
    device(only)
    random.seed(5); torch.manual_seed(5)
    kinds = [f"{b}{a}{r}".strip("+").replace("++", "+") for b in ("", "bias+") for a in ("", "relu", "gelu", "gelu_tanh", "silu",
             "gelu_gated", "gelu_tanh_gated", "silu_gated") for r in ("", "+residual")]
    kinds = sorted({k for k in kinds if "gated" in k or "residual" in k}) + ["adding", "bias+adding"]
    sizes = [(1, 3584, 1024), (7, 1000, 712), (101, 264, 520), (64, 2048, 512), (333, 1026, 264), (1024, 512, 4096), (5, 18, 64),
             (4097, 640, 136)] + [(random.randint(1, 900), 2 * random.randint(1, 700), 8 * random.randint(1, 200)) for _ in range(12)]
    jobs = []
    for kind in kinds:
        for m, n, k in sizes:
            dtype = random.choice((BF16, BF16, torch.float16))
            key = L.Key(0, n, k, _ops.DTYPES[dtype], _ops.DTYPES[dtype], trans_b=True, epilogue="" if kind == "adding" else kind.replace("+adding", ""),
                        adds="adding" in kind)
            jobs.append((kind, key, m, dtype, random.sample(CONFIGS, len(CONFIGS))))
    def load(job):
        kind, key, m, dtype, configs = job
        why = None
        for config in configs:
            try:
                return config, L.registry.layer(key)._load(m, pick(config))
            except Exception as e:
                why = str(e)
        return None, why
    device(only)
    L.registry.layer(jobs[0][1])
    with concurrent.futures.ThreadPoolExecutor(14) as pool:
        plans = list(pool.map(load, jobs))
    rows = []
    for (kind, key, m, dtype, _), (config, plan) in zip(jobs, plans):
        row = {"epilogue": kind, "m": m, "n": key.n, "k": key.k, "type": key.dtype, "config": config}
        rows.append(row)
        if config is None:
            row["failed"] = plan
            continue
        b, activation, last = _ops._layers.lib.parts_of(key.epilogue)
        make = lambda *s: torch.randn(s, device="cuda", dtype=dtype)
        x, w = make(m, key.k), make(key.n, key.k) / math.sqrt(key.k)
        columns = _ops.columns_of(key.n, activation)
        bias, r = make(key.n) if b else None, make(m, columns) if last or key.adds else None
        guard = 4096
        room = torch.full((guard + m * columns + guard,), 3.0, device="cuda", dtype=dtype)
        c = room[guard:guard + m * columns].view(m, columns)
        counters = torch.zeros(max(1, plan.counters), dtype=torch.uint8, device="cuda")
        partials = torch.empty(max(1, plan.partials), dtype=torch.uint8, device="cuda")
        alpha, beta = (0.5, 0.25) if key.adds else (1.0, 0.0)
        worst = 0.0
        D = lambda t: None if t is None else t.double()
        y = F.linear(D(x), D(w)) * alpha
        if b: y = y + D(bias)
        if key.adds: y = y + beta * D(r)
        want = _ops.ACTIVATIONS[activation](y) + (D(r) if last else 0)
        for again in range(2):  # the counters are left at zero
            plan.launch(x.data_ptr(), w.data_ptr(), c.data_ptr(), torch.cuda.current_stream().cuda_stream, bias.data_ptr() if b else 0,
                        counters.data_ptr(), partials.data_ptr(), alpha, beta, r.data_ptr() if r is not None else 0)
            torch.cuda.synchronize()
            over = ((c.double() - want).abs() / (1 + want.abs())).max().item()
            worst = max(worst, over if over == over else math.inf)
        outside = bool((room[:guard] != 3).any() or (room[guard + m * columns:] != 3).any())
        row.update(error=worst, outside=outside, right=worst < (1.6 / 256 if dtype == BF16 else 1.6 / 1024) and not outside)
        del x, w, c, room, partials
    done = [r for r in rows if "error" in r]
    results["correctness"] = {
        "kernels": len(done), "wrong": [r for r in rows if not r.get("right")], "worst": max(r["error"] for r in done),
        "by epilogue": {k: [sum(r.get("right", False) for r in rows if r["epilogue"] == k), sum(r["epilogue"] == k for r in rows),
                            max((r.get("error", 0) for r in rows if r["epilogue"] == k), default=None)] for k in kinds},
        "configs": {c: sum(r["config"] == c for r in rows) for c in CONFIGS}}
    print(json.dumps({k: v for k, v in results["correctness"].items() if k != "wrong"}), flush=True)
    for r in results["correctness"]["wrong"][:12]:
        print("WRONG", r, flush=True)
    save()


def graph(run, sets):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for s in sets[:2]:
            run(*s)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(LAUNCHES):
            run(*sets[i % len(sets)])
    g.replay()
    torch.cuda.synchronize()
    return g


LAUNCHES, ROUNDS = 12, 9
LAYERS = [  # name, K, N, what
    ("Qwen2-7B gate and up", 3584, 2 * 18944, "silu_gated"), ("Llama 3 8B gate and up", 4096, 2 * 14336, "silu_gated"),
    ("Gemma 7B gate and up", 3072, 2 * 24576, "gelu_tanh_gated"), ("BERT-large up", 1024, 4096, "bias+gelu"),
    ("BERT-large down", 4096, 1024, "bias+residual"), ("Qwen2-7B o_proj", 3584, 3584, "residual"),
    ("Llama 3 8B o_proj", 4096, 4096, "residual"), ("Qwen2-7B down", 18944, 3584, "residual")]


def speed():
    rows = results["speed"] = []
    device(only)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "8")
    torch.set_grad_enabled(False)
    for m in (16, 1024, 1, 64, 256, 4096):
        for name, k, n, what in LAYERS:
            if time.time() - T0 > MOST:
                rows.append({"layer": name, "m": m, "left out": "no time"}); save()
                continue
            b, activation, last = _ops._layers.lib.parts_of(what)
            make = lambda *s: torch.randn(s, device="cuda", dtype=BF16)
            copies = max(2, min(12, -(-120 * 2**20 // (n * k * 2))))
            columns = _ops.columns_of(n, activation)
            sets = [(make(m, k), make(n, k) / math.sqrt(k), make(n) if b else None, make(m, columns) if last else None) for _ in range(copies)]
            try:
                rows_ = og.prepare(sets[0][1], m=(m, m), bias=b, activation=activation, residual=last)
                function = _ops.ACTIVATIONS[activation]
                def plain(x, w, bias, r):
                    y = function(F.linear(x, w, bias))
                    return y if r is None else r + y
                def apart(x, w, bias, r):
                    h = w.shape[0] // 2
                    act = _ops.ACTIVATIONS[activation.removesuffix("_gated")]
                    return act(F.linear(x, w[:h])) * F.linear(x, w[h:])
                torch._dynamo.reset()
                runs = {"ours": lambda x, w, bias, r: _ops._linear_cuda(x, w, bias, activation, r), "eager": plain,
                        "compiled": torch.compile(plain, dynamic=False)}
                if activation.endswith("_gated"):
                    runs["compiled apart"] = torch.compile(apart, dynamic=False)
                    plain_layer = og.prepare(sets[0][1], m=(m, m))  # the product on our kernel, and one kernel of torch.compile
                    behind = torch.compile(function, dynamic=False)
                    runs["ours, gate apart"] = lambda x, w, bias, r: behind(_ops._linear_cuda(x, w))
                row = {"layer": name, "m": m, "n": n, "k": k, "epilogue": what, "kernel": [(r.kernel, r.why) for r in rows_]}
                x, w, bias, r = sets[0]
                want = plain(*(None if t is None else t.double() for t in sets[0]))
                row["errors"] = {n_: float((run(*sets[0]).double() - want).norm() / want.norm()) for n_, run in runs.items()}
                graphs = {n_: graph(run, sets) for n_, run in runs.items()}
                times = {n_: [] for n_ in runs}
                for _ in range(ROUNDS):
                    for n_, g in graphs.items():
                        times[n_].append(_verify._time(g) / LAUNCHES * 1e3)
                row["microseconds"] = {n_: statistics.median(t) for n_, t in times.items()}
                best = min(t for n_, t in row["microseconds"].items() if not n_.startswith("ours"))
                row["ours ÷ best other"] = row["microseconds"]["ours"] / best
                rows.append(row)
                print(m, name, what, row["kernel"], {a: round(t, 2) for a, t in row["microseconds"].items()}, f"{row['ours ÷ best other']:.3f}",
                      {a: f"{t:.1e}" for a, t in row["errors"].items()}, flush=True)
            except Exception as e:
                rows.append({"layer": name, "m": m, "failed": f"{type(e).__name__}: {e}"[:500]})
                print(m, name, rows[-1]["failed"], flush=True)
            del sets
            save()
    for what in sorted({r.get("epilogue", "") for r in rows} - {""}):
        ratios = [r["ours ÷ best other"] for r in rows if r.get("epilogue") == what]
        print(what, f"{math.exp(statistics.fmean(map(math.log, ratios))):.3f}", f"{min(ratios):.3f} {max(ratios):.3f}")


for section in sys.argv[1:] or ("correctness", "speed"):
    begin = time.time()
    try:
        globals()[section]()
    except Exception as e:
        results[section + " failed"] = f"{type(e).__name__}: {e}"[:1500]
        import traceback; traceback.print_exc()
    results[section + " seconds"] = time.time() - begin
    print(section, f"{time.time() - begin:.0f} s", flush=True)
    save()
