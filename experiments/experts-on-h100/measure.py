"""Brute force over the space of vLLM's tuner for layers of experts, and for dense products with scales per block.

The kernels here have the semantics of vLLM's fused_moe and w8a8_block_fp8_matmul: rows of A are gathered by a sorted
index, each expert's rows are padded to BLOCK_M, K is masked, router weights come last; scales per 1x128 and 128x128 are
applied inside the loop. Times go to OUT/times.csv as they come: µs of the products up and down of a layer, each in a CUDA
graph over several random routings. PICKS is a file of kernels to time besides: by device, layer and tokens.

    python3 measure.py bf16 fp8 block dense      # the parts to do; LIMIT seconds in all
"""
import concurrent.futures as futures, csv, itertools, json, multiprocessing, os, sys, time

import numpy as np
import torch
import triton
import triton.language as tl

BEGUN = time.time()
LIMIT, OUT = float(os.environ.get("LIMIT", "560")), os.environ.get("OUT", ".")
FP8 = torch.float8_e4m3fn


@triton.jit(do_not_specialize=["valid", "top_k", "stride_as", "stride_bse", "stride_bsn", "group_m"])
def experts(a, b, c, a_scale, b_scale, weights, rows, owners, padded, n, k, em, valid, top_k, stride_am, stride_be,
            stride_bn, stride_cm, stride_as, stride_bse, stride_bsn, group_m, GROUP: tl.constexpr, SCALED: tl.constexpr,
            BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """GROUP is 128 for scales per block, and 0 otherwise; SCALED says that the operands have a scale each."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(em, BLOCK_M), tl.cdiv(n, BLOCK_N)
    wide = group_m * tiles_n
    first = pid // wide * group_m
    height = min(tiles_m - first, group_m)
    tile_m, tile_n = first + pid % wide % height, pid % wide // height
    if tile_m * BLOCK_M >= tl.load(padded):
        return
    row = tl.load(rows + tile_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    there = row < valid
    owner = tl.load(owners + tile_m).to(tl.int64)
    col = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)) % n
    step = tl.arange(0, BLOCK_K)
    pa = a + (row[:, None] // top_k * stride_am + step[None, :])
    pb = b + owner * stride_be + (step[:, None] + col[None, :] * stride_bn)
    if GROUP > 0:
        sa, sb = a_scale + row // top_k * stride_as, b_scale + owner * stride_bse + col // GROUP * stride_bsn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, tl.cdiv(k, BLOCK_K)):
        x = tl.load(pa, mask=there[:, None] & (step[None, :] < k - i * BLOCK_K), other=0.0)
        y = tl.load(pb, mask=step[:, None] < k - i * BLOCK_K, other=0.0)
        if GROUP > 0:
            at = i * BLOCK_K // GROUP
            acc += tl.dot(x, y) * tl.load(sa + at, mask=there, other=0.0)[:, None] * tl.load(sb + at)[None, :]
        elif SCALED:
            acc = tl.dot(x, y, acc=acc)
        else:
            acc += tl.dot(x, y)
        pa += BLOCK_K
        pb += BLOCK_K
    if SCALED and GROUP == 0:
        acc *= tl.load(a_scale) * tl.load(b_scale + owner)
    acc *= tl.load(weights + row, mask=there, other=0)[:, None]
    out = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c + stride_cm * row[:, None] + out[None, :], acc.to(tl.bfloat16), mask=there[:, None] & (out[None, :] < n))


@triton.jit(do_not_specialize=["m", "stride_as", "stride_bs", "group_m"])
def dense(a, b, c, a_scale, b_scale, m, n, k, stride_am, stride_bn, stride_cm, stride_as, stride_bs, group_m,
          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    wide = group_m * tiles_n
    first = pid // wide * group_m
    height = min(tiles_m - first, group_m)
    tile_m, tile_n = first + pid % wide % height, pid % wide // height
    row = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    col = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    step = tl.arange(0, BLOCK_K)
    pa, pb = a + (row[:, None] * stride_am + step[None, :]), b + (step[:, None] + col[None, :] * stride_bn)
    sa, sb = a_scale + row * stride_as, b_scale + col // 128 * stride_bs
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, tl.cdiv(k, BLOCK_K)):
        x = tl.load(pa, mask=step[None, :] < k - i * BLOCK_K, other=0.0)
        y = tl.load(pb, mask=step[:, None] < k - i * BLOCK_K, other=0.0)
        at = i * BLOCK_K // 128
        acc += tl.dot(x, y) * tl.load(sa + at)[:, None] * tl.load(sb + at)[None, :]
        pa += BLOCK_K
        pb += BLOCK_K
    out_m, out_n = tile_m * BLOCK_M + tl.arange(0, BLOCK_M), tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c + stride_cm * out_m[:, None] + out_n[None, :], acc.to(tl.bfloat16),
             mask=(out_m[:, None] < m) & (out_n[None, :] < n))


# name: experts, top-k, hidden size, inner size on one GPU, type
LAYERS = {
    "mixtral-8x7b-tp4": (8, 2, 4096, 3584, "bf16"), "qwen3-next-tp2": (512, 10, 2048, 256, "bf16"),
    "qwen3-30b-a3b": (128, 8, 2048, 768, "bf16"), "gpt-oss-20b": (32, 4, 2880, 2880, "bf16"),
    "qwen2-57b-tp4": (64, 8, 3584, 640, "bf16"),
    "mixtral-8x7b-fp8-tp4": (8, 2, 4096, 3584, "fp8"), "qwen2-57b-fp8-tp4": (64, 8, 3584, 640, "fp8"),
    "deepseek-v3-tp8": (256, 8, 7168, 256, "block"), "qwen3-30b-a3b-fp8": (128, 8, 2048, 768, "block"),
}
TOKENS = [1, 16, 64, 256, 1024, 4096]
# N, K of layers of DeepSeek-V3 (tensor parallel 8), Qwen3-32B and Llama 3 70B (8)
DENSE = [(2112, 7168), (4096, 7168), (7168, 2048), (5120, 25600 // 8), (8192, 1024), (1280, 5120)]
DENSE_ROWS = [1, 16, 64, 256, 1024, 4096]


def space(kind):
    """BLOCK_M, BLOCK_N, BLOCK_K, warps, stages as vLLM's tuners have them, without accumulators of 256 registers a thread
    and more, which spill, and what shared memory does not hold."""
    size = 2 if kind == "bf16" else 1
    ks = [64, 128] if kind in ("block", "dense") else [64, 128, 256]
    for bm, bn, bk, w, s in itertools.product([16, 32, 64, 128, 256], [32, 64, 128, 256], ks, [4, 8], [2, 3, 4, 5]):
        most = 128 if kind in ("block", "dense") else 255
        if bm * bn // (32 * w) <= most and s * (bm + bn) * bk * size <= 227 << 10:
            yield bm, bn, bk, w, s


def meta(c):
    return dict(BLOCK_M=c[0], BLOCK_N=c[1], BLOCK_K=c[2], num_warps=c[3], num_stages=c[4], group_m=c[5])


def compile_one(job):
    kind, c = job
    t = torch.bfloat16 if kind == "bf16" else FP8
    f, i = torch.float32, torch.int32
    try:
        if kind == "dense":
            dense.warmup(t, t, torch.bfloat16, f, f, 48, 1024, 1024, 1024, 1024, 1024, 8, 8, grid=(1,),
                         **meta(c))
        else:
            experts.warmup(t, t, torch.bfloat16, f, f, f, i, i, i, 1024, 1024, 1024, 48, 2, 1024, 1024, 1024, 1024, 8, 8, 8,
                           GROUP=128 if kind == "block" else 0, SCALED=kind != "bf16", grid=(1,), **meta(c))
    except Exception as e:
        return f"{job}: {type(e).__name__}"
    return None


def align(ids, count, block_m):
    """Rows sorted by expert and padded, the owner of each block of rows, and how many there are."""
    flat = ids.reshape(-1)
    counts = np.bincount(flat, minlength=count)
    padded = -(-counts // block_m) * block_m
    em = flat.size + count * (block_m - 1)
    if len(ids) < block_m:
        em = min(em, len(ids) * ids.shape[1] * block_m)
    em = -(-em // 16) * 16
    order = np.argsort(flat, kind="stable")
    starts, before = np.cumsum(padded) - padded, np.cumsum(counts) - counts
    rows = np.full(max(em, padded.sum()) + block_m, flat.size, np.int32)
    rows[starts[flat[order]] + np.arange(flat.size) - before[flat[order]]] = order
    owners = np.repeat(np.arange(count), padded // block_m).astype(np.int32)
    owners = np.concatenate([owners, np.zeros(-(-em // block_m) + 1 - min(len(owners), -(-em // block_m)), np.int32)])
    cuda = lambda x: torch.from_numpy(x).cuda()
    return cuda(rows), cuda(owners), cuda(np.array([padded.sum()], np.int32)), em


def timed(launch, n, best):
    """Seconds of a launch, of n in a CUDA graph that runs again and again: the least of two, or of one if that is much slower
    than the best."""
    launch(0)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(n):
            launch(i)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def run(replays):
        g.replay()  # the GPU is busy while the others are sent
        begin.record()
        for _ in range(replays):
            g.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / n / replays

    least = run(1)
    if least > 2 * best:
        return least
    replays = max(1, min(6, int(1e-3 / n / least)))
    return min(run(replays), run(replays))


def scales(*shape):
    return torch.rand(shape, device="cuda") * 0.01 + 0.01


class Layer:
    def __init__(self, name, tokens):
        self.count, self.top, self.hidden, self.inner, self.kind = LAYERS[name]
        self.tokens, self.n = tokens, 8 if tokens < 1024 else 3
        rng = np.random.default_rng(tokens)
        self.ids = [np.argsort(rng.random((tokens, self.count)), axis=1)[:, :self.top].astype(np.int64) for _ in range(self.n)]
        self.weights = torch.rand(tokens * self.top, device="cuda")
        self.aligned = {}
        self.up = self.product(tokens, 2 * self.inner, self.hidden, self.top)
        self.down = self.product(tokens * self.top, self.hidden, self.inner, 1)

    kept = {}

    def operand(self, *shape):
        x = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        return x if self.kind == "bf16" else x.to(FP8)

    def product(self, rows, n, k, top):
        key = (self.count, n, k, self.kind)
        if key not in Layer.kept:
            b = torch.empty((self.count, n, k), device="cuda", dtype=torch.bfloat16 if self.kind == "bf16" else FP8)
            for e in range(self.count):
                b[e] = self.operand(n, k)
            Layer.kept[key] = b, scales(self.count, n // 128, k // 128) if self.kind == "block" else scales(self.count)
        b, bs = Layer.kept[key]
        return dict(a=self.operand(rows, k), b=b, c=torch.empty((self.tokens * self.top, n), device="cuda", dtype=torch.bfloat16),
                    sa=scales(rows, k // 128) if self.kind == "block" else scales(1), sb=bs, n=n, k=k, top=top)

    def launch(self, p, c):
        bm = c[0]
        if bm not in self.aligned:
            self.aligned[bm] = [align(x, self.count, bm) for x in self.ids]
        block = self.kind == "block"

        def f(i):
            rows, owners, padded, em = self.aligned[bm][i]
            grid = (-(-em // bm) * -(-p["n"] // c[1]),)
            return experts[grid](
                p["a"], p["b"], p["c"], p["sa"], p["sb"], self.weights, rows, owners, padded, p["n"], p["k"], em,
                self.tokens * self.top, p["top"], p["k"], p["n"] * p["k"], p["k"], p["n"], p["sa"].stride(0) if block else 0,
                p["sb"].stride(0) if block else 0, p["sb"].stride(1) if block else 0, GROUP=128 if block else 0,
                SCALED=self.kind != "bf16", **meta(c))
        return f

    def check(self, c):
        """The largest error of either product, relative to the largest element, against fp32."""
        worst = 0.0
        flat = torch.from_numpy(self.ids[0].reshape(-1)).cuda()
        for p in (self.up, self.down):
            p["c"].zero_()
            self.launch(p, c)(0)
            a, b, sb = p["a"].float(), p["b"], p["sb"]
            if self.kind == "block":
                a = a * p["sa"].repeat_interleave(128, 1)
            for r in range(0, len(flat), max(1, len(flat) // 16)):
                e = int(flat[r])
                w = b[e].float()
                if self.kind == "block":
                    w = w * sb[e].repeat_interleave(128, 0).repeat_interleave(128, 1)
                want = a[r // p["top"]].double() @ w.T.double() * self.weights[r].double()
                if self.kind == "fp8":
                    want = want * (p["sa"][0] * sb[e]).double()
                worst = max(worst, float((p["c"][r].double() - want).abs().max() / want.abs().max()))
        return worst


class Dense:
    def __init__(self, n, k, m):
        self.m, self.n, self.k, self.copies = m, n, k, 8 if m < 1024 else 3
        f = lambda *s: torch.randn(s, device="cuda", dtype=torch.bfloat16).to(FP8)
        self.a = f(m, k)
        self.b = [f(n, k) for _ in range(self.copies)]  # cold weights, if together they exceed the L2
        self.c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
        self.sa, self.sb = scales(m, k // 128), scales(-(-n // 128), k // 128)

    def launch(self, c):
        grid = (-(-self.m // c[0]) * -(-self.n // c[1]),)
        return lambda i: dense[grid](self.a, self.b[i], self.c, self.sa, self.sb, self.m, self.n, self.k, self.k, self.k, self.n,
                                     self.sa.stride(0), self.sb.stride(0), **meta(c))

    def check(self, c):
        self.launch(c)(0)
        a = self.a.float() * self.sa.repeat_interleave(128, 1)
        b = self.b[0].float() * self.sb.repeat_interleave(128, 0)[:self.n].repeat_interleave(128, 1)
        want = a[:64].double() @ b.T.double()
        return float((self.c[:64].double() - want).abs().max() / want.abs().max())


def brute(out, name, tokens, kind, runs, n, check, todo, extra, groups):
    """Times all of todo, and the best of them and the extra ones with every group."""
    best, times = [float("inf")] * len(runs), {}

    def one(c, role=""):
        if c in times or time.time() - BEGUN > LIMIT:
            return
        try:
            t = [timed(r(c), n, b) for r, b in zip(runs, best)]
            k = runs[0](c)(0)
            regs, spills, shared = k.n_regs, k.n_spills, k.metadata.shared
        except Exception as e:
            times[c] = float("inf")
            out.writerow([kind, name, tokens, *c, "", "", "", "", "", type(e).__name__])
            return
        times[c] = sum(t)
        for i, x in enumerate(t):
            best[i] = min(best[i], x)
        out.writerow([kind, name, tokens, *c, *(f"{1e6 * x:.2f}" for x in t), *[""] * (2 - len(t)), regs, spills, shared, ""])

    for c in extra:
        one(c)
    for c in todo:
        one(c)
    if groups:
        for c in sorted(times, key=times.get)[:8]:
            for g in (1, 16, 32, 64):
                one((*c[:5], g))
    order = sorted(times, key=times.get)
    if order and times[order[0]] < float("inf"):
        wrong = check(order[0])
        print(f"{time.time() - BEGUN:.0f} s {kind} {name} {tokens}: {len(times)} kernels, best {order[0]} "
              f"{1e6 * times[order[0]]:.1f} µs, error {wrong:.1e}", flush=True)
        if not wrong < 2e-2:
            out.writerow([kind, name, tokens, *order[0], "", "", "", "", "", f"wrong {wrong:.3g}"])


def main():
    parts = sys.argv[1:] or ["bf16", "fp8", "block", "dense"]
    picks = json.load(open(os.environ["PICKS"])) if os.environ.get("PICKS") else {}
    jobs = []
    for kind in parts:
        for c in space(kind):
            jobs.append((kind, (*c, 1)))
    with futures.ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        failed = [x for x in pool.map(compile_one, jobs, chunksize=4) if x]
    print(f"{time.time() - BEGUN:.0f} s: {len(jobs)} kernels compiled, {len(failed)} not: {failed[:5]}", flush=True)
    device = "sm90@h200" if "H200" in torch.cuda.get_device_name() else "sm90@h100"
    with open(OUT + "/times.csv", "w", buffering=1) as f:
        out = csv.writer(f)
        out.writerow("kind,layer,tokens,block_m,block_n,block_k,num_warps,num_stages,group_m,up_us,down_us,registers,spills,"
                     "shared,note".split(","))
        print(device, torch.cuda.get_device_name(), torch.__version__, triton.__version__, flush=True)
        for kind in parts:
            names = [n for n in LAYERS if LAYERS[n][4] == kind]
            group = 32 if kind in ("block", "dense") else 1
            for name in names:
                for tokens in TOKENS:
                    if time.time() - BEGUN > LIMIT:
                        break
                    x = Layer(name, tokens)
                    todo = [(*c, group) for c in space(kind)]
                    if tokens * x.top // x.count < 8:  # larger tiles only pad
                        todo = [c for c in todo if c[0] <= 64]
                    extra = [tuple(c) for c in picks.get(device, {}).get(name, {}).get(str(tokens), [])]
                    brute(out, name, tokens, kind, [lambda c: x.launch(x.up, c), lambda c: x.launch(x.down, c)], x.n, x.check,
                          todo, extra, tokens * x.top // x.count >= 64)
                    del x
                Layer.kept.clear()
                torch.cuda.empty_cache()
            for n, k in DENSE if kind == "dense" else []:
                for m in DENSE_ROWS:
                    if time.time() - BEGUN > LIMIT:
                        break
                    x = Dense(n, k, m)
                    todo = [(*c, group) for c in space(kind) if c[0] <= max(16, 4 * m)]
                    brute(out, f"{n}x{k}", m, kind, [x.launch], x.copies, x.check, todo, [], m >= 1024)
    print(f"{time.time() - BEGUN:.0f} s: done", flush=True)


if __name__ == "__main__":
    main()
