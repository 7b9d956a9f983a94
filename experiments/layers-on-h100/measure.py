"""Untimed picks of wgmma beside PyTorch, for layers of eight public models: in CUDA graphs with cold weights, in turns.
SEED=27 python3 experiments/run.py layers-on-h100 [layers=seconds fp8=seconds drawn=seconds epilogues=seconds]"""
import math, os, random, sys, time
import bench
import torch
from origami_gemm import _layers as L
from origami_gemm.errors import Error
from origami_gemm.torch import _ops

F = torch.nn.functional
FP8 = torch.float8_e4m3fn
NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", FP8: "fp8"}
# N and K of the layers, from each model's config.json: q, k and v together, o, gate and up together, down.
MODELS = {
    "Qwen3-8B": [(6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288)],
    "Qwen3-32B": [(10240, 5120), (5120, 8192), (51200, 5120), (5120, 25600)],
    "Llama 3.2 3B": [(5120, 3072), (3072, 3072), (16384, 3072), (3072, 8192)],
    "Gemma 2 9B": [(8192, 3584), (3584, 4096), (28672, 3584), (3584, 14336)],
    "Phi-4": [(7680, 5120), (5120, 5120), (35840, 5120), (5120, 17920)],
    "Mistral NeMo": [(6144, 5120), (5120, 4096), (28672, 5120), (5120, 14336)],
    "gpt-oss-20b": [(5120, 2880), (2880, 4096)],
    "SigLIP so400m": [(3456, 1152), (1152, 1152), (4304, 1152), (1152, 4304)],
}
# Layers with a bias and a GELU behind it: N, K.
ENCODERS = [(4304, 1152), (4096, 1024), (3072, 768), (5120, 1280), (6400, 1600), (12288, 3072), (16384, 4096)]
draw, rows = random.Random(int(os.environ.get("SEED", 27))), {}


def keep(name, row):
    rows.setdefault(name, []).append(row)
    bench.save(name, rows[name])


def sizes(count, most=8192):
    """Sizes M from 1 to the most, one in each part of the octaves."""
    octaves = math.log2(most)
    return [max(1, round(2 ** (octaves * (i + draw.random()) / count))) for i in range(count)]


def times(layer, m, others, rounds=5):
    """Microseconds of our pick and of others, in turns, and what is known of the pick. Results are compared with the first
    of the others'."""
    key, device = layer.key, layer.device
    pick = layer._model()._ranked(key.problem(m), 1)[0]
    plan = layer._load(m, pick)
    dtype = next(t for t, name in NAMES.items() if name == key.dtype)
    make = lambda *s: torch.randn(s, device="cuda", dtype=torch.bfloat16).to(dtype)
    bytes_of = key.n * key.k * dtype.itemsize
    copies = max(2, min(-(-100 * 2**20 // bytes_of), (1 << 30) // bytes_of))
    x, ws = make(m, key.k), [make(key.n, key.k) for _ in range(copies)]
    row = torch.rand(m, 1, device="cuda") + 0.5
    column, bias = torch.rand(1, key.n, device="cuda") + 0.5, torch.randn(key.n, device="cuda", dtype=torch.bfloat16).to(
        torch.bfloat16 if dtype == FP8 else dtype)
    out = torch.empty(m, key.n, device="cuda", dtype=bias.dtype)
    zeros, room = (torch.zeros(max(16, n), device="cuda", dtype=torch.uint8) for n in (plan.counters, plan.partials))
    scales = (row.data_ptr(), column.data_ptr(), 1, 1) if "scales" in key.epilogue else _ops.NO_SCALES
    def ours(w):
        plan.launch(x.data_ptr(), w.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream,
                    bias.data_ptr() if "bias" in key.epilogue else 0, zeros.data_ptr(), room.data_ptr(), scales=scales)
    runs = {"ours": ours} | {name: lambda w, f=f: f(x, w, bias, row, column) for name, f in others.items()}
    # A graph of at most some 20 ms.
    launches = max(2, min(24, int(20e-3 / (2 * m * key.n * key.k / 5e14 + bytes_of / 3e12 + 1e-6))))
    with torch.no_grad():
        want = next(iter(others.values()))(x, ws[0], bias, row, column).float()
        out.fill_(float("nan"))
        ours(ws[0])
        off = float((out.float() - want).abs().max() / want.abs().max())
        cold = [ws[i % copies] for i in range(launches)]
        graphs = {name: bench.graph([lambda w=w, run=run: run(w) for w in cold]) for name, run in runs.items()}
        us = {name: t / launches * 1e6 for name, t in bench.in_turns({n: g.replay for n, g in graphs.items()}, rounds).items()}
    try:
        library = device.library.select(m, key.n, key.k, dtype=key.dtype, trans_b=True, out_dtype=key.out_dtype).seconds * 1e6
    except Error:
        library = None
    band = layer._model().bands([m], key.n, key.k, dtype=key.dtype, trans_b=True, out_dtype=key.out_dtype, epilogue=key.epilogue,
                                library=True)[0]
    return dict(m=m, n=key.n, k=key.k, dtype=key.dtype, pick=str(pick), predicted=pick.seconds * 1e6, library=library,
                taken=band.pick is not None, off=off, **us)


def run(name, device, model, n, k, m, dtype, others, epilogue="", promote=False):
    out = "bf16" if dtype is FP8 else NAMES[dtype]
    layer = L.Layer(L.Key(0, n, k, NAMES[dtype], out, False, True, epilogue=epilogue, promote=promote), device)
    try:
        row = dict(model=model, **times(layer, m, others))
    except Exception as e:
        row = dict(model=model, m=m, n=n, k=k, dtype=NAMES[dtype], why=f"{type(e).__name__}: {e}"[:300])
        print(row, flush=True)
    if row.get("off", 0) > 0.02 or row.get("off") != row.get("off"):
        print("WRONG", row, flush=True)
    keep(name, row)
    torch.cuda.empty_cache()


def linear(x, w, bias, row, column):
    return F.linear(x, w)


def lt(x, w, bias, row, column):
    """The other of PyTorch's two libraries: its products go to cuBLAS, and those of this kind to cuBLASLt."""
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library("cublaslt")
    y = F.linear(x, w)
    torch.backends.cuda.preferred_blas_library(before)
    return y


def layers(end, device):
    todo = [(model, n, k, m, dtype) for model, shapes in MODELS.items() for n, k in shapes
            for dtype, count in ((torch.bfloat16, 5), (torch.float16, 3)) for m in sizes(count)]
    draw.shuffle(todo)
    for model, n, k, m, dtype in todo:
        if time.time() > end:
            return
        run("layers", device, model, n, k, m, dtype, dict(cublas=linear, cublaslt=lt))


def fp8(end, device):
    todo = [(model, n, k, m) for model, shapes in MODELS.items() for n, k in shapes for m in sizes(4)]
    draw.shuffle(todo)
    rowwise = lambda x, w, bias, row, column: torch._scaled_mm(x, w.t(), row, column, out_dtype=torch.bfloat16)
    for model, n, k, m in todo:
        if time.time() > end:
            return
        run("fp8", device, model, n, k, m, FP8, dict(cublas=rowwise), "scales", promote=True)


def drawn(end, device):
    """Sizes that are multiples of 8, from 64 to 8192."""
    while time.time() < end:
        m, n, k = (8 * round(2 ** draw.uniform(3, 10)) for _ in range(3))
        if m * n * k < 2e11:
            run("drawn", device, "", n, k, m, draw.choice([torch.bfloat16, torch.float16]), dict(cublas=linear, cublaslt=lt))


def epilogues(end, device):
    exact = torch.compile(lambda x, w, bias: F.gelu(F.linear(x, w, bias)), dynamic=True)
    tanh = torch.compile(lambda x, w, bias: F.gelu(F.linear(x, w, bias), approximate="tanh"), dynamic=True)
    todo = [(n, k, m, kind) for n, k in ENCODERS for m in sizes(6) for kind in ("bias+gelu", "bias+gelu_tanh")]
    draw.shuffle(todo)
    for n, k, m, kind in todo:
        if time.time() > end:
            return
        compiled = exact if kind == "bias+gelu" else tanh
        others = dict(compiled=lambda x, w, bias, row, column: compiled(x, w, bias))
        if kind == "bias+gelu_tanh":
            others["fused"] = lambda x, w, bias, row, column: torch._addmm_activation(bias, x, w.t(), use_gelu=True)
        run("epilogues", device, kind, n, k, m, torch.bfloat16, others, kind)


if __name__ == "__main__":
    device = L.Device(0)
    assert device.why is None, device.why
    print(torch.cuda.get_device_name(), torch.__version__, device.own.description["device"], flush=True)
    for one in sys.argv[1:] or ["layers=220", "fp8=100", "drawn=60", "epilogues=60"]:
        name, _, seconds = one.partition("=")
        begin = time.time()
        globals()[name](begin + float(seconds), device)
        got = [r for r in rows.get(name, []) if "ours" in r]
        for other in ("cublas", "cublaslt", "compiled", "fused"):
            ratio = [r[other] / r["ours"] for r in got if other in r]
            if ratio:
                decided = [r[other] / r["ours"] if r["taken"] else 1 for r in got if other in r]
                print(f"{name}: {other}'s time ÷ ours {bench.geomean(ratio):.4f}, worst {min(ratio):.3f}, of {len(ratio)}; as "
                      f"decided {bench.geomean(decided):.4f}, worst {min(decided):.3f}", flush=True)
        print(f"{name}: {time.time() - begin:.0f} s", flush=True)
