"""Times of NVLink collectives by size: all-reduce, all-gather, reduce-scatter, all-to-all over NCCL, in CUDA graphs.

    python3 measure.py OUT.csv        on a host with at least two GPUs; 2 and 4 ranks where they can be had

A row is the median of REPEATS replays of a graph with CALLS calls one behind another, of the slowest rank, over CALLS.
Inputs are normal random bf16 numbers. Without a graph ("eager") the host's part is in the time.
"""
import csv, datetime, os, statistics, subprocess, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

CALLS, REPEATS = 20, 15
SIZES = [1 << i for i in range(10, 29)] + [3 * (1 << 20), 24 * (1 << 20), 96 * (1 << 20)]


def calls(kind, n, world):
    """A call over n bytes of the whole tensor (of the result for all-gather, of the input otherwise)."""
    count = n // 2 // world * world
    whole = torch.randn(count, device="cuda", dtype=torch.bfloat16)
    part = torch.randn(count // world, device="cuda", dtype=torch.bfloat16)
    other = torch.empty_like(whole)
    if kind == "all_reduce":
        return lambda: dist.all_reduce(whole)
    if kind == "all_gather":
        return lambda: dist.all_gather_into_tensor(whole, part)
    if kind == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(part, whole)
    return lambda: dist.all_to_all_single(other, whole)


def timed(run, repeats):
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        dist.barrier()
        torch.cuda.synchronize()
        begin.record(); run(); end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    t = torch.tensor(times, device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return statistics.median(t.tolist())


def rank(r, world, out):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29500 + world), "NCCL_NVLS_ENABLE": "0"}
    torch.cuda.set_device(r)
    dist.init_process_group("nccl", rank=r, world_size=world)
    rows = []
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        for n in sorted(SIZES):
            run = calls(kind, n, world)
            for _ in range(3):
                run()
            torch.cuda.synchronize()
            inner = CALLS if n < 1 << 26 else 5
            eager = timed(lambda: [run() for _ in range(inner)], 5) / inner
            try:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    for _ in range(inner):
                        run()
                graph.replay()
                captured = timed(graph.replay, REPEATS) / inner
                del graph
            except RuntimeError as err:
                if r == 0:
                    print(kind, n, err, file=sys.stderr)
                captured = float("nan")
            rows.append([kind, world, n, f"{captured:.3f}", f"{eager:.3f}"])
            del run
    dist.destroy_process_group()
    if r == 0:
        with open(out, "a", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows(rows)


def main():
    out = sys.argv[1]
    smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader", "-i", "0"],
                         capture_output=True, text=True).stdout.strip()
    topo = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True).stdout
    print(topo)
    with open(out, "w") as f:
        f.write(f"# {smi}; torch {torch.__version__}; nccl {'.'.join(map(str, torch.cuda.nccl.version()))}; NVLink multicast off; "
                f"{datetime.date.today()}\n")
        f.write("collective,ranks,bytes,graph_us,eager_us\n")
    for world in (2, 4):
        if world <= torch.cuda.device_count():
            mp.spawn(rank, (world, out), nprocs=world)


if __name__ == "__main__":
    main()
