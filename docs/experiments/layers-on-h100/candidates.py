"""The untimed pick of wgmma beside the best candidate of cuBLASLt: all that its heuristic offers, each timed. In CUDA graphs
with cold weights, in turns. OUT=folder python3 candidates.py [seconds]"""
import ctypes, json, os, statistics, sys, time
import torch
from origami_gemm import _layers as L
import measure

OUT, OFFERED, ROOM = os.environ.get("OUT", "."), 40, 32 << 20
TYPES = {torch.float16: 2, torch.bfloat16: 14}  # cudaDataType
COMPUTE_32F, R_32F, OP_T, TRANSA, MAX_WORKSPACE = 68, 0, 1, 3, 1
lt = ctypes.CDLL("libcublasLt.so." + torch.version.cuda.split(".")[0])


class Heuristic(ctypes.Structure):
    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


def check(status):
    if status:
        raise RuntimeError(f"cublasLt: {status}")


def made(function, *values):
    handle = ctypes.c_void_p()
    check(function(ctypes.byref(handle), *values))
    return handle


def layout(dtype, rows, columns):
    return made(lt.cublasLtMatrixLayoutCreate, ctypes.c_int(TYPES[dtype]), ctypes.c_uint64(rows), ctypes.c_uint64(columns),
                ctypes.c_int64(rows))


handle = made(lt.cublasLtCreate)


def candidates(m, n, k, dtype):
    """Functions of x, w, out and a workspace: out = x wᵀ. cuBLAS counts by columns: outᵀ = (wᵀ)ᵀ xᵀ."""
    about = made(lt.cublasLtMatmulDescCreate, ctypes.c_int(COMPUTE_32F), ctypes.c_int(R_32F))
    turned, most = ctypes.c_int(OP_T), ctypes.c_size_t(ROOM)
    check(lt.cublasLtMatmulDescSetAttribute(about, ctypes.c_int(TRANSA), ctypes.byref(turned), ctypes.c_size_t(4)))
    a, b, d = layout(dtype, k, n), layout(dtype, k, m), layout(dtype, n, m)
    wish = made(lt.cublasLtMatmulPreferenceCreate)
    check(lt.cublasLtMatmulPreferenceSetAttribute(wish, ctypes.c_int(MAX_WORKSPACE), ctypes.byref(most), ctypes.c_size_t(8)))
    found, count = (Heuristic * OFFERED)(), ctypes.c_int()
    check(lt.cublasLtMatmulAlgoGetHeuristic(handle, about, a, b, d, d, wish, ctypes.c_int(OFFERED), found, ctypes.byref(count)))
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def run(algo, x, w, out, room):
        p = lambda t: ctypes.c_void_p(t.data_ptr())
        check(lt.cublasLtMatmul(handle, about, ctypes.byref(one), p(w), a, p(x), b, ctypes.byref(zero), p(out), d, p(out), d,
                                ctypes.byref(algo), p(room), ctypes.c_size_t(ROOM),
                                ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))
    return [lambda x, w, out, room, h=h: run(h.algo, x, w, out, room) for h in found[:count.value] if h.state == 0]


def others(m, n, k, dtype):
    """Each candidate as measure.times takes it, behind PyTorch's own product. What fails is left out."""
    room, out = torch.empty(ROOM, device="cuda", dtype=torch.uint8), torch.empty(m, n, device="cuda", dtype=dtype)
    x, w = torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(n, k, device="cuda", dtype=dtype)
    want, runs = measure.linear(x, w, None, None, None).float(), {"cublas": measure.linear}
    for i, one in enumerate(candidates(m, n, k, dtype)):
        try:
            one(x, w, out, room)
            torch.cuda.synchronize()
        except RuntimeError:
            continue
        if float((out.float() - want).abs().max() / want.abs().max()) < 0.02:
            runs[f"candidate {i}"] = lambda x, w, bias, row, column, one=one: (one(x, w, out, room), out)[1]
    return runs


def main(seconds):
    end, device = time.time() + seconds, L.Device(0)
    todo = [(model, n, k, m, dtype) for model, shapes in measure.MODELS.items() for n, k in shapes
            for dtype in TYPES for m in measure.sizes(2)]
    measure.draw.shuffle(todo)
    rows = []
    for model, n, k, m, dtype in todo:
        if time.time() > end:
            break
        layer = L.Layer(L.Key(0, n, k, measure.NAMES[dtype], measure.NAMES[dtype], False, True), device)
        with torch.no_grad():
            row = measure.times(layer, m, others(m, n, k, dtype), rounds=3)
        offered = {name: row.pop(name) for name in list(row) if name.startswith("candidate")}
        rows.append(dict(model=model, **row, offered=len(offered), best=min([row["cublas"], *offered.values()])))
        with open(os.path.join(OUT, "candidates.json"), "w") as file:
            json.dump(rows, file, indent=0)
        torch.cuda.empty_cache()
    ratio = [r["best"] / r["ours"] for r in rows]
    own = [r["cublas"] / r["ours"] for r in rows]
    print(f"{len(rows)} layers, {sum(r['offered'] for r in rows) / len(rows):.1f} candidates each: the best candidate's time ÷ ours "
          f"{statistics.geometric_mean(ratio):.4f}, worst {min(ratio):.3f}; cuBLAS's choice {statistics.geometric_mean(own):.4f}, worst {min(own):.3f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 60)
