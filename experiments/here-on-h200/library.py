"""Times of torch's cuBLAS as the executors measure: L2 flushed before each run, normal inputs, device events."""
import csv, json, statistics, sys, torch
flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
for r in csv.DictReader(open(sys.argv[1])):
    m, n, k, t, tb = int(r["m"]), int(r["n"]), int(r["k"]), types[r["dtype"]], r["trans_b"] == "1"
    try:
        a = torch.randn(m, k, device="cuda").to(t)
        b = torch.randn(n, k, device="cuda").to(t).t() if tb else torch.randn(k, n, device="cuda").to(t)
        one = torch.ones((), device="cuda")
        f = (lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)) if r["dtype"] == "fp8" else (lambda: a @ b)
        f(); torch.cuda.synchronize()
        times = []
        for _ in range(20):
            flush.zero_()
            s, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            s.record(); f(); e.record(); torch.cuda.synchronize()
            times.append(s.elapsed_time(e) / 1e3)
    except Exception as e:
        print(r, e, file=sys.stderr); continue
    print(json.dumps({"problem": {"m": m, "n": n, "k": k, "dtype": r["dtype"], "trans_b": tb}, "seconds": statistics.median(times)}))
