"""Large products, ours and cuBLAS's: in bursts of 20 ms after a rest, and held for half a second, with the SMs' clock and the power.
OUT=folder python3 held.py"""
import json, os, subprocess, threading, time
import torch
import torch.nn.functional as F
from origami_gemm import _layers as L
from origami_gemm.torch import _ops

OUT = os.environ.get("OUT", ".")
SIZES = [(3000, 4608, 3584), (3000, 3584, 3584), (3000, 37888, 3584), (3000, 3584, 18944), (3000, 4096, 14336), (3000, 28672, 4096),
         (1518, 3456, 1152), (1423, 6144, 4096), (8192, 8192, 8192), (2048, 5120, 5120)]
samples, rows, device = [], [], L.Device(0)


def sample(lines):
    for line in lines:
        samples.append((time.time(), *(float(one) for one in line.split(","))))


def timed(graph, times):
    """Microseconds of a replay."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def graph_of(run, ws, number):
    run(ws[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(number):
            run(ws[i % len(ws)])
    return graph


def measure(m, n, k):
    layer = L.Layer(L.Key(0, n, k, "bf16", "bf16", False, True), device)
    pick = layer._model()._ranked(layer.key.problem(m), 1)[0]
    plan = layer._load(m, pick)
    copies = max(2, min(-(-100 * 2**20 // (2 * n * k)), (1 << 30) // (2 * n * k)))
    make = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    x, ws, out = make(m, k), [make(n, k) for _ in range(copies)], make(m, n)
    zeros, room = (torch.zeros(max(16, size), device="cuda", dtype=torch.uint8) for size in (plan.counters, plan.partials))
    ours = lambda w: plan.launch(x.data_ptr(), w.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream, 0,
                                 zeros.data_ptr(), room.data_ptr(), scales=_ops.NO_SCALES)
    about = 2 * m * n * k / 6e14
    number = max(2, min(400, int(20e-3 / about)))
    library = device.library.select(m, n, k, dtype="bf16", trans_b=True, out_dtype="bf16")
    row = dict(m=m, n=n, k=k, pick=str(pick), predicted=pick.seconds * 1e6, library=library.seconds * 1e6)
    graphs = {name: graph_of(run, ws, number) for name, run in (("ours", ours), ("cublas", lambda w: F.linear(x, w)))}
    for name, graph in graphs.items():
        rested = []
        for _ in range(5):
            time.sleep(0.15)
            rested.append(timed(graph, 1) / number)
        row[f"{name} rested"] = sorted(rested)[2]
    for turn in range(2):
        for name, graph in graphs.items():
            begin = time.time()
            row[f"{name} held {turn}"] = timed(graph, max(1, int(0.45 / (about * number)))) / number
            seen = [one[1:] for one in list(samples) if begin + 0.2 < one[0] < time.time()]
            row[f"{name} clock {turn}"] = [sum(values) / len(values) for values in zip(*seen)]
    return row


smi = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw.instant", "--format=csv,noheader,nounits", "-lms", "20"],
                       stdout=subprocess.PIPE, text=True)
threading.Thread(target=sample, args=(smi.stdout,), daemon=True).start()
with torch.no_grad():
    for size in SIZES:
        rows.append(measure(*size))
        print(rows[-1], flush=True)
        with open(os.path.join(OUT, "held.json"), "w") as file:
            json.dump(rows, file, indent=0)
        torch.cuda.empty_cache()
smi.kill()
