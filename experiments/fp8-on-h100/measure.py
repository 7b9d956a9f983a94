"""fp8 with scales per row and column on a Hopper GPU: products alone, kernels beside their predictions, and a decoder under
torch.compile. OUT=folder python3 measure.py [decoders products kernels small]. TOKENS=1,64 are those of the decoder.
small is for compute-sanitizer."""
import copy, json, math, os, statistics, sys, time
import torch
import torch.nn.functional as F
import origami_gemm.torch as og
from origami_gemm._layers import Layer, registry
from origami_gemm.torch import _ops
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models-on-h100"))
OUT, START = os.environ.get("OUT", "."), time.time()
FP8 = torch.float8_e4m3fn
torch.manual_seed(1)
LAYERS = {"qkv": (6144, 4096), "out": (4096, 4096), "up": (28672, 4096), "down": (4096, 14336)}  # N, K of Llama 3 8B
SIZES = (1, 16, 64, 128, 512, 3000)
TOKENS = [int(t) for t in os.environ.get("TOKENS", "1,16,64,3000").split(",")]
PARTS = sys.argv[1:] or ["decoders", "products", "kernels"]
rows = []


def keep(row):
    rows.append(row)
    print(json.dumps(row), flush=True)
    with open(os.path.join(OUT, "-".join(PARTS) + ".json"), "w") as f:
        json.dump(rows, f, indent=1)


def graph(run, number):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(min(number, 3)):
            run(i)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(number):
            run(i)
    g.replay()
    return g


def seconds(g, number=1):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(number):
        g.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / number


def alone():
    """The device with our kernels at every size."""
    registry.layer(_ops.Key(0, 64, 64, "fp8"))
    one = copy.copy(registry._devices[0])
    one.library = None
    return one


def operands(m, n, k, copies):
    a = torch.randn(m, k, device="cuda").to(FP8)
    ws = [torch.randn(n, k, device="cuda").to(FP8).t() for _ in range(copies)]
    return a, ws, 10 ** (3 * torch.rand(m, 1, device="cuda") - 2), 10 ** (3 * torch.rand(1, n, device="cuda") - 2)


def launcher(plan, a, n, scales, dtype=torch.bfloat16):
    c = torch.empty(a.shape[0], n, device="cuda", dtype=dtype)
    counters = torch.zeros(max(1, plan.counters), device="cuda", dtype=torch.uint8)
    partials = torch.empty(max(1, plan.partials), device="cuda", dtype=torch.uint8)
    row, column = scales
    def run(w):
        plan.launch(a.data_ptr(), w.data_ptr(), c.data_ptr(), torch.cuda.current_stream().cuda_stream, 0, counters.data_ptr(),
                    partials.data_ptr(), scales=(row.data_ptr(), column.data_ptr(), int(row.numel() > 1), int(column.numel() > 1)))
        return c
    return run


def off(got, want, scales):
    s = scales[0].double() * scales[1].double()
    return float(((got.double() - want) / s).norm() / (want / s).norm())


def products(device, number=24, rounds=7):
    """Our pick beside torch._scaled_mm, scales per row and column and of one element, with cold weights."""
    for name, (n, k) in LAYERS.items():
        copies = max(2, min(8, -(-100_000_000 // (n * k))))
        for m in SIZES:
            a, ws, *each = operands(m, n, k, copies)
            one = torch.ones((), device="cuda"), torch.ones((), device="cuda")
            for fast in (False, True):
                for kind, scales in (("rows", each), ("one", one)):
                    key, _ = _ops.key_of(a, ws[0], None, "", False, torch.bfloat16, scaled=True, promote=not fast)
                    layer = Layer(key, device)
                    layer.prepare(m, m)
                    plan = layer.plan(m)
                    row = {"product": name, "m": m, "n": n, "k": k, "fast": fast, "scales": kind}
                    if isinstance(plan, str):
                        keep(row | {"why": plan})
                        continue
                    ours = launcher(plan, a, n, scales)
                    theirs = lambda w: torch._scaled_mm(a, w, *scales, out_dtype=torch.bfloat16, use_fast_accum=fast)
                    cublas = device.cublas.select(m, n, k, dtype="fp8", trans_b=True, out_dtype="bf16")
                    want = (a.double() @ ws[0].double()) * scales[0].double() * scales[1].double()
                    errors = off(ours(ws[0]), want, scales), off(theirs(ws[0]), want, scales)
                    del want
                    graphs = [graph(lambda i, run=run: run(ws[i % copies]), number) for run in (ours, theirs)]
                    times = [[seconds(g) / number for g in graphs] for _ in range(rounds)]
                    ours_s, theirs_s = (statistics.median(t[i] for t in times) for i in (0, 1))
                    keep(row | {"kernel": str(plan.pick), "predicted": plan.pick.seconds, "ours": ours_s, "theirs": theirs_s,
                                "cublas_predicted": cublas.seconds,
                                "ratio": theirs_s / ours_s, "error": errors[0], "their_error": errors[1]})
                    del graphs
            del a, ws
            torch.cuda.empty_cache()


def kernels(device, top=10, number=24, rounds=5):
    """The leading kernels with promoted sums and without, scaled and not, beside their predictions."""
    for m, n, k in ((16, 4096, 4096), (64, 28672, 4096), (128, 4096, 14336), (512, 6144, 4096), (3000, 6144, 4096), (3000, 4096, 14336)):
        copies = max(2, min(8, -(-100_000_000 // (n * k))))
        a, ws, *each = operands(m, n, k, copies)
        for promote in (True, False):
            key, _ = _ops.key_of(a, ws[0], None, "", False, torch.bfloat16, scaled=True, promote=promote)
            model = device.promoting() if promote else device.own
            layer = Layer(key, device)
            for pick in model.rank(m, n, k, dtype="fp8", out_dtype="bf16", trans_b=True, top=top):
                row = {"kernels": f"{m}x{n}x{k}", "promote": promote, "kernel": str(pick), "predicted": pick.seconds}
                try:
                    run = launcher(layer._load(m, pick), a, n, each)
                    g = graph(lambda i: run(ws[i % copies]), number)
                    keep(row | {"seconds": statistics.median(seconds(g) / number for _ in range(rounds))})
                except Exception as e:
                    keep(row | {"why": str(e)[:300]})


def small(device):
    """Each kind of kernel once, at edges within tiles."""
    for m, n, k in ((5, 80, 272), (70, 200, 400), (130, 264, 1040)):
        a, (w,), *each = operands(m, n, k, 1)
        for promote in (True, False):
            key, _ = _ops.key_of(a, w, None, "", False, torch.bfloat16, scaled=True, promote=promote)
            model = device.promoting() if promote else device.own
            for pick in model.rank(m, n, k, dtype="fp8", out_dtype="bf16", trans_b=True, top=3):
                got = launcher(Layer(key, device)._load(m, pick), a, n, each)(w)
                torch.cuda.synchronize()
                want = (a.float() @ w.float()) * each[0] * each[1]
                keep({"small": f"{m}x{n}x{k}", "promote": promote, "kernel": str(pick), "error": off(got, want.double(), each)})


def decoders(_, rounds=15):
    source = open(os.path.join(sys.path[0], "measure.py")).read().split("\ndef cases():")[0]
    parts = {"__name__": "parts", "__file__": os.path.join(sys.path[0], "measure.py")}
    os.environ.setdefault("ORIGAMI_LIB", "")
    exec(compile(source, "measure.py", "exec"), parts)
    Stack, Decoder, quantized = parts["Stack"], parts["Decoder"], parts["quantized"]
    for t in TOKENS:
        exact = Stack(Decoder(4096, 14336, 32, 8, False) for _ in range(6)).to("cuda", torch.bfloat16)
        x = torch.randn(t, 4096, device="cuda", dtype=torch.bfloat16)
        cache = None if t == 3000 else torch.randn(t, 8, 256, 128, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            want = copy.deepcopy(exact).double()(x.double(), cache if cache is None else cache.double())
            for fast in (True, False):
                row, graphs = {"decoder": "Llama 3 8B, 6 layers", "tokens": t, "fast": fast}, {}
                try:
                    model = quantized(copy.deepcopy(exact), fast)
                    for kind in ("theirs", "ours"):
                        og.clear()
                        torch._dynamo.reset()
                        if kind == "ours":
                            og.use(model, m=(t, t))
                        begin, run = time.time(), torch.compile(model)
                        y = run(x, cache)
                        torch.cuda.synchronize()
                        row[kind + "_first"] = time.time() - begin
                        row[kind + "_error"] = float((y.double() - want).norm() / want.norm())
                        graphs[kind] = graph(lambda i: run(x, cache), 1)
                        row[kind + "_kernels"] = sorted({f"{r.layer}: {r.kernel or r.why}" for r in og.explain() if r.m_low})
                    og.restore(model)
                    number = max(3, int(0.02 / seconds(graphs["theirs"], 3)))
                    times = {kind: [] for kind in graphs}
                    for _ in range(rounds):
                        for kind, g in graphs.items():
                            times[kind].append(seconds(g, number))
                    row |= {kind: statistics.median(v) for kind, v in times.items()}
                    row["step"] = row["ours"] / row["theirs"]
                except Exception as e:  # the others go on
                    og.restore(model)
                    row["failed"] = f"{type(e).__name__}: {e}"[:600]
                keep(row)
                del graphs
                torch.cuda.empty_cache()
        del exact, want


device = alone()
device.cublas = registry._devices[0].library
keep({"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda, "why": device.why})
for part in PARTS:
    globals()[part](device)
    keep({"part": part, "seconds": time.time() - START})
ratios = [r["ratio"] for r in rows if "ratio" in r]
if ratios:
    keep({"products": len(ratios), "mean ratio": math.exp(statistics.fmean(map(math.log, ratios))), "worst": min(ratios)})
