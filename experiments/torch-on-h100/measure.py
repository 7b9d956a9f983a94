"""origami_gemm.torch on a Hopper GPU. OUT=folder python3 measure.py [section ...]"""
import json, math, os, random, statistics, subprocess, sys, tempfile, threading, time
HERE = os.path.dirname(os.path.abspath(__file__))
T0 = time.time()
os.environ.setdefault("ORIGAMI_LIB", os.path.join(HERE, "liborigami.so"))
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
sys.path.insert(0, HERE)
import torch
T1 = time.time()
import origami_gemm.torch as og
from origami_gemm import Model, lib, _layers as L
from origami_gemm.torch import _ops, _verify
T2 = time.time()
OUT = os.environ.get("OUT", "/tmp")
F = torch.nn.functional
results = {}
DEADLINE = T0 + float(os.environ.get("SECONDS_MOST", 470))
# What a section may take of the time that is left when it begins, beside the sections that follow.
SHARES = {"environment": 10, "host": 15, "correctness": 200, "graphs": 40, "cache": 40, "speed": 120, "shapes": 90}
until = DEADLINE


def left():
    """Seconds of the running section."""
    return until - time.time()


def begin_section(name, following):
    global until
    rest = sum(SHARES.get(n, 60) for n in following)
    until = time.time() + (DEADLINE - time.time()) * SHARES.get(name, 60) / (SHARES.get(name, 60) + rest)


def spills():
    """Notes the kernels that origami_load refused because they have local memory."""
    refused.update((s.why, str(layer.key)) for layer in L.registry.layers() for s in layer.spans if s.why and "local memory" in s.why)


refused = set()


def own_only():
    """Every product on our kernels, whatever the library would take."""
    spills(); og.clear()
    gpu = L.registry._devices.get(0) or L.Device(0)
    assert gpu.why is None, gpu.why
    only = L.Device(0, (gpu.own, None))
    L.registry._devices[0] = only
    return gpu


def with_library(gpu):
    spills(); og.clear()
    L.registry._devices[0] = gpu


def geomean(x):
    return math.exp(statistics.fmean(map(math.log, x))) if x else float("nan")


def environment():
    d = L.Device(0)
    print(torch.cuda.get_device_name(), torch.__version__, "device", d.own and d.own.description["device"], d.why)
    print(f"import torch {T1 - T0:.2f} s, origami_gemm.torch {T2 - T1:.2f} s")
    x, w = torch.randn(16, 4096, device="cuda", dtype=torch.bfloat16), torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    begin = time.time(); og.linear(x, w); torch.cuda.synchronize(); print(f"first call (cuBLAS) {time.time() - begin:.3f} s")
    begin = time.time(); og.wait(); print(f"its octave's bands and kernels ready after {time.time() - begin:.2f} s")
    begin = time.time(); og.linear(x, w); torch.cuda.synchronize(); print(f"first launch of ours {time.time() - begin:.4f} s")
    print([r for r in og.explain()])
    p = torch.cuda.get_device_properties(0)
    results["environment"] = dict(name=p.name, torch=torch.__version__)


def correctness():
    """Ours against float64, beside PyTorch's own error."""
    gpu = own_only()
    random.seed(7); torch.manual_seed(7)
    worst, tried, ours = [], 0, 0
    asked, ask = [], L.worker.ask
    L.worker.ask = lambda layer, low, high: asked.append(layer)  # one size at a time
    def ready(size):
        for layer in asked:
            layer._asked.clear(); layer.prepare(size, size)
        asked.clear(); _ops._calls.clear()
    shapes = [(4608, 3584), (37888, 3584), (3584, 18944), (4096, 4096), (14336, 4096), (1024, 1024), (3072, 768), (2880, 2880),
              (1000, 712), (136, 4104)] + [(8 * random.randint(2, 640), 8 * random.randint(2, 640)) for _ in range(30)]
    acts = ["", "relu", "gelu", "gelu_tanh", "silu"]
    for i, (n, k) in enumerate(shapes):
        if left() < 8: print(f"  stopped early, at shape {i} of {len(shapes)}"); break
        dtype = (torch.bfloat16, torch.float16)[i % 2]
        for m in sorted({1, random.randint(2, 64), random.randint(65, 512), random.randint(513, 4096)}):
            form = random.choice(["linear", "linear", "mm", "mm_t", "addmm", "addmm2", "bmm"])
            act = random.choice(acts) if form == "linear" else ""
            make = lambda *s: torch.randn(s, device="cuda", dtype=dtype)
            x, w, bias, add = make(m, k), make(n, k), make(n), make(m, n)
            batch = 1
            if form == "linear":
                f = lambda: _ops._ops.linear(x, w, bias, act)
                want = _ops.ACTIVATIONS[act](x.double() @ w.double().t() + bias.double())
                theirs = lambda: _ops.ACTIVATIONS[act](F.linear(x, w, bias))
            elif form == "mm":
                b = w.t().contiguous(); f = lambda: og.mm(x, b); want = x.double() @ b.double(); theirs = lambda: torch.mm(x, b)
            elif form == "mm_t":
                a = make(k, max(8, m // 8 * 8)).t(); b = w.t(); f = lambda: og.mm(a, b); want = a.double() @ b.double(); theirs = lambda: torch.mm(a, b)
            elif form == "addmm":
                f = lambda: og.addmm(bias, x, w.t(), alpha=0.5); want = bias.double() + 0.5 * (x.double() @ w.double().t()); theirs = lambda: torch.addmm(bias, x, w.t(), alpha=0.5)
            elif form == "addmm2":
                f = lambda: og.addmm(add, x, w.t(), alpha=2, beta=0.5); want = 0.5 * add.double() + 2 * (x.double() @ w.double().t()); theirs = lambda: torch.addmm(add, x, w.t(), alpha=2, beta=0.5)
            else:
                mm_, nn = min(m, 300), min(n, 520)
                a, b = make(3, mm_, k), make(3, nn, k).transpose(1, 2); f = lambda: og.bmm(a, b); want = a.double() @ b.double(); theirs = lambda: torch.bmm(a, b)
            f(); ready(a.shape[-2] if form in ("mm_t", "bmm") else m)
            before = sum(r.calls for r in og.explain() if r.kernel)
            got, ref = f(), theirs()
            ran = sum(r.calls for r in og.explain() if r.kernel) > before
            scale = want.abs().mean()
            e, t = ((v.double() - want).abs().max() / scale for v in (got, ref))
            tried += 1; ours += ran
            bad = not torch.isfinite(got).all() or e > 1.5 * t + 2e-3
            worst.append((float(e / max(t, 1e-9)), form, act, m, n, k, str(dtype)))
            if bad or not ran:
                why = [r.why for r in og.explain() if r.why][-1:]
                print(f"  {'WRONG' if bad else 'not ours'}: {form} {act} m={m} n={n} k={k} {dtype} error {e:.2e}, PyTorch's {t:.2e} {why if not ran else ''}")
    worst.sort(reverse=True)
    print(f"correctness: {tried} products, {ours} on our kernels; largest error ÷ PyTorch's: {worst[:3]}")
    results["correctness"] = dict(tried=tried, ours=ours, worst=worst[:10])
    L.worker.ask = ask
    # NaN and infinity pass; fp8
    x, w = torch.randn(64, 512, device="cuda").half(), torch.randn(256, 512, device="cuda").half()
    x[3, 5] = float("nan"); x[9, 1] = float("inf")
    og.linear(x, w); og.wait(60); got, want = og.linear(x, w), F.linear(x, w)
    print("NaN and infinity pass:", torch.equal(got.isnan(), want.isnan()), torch.equal(got.isinf(), want.isinf()))
    a, b = (torch.randn(s, device="cuda").to(torch.float8_e4m3fn) for s in ((128, 1024), (512, 1024)))
    one = torch.tensor(0.5, device="cuda")
    og.scaled_mm(a, b.t(), one, one); og.wait(60)
    got, want = og.scaled_mm(a, b.t(), one, one), 0.25 * (a.double() @ b.double().t())
    ref = torch._scaled_mm(a, b.t(), one.cuda(), one.cuda(), out_dtype=torch.bfloat16)
    print(f"fp8: error {(got.double() - want).abs().max():.4f}, PyTorch's {(ref.double() - want).abs().max():.4f}", [r for r in og.explain() if "fp8" in r.layer])
    with_library(gpu)


def graphs():
    gpu = own_only()
    n = k = 4096
    ws = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / 64 for _ in range(8)]
    og.prepare(ws[0], m=(1, 128))
    for m in (1, 16, 48, 100, 128):
        x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        def run(f):
            y = x
            for w in ws: y = f(y, w)
            return y
        want = run(og.linear); torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g): y = run(og.linear)
        same = True
        for i in range(50):
            y.zero_(); g.replay(); torch.cuda.synchronize(); same &= torch.equal(y, want)
        x2 = torch.randn_like(x); x.copy_(x2); g.replay(); torch.cuda.synchronize()
        print(f"graph m={m}: 50 replays equal {same}, new input close {torch.allclose(y, run(F.linear), rtol=0.1, atol=0.05)}",
              [str(L.registry.layers()[0].plan(m).pick)])
    # threads and streams on kernels that share tiles
    failed = []
    plans = [(m, L.registry.layers()[0].plan(m)) for m in range(1, 129)]
    shared = [m for m, p in plans if isinstance(p, L.Plan) and p.counters]
    ms = (shared or [1, 16, 64, 128])[:8]
    print("sizes whose kernel has a workspace:", len(shared))
    want = {m: og.linear(torch.ones(m, k, device="cuda", dtype=torch.bfloat16), ws[0]) for m in ms}
    torch.cuda.synchronize()
    def work(seed):
        s = torch.cuda.Stream()
        with torch.cuda.stream(s):
            for i in range(400):
                m = ms[(i + seed) % len(ms)]
                y = og.linear(torch.ones(m, k, device="cuda", dtype=torch.bfloat16), ws[0])
                if i % 20 == 0 and not torch.equal(y, want[m]): failed.append(m)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print("eight threads and streams: wrong", len(failed))
    # compile
    f = torch.compile(lambda x: og.linear(x, ws[0], None, "gelu") + 1, dynamic=True)
    ok = all(torch.allclose(f(x), F.gelu(F.linear(x, ws[0])) + 1, rtol=0.05, atol=0.05) for x in (torch.randn(m, k, device="cuda", dtype=torch.bfloat16) for m in (5, 17, 64)))
    print("torch.compile with a dynamic M:", ok)
    # training
    lin = ws[1].clone().requires_grad_(); x = torch.randn(64, k, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    for act in (None, "gelu"):
        g1 = torch.autograd.grad(og.linear(x, lin, None, act).float().square().mean(), (x, lin))
        g2 = torch.autograd.grad(_ops.ACTIVATIONS[act or ""](F.linear(x, lin)).float().square().mean(), (x, lin))
        print("gradients close:", [float((a - b).abs().max() / b.abs().max()) for a, b in zip(g1, g2)])
    # memory
    torch.cuda.synchronize(); before = torch.cuda.memory_allocated()
    x = torch.randn(128, k, device="cuda", dtype=torch.bfloat16)
    for i in range(20000): og.linear(x[:1 + i % 128], ws[i % 8])
    torch.cuda.synchronize(); del x
    print(f"20,000 calls: {torch.cuda.memory_allocated() - before} bytes more are allocated")
    with_library(gpu)


def host():
    gpu = own_only()
    x, w = torch.randn(16, 1024, device="cuda", dtype=torch.bfloat16), torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
    wt = w.t()
    og.mm(x, wt); og.linear(x, w); og.wait(60)
    y = torch.empty(16, 1024, device="cuda", dtype=torch.bfloat16)
    plan = L.registry.layers()[0].plan(16)
    zeros = torch.zeros(1 << 22, device="cuda", dtype=torch.uint8)
    s = torch.cuda.current_stream().cuda_stream
    for name, f in (("torch.mm", lambda: torch.mm(x, wt)), ("og.mm", lambda: og.mm(x, wt)), ("torch.ops.origami_gemm.mm", lambda: torch.ops.origami_gemm.mm(x, wt)),
                    ("F.linear", lambda: F.linear(x, w)), ("og.linear", lambda: og.linear(x, w)), ("the operator's function", lambda: _ops._mm_cuda(x, wt)),
                    ("Plan.launch", lambda: plan.launch(x.data_ptr(), w.data_ptr(), y.data_ptr(), s, 0, zeros.data_ptr(), zeros.data_ptr() + (1 << 21))),
                    ("new_empty", lambda: x.new_empty((16, 1024))), ("no call", lambda: None)):
        best = []
        with torch.no_grad():
            for _ in range(60):
                torch.cuda.synchronize(); begin = time.perf_counter()
                for _ in range(200): f()
                best.append((time.perf_counter() - begin) / 200 * 1e6)
        torch.cuda.synchronize()
        print(f"host {name}: median {statistics.median(best):.2f} us, least {min(best):.2f} us")
        results.setdefault("host", {})[name] = statistics.median(best)
    with_library(gpu)


LAYERS = [(4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944), (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336),
          (3072, 1024), (1024, 4096), (2880, 2880)]
SIZES = (1, 4, 16, 48, 64, 100, 128, 200, 256, 512, 1000, 2048, 3000, 4096)


def speed():
    """Time ÷ cuBLAS in graphs with cold weights: our kernel everywhere, and what the model decides."""
    rows, took = [], []
    gpu = L.Device(0)
    for i, (n, k) in enumerate(LAYERS):
        if left() < 8: print(f"  stopped early, at layer {i} of {len(LAYERS)}"); break
        dtype = torch.bfloat16 if i % 4 else torch.float16
        w = torch.randn(n, k, device="cuda", dtype=dtype)
        with_library(gpu)
        begin = time.time(); told = og.prepare(w, m=(1, 4096)); took.append(time.time() - begin)
        choice = {m: isinstance(L.registry.layer(_p.key_of_weight(w, False, "")).plan(m), L.Plan) for m in SIZES}
        kernels = len({r.kernel for r in told if r.kernel})
        regret = max(r.mean_regret for r in told)
        decided = L.registry.layers()[0]
        own_only()
        alone = L.registry.layer(decided.key)
        line = []
        for m in SIZES:
            if left() < 3: break
            if choice[m]:
                alone.spans = [s for s in decided.spans if s.band.m_low <= m <= s.band.m_high]
                alone.plans.clear(); _ops._calls.clear()
            else:
                alone.spans = []; alone.prepare(m, m); _ops._calls.clear()
            if not isinstance(alone.plan(m), L.Plan):
                print(f"  n={n} k={k} m={m}: not ours: {alone.plan(m)}"); refused.add((alone.plan(m), str(alone.key))); continue
            ratio = _verify._measure(alone, w, m)
            rows.append((n, k, str(dtype), m, choice[m], ratio, str(alone.plan(m).pick)))
            line.append(f"{m}:{ratio:.3f}{'' if choice[m] else 'c'}")
        print(f"n={n} k={k} {str(dtype)[6:]}: prepared in {took[-1]:.1f} s, {len(told)} bands, {kernels} kernels | " + " ".join(line), flush=True)
        del w; torch.cuda.empty_cache()
    with_library(gpu)
    ours = [r[5] for r in rows]; taken = [r[5] if r[4] else 1.0 for r in rows]
    lost = [r for r in rows if r[4] and r[5] > 1]; missed = [r for r in rows if not r[4] and r[5] < 1]
    print(f"time / cuBLAS (below 1 is a win; c: the model takes cuBLAS): {len(rows)} sizes, our kernels {geomean(ours):.4f}, decided {geomean(taken):.4f}, worst decided {max(taken):.3f}")
    for name, f in (("m <= 128", lambda m: m <= 128), ("m > 128", lambda m: m > 128)):
        print(f"  {name}: our kernels {geomean([r[5] for r in rows if f(r[3])]):.4f}, decided {geomean([t for r, t in zip(rows, taken) if f(r[3])]):.4f}")
    print(f"  taken though slower: {len(lost)}, worst {sorted(lost, key=lambda r: -r[5])[:5]}")
    print(f"  left to cuBLAS though faster: {len(missed)}, best {sorted(missed, key=lambda r: r[5])[:5]}")
    print(f"  slower than 1.5 of cuBLAS (a kernel that spills?): {[r for r in rows if r[5] > 1.5]}")
    print("  | n | k | type | " + " | ".join(map(str, SIZES)) + " |   time / cuBLAS; (in brackets: the model takes cuBLAS)")
    by = {}
    for r in rows: by.setdefault(r[:3], {})[r[3]] = f"{r[5]:.2f}" if r[4] else f"({r[5]:.2f})"
    for (n, k, dtype), cells in by.items(): print(f"  | {n} | {k} | {dtype[6:]} | " + " | ".join(cells.get(m, "") for m in SIZES) + " |")
    results["speed"] = rows


def cache():
    """A second process finds the kernels in the driver's cache."""
    program = ("import time, torch, origami_gemm.torch as og; w = torch.randn(4096, 4096, device='cuda', dtype=torch.bfloat16); t = time.time(); "
               "rows = og.prepare(w, m=(1, 256)); print(f'{len({r.kernel for r in rows if r.kernel})} kernels prepared in {time.time() - t:.2f} s')")
    folder = tempfile.mkdtemp()
    for what in ("empty", "filled"):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": folder, "CUDA_CACHE_PATH": os.path.join(folder, "nv"), "PYTHONPATH": ":".join([HERE, os.environ.get("PYTHONPATH", "")])})
        print(what, "cache:", done.stdout.strip(), done.stderr.strip()[-500:])
    w = torch.nn.Linear(4096, 4096, bias=True, device="cuda", dtype=torch.bfloat16)
    begin = time.time(); rows = og.prepare(w, m=(1, 512), verify=True)
    print(f"verify: {time.time() - begin:.1f} s;", [(r.m_low, r.m_high, r.kernel, r.why) for r in rows])


def shapes():
    """10,000 shapes in one process: no memory is lost, and every fiftieth result is compared."""
    draw, wrong, checked, first = random.Random(5), 0, 0, None
    layers = [(8 * draw.randint(16, 512), 8 * draw.randint(16, 512)) for _ in range(40)]
    ws = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for n, k in layers]
    begin = time.time()
    for w in ws: og.prepare(w, m=(1, 4096))
    print(f"40 layers prepared in {time.time() - begin:.1f} s, {len({(r.layer, r.kernel) for r in og.explain() if r.kernel})} kernels", flush=True)
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    sizes = [(i % 40, draw.randint(1, 4096)) for i in range(10000)]
    memory = lambda: (torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0],
                      int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    with torch.no_grad():
        for turn in range(3):
            begin = time.time()
            for j, (i, m) in enumerate(sizes):
                a = x[:m, :layers[i][1]]
                y = og.linear(a, ws[i])
                if turn == 0 and j % 50 == 0:
                    checked += 1; wrong += not torch.allclose(y, F.linear(a, ws[i]), rtol=0.05, atol=0.5)
            del y; torch.cuda.synchronize()
            print(f"turn {turn}: {len(set(sizes))} shapes, {time.time() - begin:.1f} s, allocated, free and resident bytes {memory()}", flush=True)
    print("calls on our kernels:", sum(r.calls for r in og.explain() if r.kernel), "results compared:", checked, "wrong:", wrong)
    # a module that moves and is loaded again
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).to("cuda", torch.bfloat16)
    og.use(net, m=(1, 64)); a = torch.randn(48, 1024, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        want = net(a); net.cpu(); net.cuda(); same = torch.equal(net(a), want)
        state = {k: v.clone() for k, v in net.state_dict().items()}
        for p in net.parameters(): p.zero_()
        zero = not net(a).any(); net.load_state_dict(state)
        print("a module that moved and was loaded again:", same, bool(zero), torch.equal(net(a), want))


from origami_gemm.torch import _prepare as _p
wanted = sys.argv[1:] or ["environment", "host", "correctness", "graphs", "cache", "speed"]
for i, name in enumerate(wanted):
    begin = time.time()
    begin_section(name, wanted[i + 1:])
    print(f"== {name}", flush=True)
    try:
        globals()[name]()
    except Exception:
        import traceback; traceback.print_exc(file=sys.stdout)
    spills()
    print(f"== {name}: {time.time() - begin:.0f} s of {until - begin:.0f}", flush=True)
    with open(os.path.join(OUT, "torch.json"), "w") as file:
        json.dump(results, file)
print("kernels refused for local memory:", len(refused), sorted(refused)[:5])
