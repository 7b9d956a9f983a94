"""Times PyTorch's matrix multiplications (cuBLAS) of random problems under three conditions of the caches.

usage: cublas.py OUT.csv SECONDS [SEED [TYPE,...]]
"""
import csv
import random
import sys
import time

import torch

BYTES_TO_FLUSH = 300_000_000  # several times the L2
MOST_COPIES = 64
LAYERS = 6

INPUT = {'bf16': torch.bfloat16, 'fp16': torch.float16, 'fp32': torch.float32, 'tf32': torch.float32,
         'fp8': torch.float8_e4m3fn, 'int8': torch.int8,
         'fp64': torch.float64, 'complex64': torch.complex64, 'complex128': torch.complex128}
OUTPUT_BYTES = {'bf16': 2, 'fp16': 2, 'fp32': 4, 'tf32': 4, 'fp8': 2, 'int8': 4,
                'fp64': 8, 'complex64': 8, 'complex128': 16}
IN_TURN = ['bf16', 'fp8', 'bf16', 'tf32', 'fp16', 'bf16', 'int8', 'fp8', 'fp32']
COLUMNS = ['dtype', 'm', 'n', 'k', 'trans_b', 'l2', 'time_us', 'time_us_min', 'time_us_max', 'copies', 'error']


def log_uniform(rnd, low, high):
    return low * (high / low) ** rnd.random()


def random_shape(rnd):
    """M is any number or a power of two; N and K are multiples of 16."""
    while True:
        m = int(log_uniform(rnd, 1, 16384)) if rnd.random() < 0.5 else 2 ** rnd.randrange(14)
        n = max(16, int(log_uniform(rnd, 64, 32768)) // 16 * 16)
        k = max(16, int(log_uniform(rnd, 64, 32768)) // 16 * 16)
        if 2 * m * n * k < 4e12 and n * k < 6e8:
            return m, n, k


def matrix(rows, columns, dtype):
    if dtype == 'int8':
        return torch.randint(-127, 128, (rows, columns), device='cuda', dtype=torch.int8)
    normal = torch.randn(rows, columns, device='cuda', dtype=torch.bfloat16 if dtype == 'fp8' else INPUT[dtype])
    return normal.to(INPUT[dtype])


def multiply(dtype, a, b, trans_b, one):
    b = b.t() if trans_b else b
    if dtype == 'fp8':
        return torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)
    if dtype == 'int8':
        return torch._int_mm(a, b)
    return torch.matmul(a, b)


def timed(calls, seconds=0.004):
    """Returns the median, the least and the largest time of a call in µs, of five runs of a CUDA graph of all."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [call() for call in calls]  # kept, so that each has memory of its own
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def run(replays):
        start.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / replays

    run(3)
    replays = max(1, min(10, int(seconds / max(1e-6, run(1) / 1e3))))
    times = sorted(run(replays) / len(calls) * 1e3 for _ in range(5))
    del results
    return times[2], times[0], times[-1]


def error(result, a, b):
    """The largest error of 64 rows, relative to their largest result."""
    if result.dtype in (torch.float64, torch.complex64, torch.complex128):
        result, a, b = result.to(torch.complex128), a.to(torch.complex128), b.to(torch.complex128)
    want = a[:64] @ b
    return ((result[:64] - want).abs().max() / (want.abs().max() + 1e-9)).item()


def measure(dtype, m, n, k, trans_b, one):
    torch.backends.cuda.matmul.allow_tf32 = dtype == 'tf32'
    size = INPUT[dtype].itemsize
    set_bytes = (m * k + n * k) * size + m * n * OUTPUT_BYTES[dtype]
    copies = max(2, min(MOST_COPIES, -(-BYTES_TO_FLUSH // set_bytes)))
    if set_bytes * copies > 60e9:
        return
    a = [matrix(m, k, dtype) for _ in range(copies)]
    b = [matrix(n, k, dtype) if trans_b else matrix(k, n, dtype) for _ in range(max(copies, LAYERS))]
    off = -1
    if 2 * m * n * k < 4e11:
        wide = (lambda x: x) if dtype.startswith(('fp64', 'complex')) else torch.Tensor.float
        off = error(wide(multiply(dtype, a[0], b[0], trans_b, one)), wide(a[0]), wide(b[0].t() if trans_b else b[0]))

    def call(i, j):
        return lambda: multiply(dtype, a[i], b[j], trans_b, one)

    for l2, calls in (('layers', [call(0, j) for j in range(LAYERS)]), ('cold', [call(j, j) for j in range(copies)]),
                      ('warm', [call(0, 0)] * 8)):
        yield l2, timed(calls), copies, off


def main():
    out, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20261122
    in_turn = sys.argv[4].split(',') if len(sys.argv) > 4 else IN_TURN
    torch.manual_seed(0)
    rnd, start, done = random.Random(seed), time.time(), 0
    one = torch.ones((), device='cuda')
    with open(out, 'w', newline='') as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        while time.time() - start < seconds:
            dtype = in_turn[done % len(in_turn)]
            done += 1
            m, n, k = random_shape(rnd)
            trans_b = 1 if dtype in ('fp8', 'int8') or rnd.random() < 0.7 else 0
            if dtype == 'int8' and m <= 16:
                m += 16  # what torch._int_mm takes
            if dtype in ('fp32', 'fp64', 'complex64', 'complex128') and 2 * m * n * k > (1e11 if 'complex' in dtype else 4e11):
                continue
            try:
                for l2, times, copies, off in measure(dtype, m, n, k, trans_b, one):
                    rows.writerow([dtype, m, n, k, trans_b, l2, *(f'{t:.4f}' for t in times), copies, f'{off:.2g}'])
            except RuntimeError as failed:
                print(dtype, m, n, k, str(failed).split('\n')[0][:150], file=sys.stderr)
            if done % 40 == 0:
                file.flush()
                torch.cuda.empty_cache()
    print(done, 'problems', torch.__version__, torch.version.cuda, torch.cuda.get_device_name())


if __name__ == '__main__':
    main()
