"""Fit the operators of plugins/serving to the published times of aiconfigurator-core 0.12.0 (Apache-2.0).

    pip download aiconfigurator-core==0.12.0 --no-deps; pip install pyarrow numpy scipy
    python fit.py aiconfigurator_core-0.12.0-*.whl ../../plugins/serving/operators.json

Only the tables of operators are read from the wheel, never the deployments. Each operator is fitted to all devices, and
once for each device without it; the rows say how many of the left-out times are within 20 %, and of the times of other
devices. A third argument is a device, such as h200_sxm, that is left out of all.
"""

import io
import json
import sys
import zipfile

import numpy as np
import pyarrow.parquet as pq
from scipy.optimize import least_squares

# bytes/s of DRAM, FLOP/s in 16, 8 and 4 bits, bytes/s to the other GPUs of the node in each direction: data sheets
DEVICES = {
    "h100_sxm": (3.35e12, 989e12, 1979e12, 989e12, 450e9),
    "h200_sxm": (4.8e12, 989e12, 1979e12, 989e12, 450e9),
    "b200_sxm": (7.7e12, 2250e12, 4500e12, 9000e12, 900e9),
    "gb200": (8e12, 2500e12, 5000e12, 10000e12, 900e9),
}
# Devices that are in no fit: how far off the operators are there says how far to trust them elsewhere.
OTHERS = {
    "b300_sxm": (7.7e12, 2250e12, 4500e12, 13500e12, 900e9),
    "gb300": (8e12, 2500e12, 5000e12, 15000e12, 900e9),
    "a100_sxm": (2.039e12, 312e12, 312e12, 312e12, 300e9),
    "l40s": (0.864e12, 362e12, 733e12, 362e12, 32e9),
    "rtx_pro_6000_server": (1.597e12, 500e12, 1000e12, 2000e12, 64e9),
}
SERVERS = ("trtllm", "vllm", "sglang")
RANDOM = np.random.default_rng(0)


def read(wheel, table, servers, keep, most):
    """The rows of a table on all devices, at most so many of each device and server."""
    rows = []
    with zipfile.ZipFile(wheel) as z:
        for name in sorted(z.namelist()):
            parts = name.split("/")
            if not name.endswith(f"/{table}.parquet") or parts[3] not in DEVICES | OTHERS or parts[5] not in servers:
                continue
            some = [r for r in pq.read_table(io.BytesIO(z.read(name))).to_pylist() if keep(r)]
            if len(some) > most:
                some = [some[i] for i in RANDOM.choice(len(some), most, replace=False)]
            rows += [r | {"device": parts[3], "server": parts[5]} for r in some]
    return rows


def columns(rows, names):
    """The named columns as numbers, with the numbers of the devices."""
    out = {n: np.array([r[n] for r in rows], float) for n in names}
    sheet = np.array([(DEVICES | OTHERS)[r["device"]] for r in rows])
    return out | dict(zip(("bw", "p16", "p8", "p4", "link"), sheet.T))


def fit(operator, kernel, start, time, x, seconds, devices):
    """The row of an operator: its values, and how the devices are met that were left out, or are others."""
    of = lambda p, y: (round(float(np.median(abs(p / y - 1))), 3), round(float(np.mean(abs(p / y - 1) < 0.2)), 3))
    at = lambda i: {k: c[i] for k, c in x.items()}
    all_x, all_seconds, all_devices = x, seconds, devices
    own = np.isin(devices, list(DEVICES))
    x, seconds, devices = at(own), seconds[own], devices[own]

    def solve(i):
        error = lambda v: np.log(time(np.exp(v), {k: c[i] for k, c in x.items()}) / seconds[i])
        return np.exp(least_squares(error, np.log(start), loss="soft_l1", f_scale=0.2, max_nfev=200).x)

    unseen = np.zeros(len(seconds))
    for d in sorted(set(devices)):
        there = devices == d
        unseen[there] = time(solve(np.where(~there)[0]), {k: c[there] for k, c in x.items()})
    values = solve(np.arange(len(seconds)))
    if operator == "experts":
        values[2] = min(values[2], 1)  # as the time has it
    x = all_x
    (error, within), (out, out_within) = of(time(values, at(own)), seconds), of(unseen, seconds)
    row = {"operator": operator, "kernel": kernel, "values": [float(f"{v:.4g}") for v in values], "times": len(seconds),
           "error": error, "within_20": within, "unseen_error": out, "unseen_within_20": out_within,
           "others": {d: of(time(values, at(all_devices == d)), all_seconds[all_devices == d]) for d in OTHERS
                      if (all_devices == d).any()}}
    print(json.dumps(row), flush=True)
    return row


def cache_bytes(rows):
    return np.where([r["kv_cache_dtype"] == "fp8" for r in rows], 1.0, 2.0)


def decode(v, x):
    return v[0] * 1e-6 + x["bytes"] / (v[1] * x["bw"]) + v[2] * 1e-6 * np.log2(1 + x["step"] / 256) + x["flop"] / (v[3] * x["p16"])


def prefill(v, x):
    return v[0] * 1e-6 + x["flop"] / (v[1] * x["p16"]) + x["bytes"] / (v[2] * x["bw"])


def reduce(v, x):
    n = x["num_gpus"]
    return v[0] * 1e-6 + v[1] * 1e-6 * n + 2 * (n - 1) / n * 2 * x["message_size"] / (v[2] * x["link"])


def exchange(v, x):
    n = x["num_gpus"]
    return v[0] * 1e-6 + v[1] * 1e-6 * n + (n - 1) / n * 2 * x["message_size"] / (v[2] * x["link"])


def experts(v, x):
    weights, rate = x["bytes"] / (v[1] * x["bw"]), x["flop"] / (np.minimum(v[2], 1) * x["peak"])
    return (v[0] + v[4] * np.log2(1 + x["num_tokens"])) * 1e-6 + np.hypot(weights, rate) + x["moved"] / (v[3] * x["bw"])


# Type of the weights: the rate, and bytes of a weight with its scales.
EXPERTS = {"bfloat16": ("p16", 2), "fp8": ("p8", 1), "fp8_block": ("p8", 1), "nvfp4": ("p4", 0.5625),
           "w4a16_mxfp4": ("p16", 0.53), "w4a8_mxfp4_mxfp8": ("p8", 0.53)}


def main(wheel, output, without=""):
    DEVICES.pop(without, None)
    rows = []
    for server in SERVERS:
        r = read(wheel, "generation_attention_perf", (server,), lambda r: r.get("window_size", 0) == 0 and r["head_dim"] in (64, 128, 256)
                 and r["step"] >= 127 and r["num_key_value_heads"] <= 16 and r["num_heads"] > r["num_key_value_heads"] and r["batch_size"] <= 1024, 2500)
        x = columns(r, ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "step"))
        b, h, kv, d, s = (x[n] for n in ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "step"))
        x["bytes"], x["flop"] = 2 * b * kv * (s + 1) * d * cache_bytes(r) + 4 * b * h * d, 4 * b * h * s * d
        rows.append(fit("decode", server, [4, 0.8, 1, 0.2], decode, x, *times(r)))
        r = read(wheel, "context_attention_perf", (server,), lambda r: r.get("window_size", 0) == 0 and r["head_dim"] in (64, 128, 256)
                 and r["step"] == 0 and r["isl"] >= 128, 2000)
        x = columns(r, ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "isl"))
        b, h, kv, d, s = (x[n] for n in ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "isl"))
        x["flop"], x["bytes"] = 2 * b * s * s * h * d, 4 * b * s * (h + kv) * d
        rows.append(fit("prefill", server, [5, 0.6, 0.7], prefill, x, *times(r)))
    r = read(wheel, "generation_mla_perf", ("trtllm",), lambda r: r["step"] >= 127 and r["batch_size"] <= 1024, 2500)
    x = columns(r, ("batch_size", "num_heads", "step"))
    x["bytes"] = x["batch_size"] * (x["step"] + 1) * 576 * cache_bytes(r)
    x["flop"] = x["batch_size"] * x["num_heads"] * x["step"] * 2 * (576 + 512)
    rows.append(fit("decode", "latent", [4, 0.8, 1, 0.5], decode, x, *times(r)))
    r = read(wheel, "context_mla_perf", ("trtllm",), lambda r: r["isl"] >= 128, 2000)
    x = columns(r, ("batch_size", "num_heads", "isl"))
    x["flop"] = x["batch_size"] * x["isl"] ** 2 * x["num_heads"] * (192 + 128)
    x["bytes"] = x["batch_size"] * x["isl"] * x["num_heads"] * (192 + 128) * 4
    rows.append(fit("prefill", "latent", [5, 0.6, 0.7], prefill, x, *times(r)))
    for server in SERVERS:
        r = read(wheel, "custom_allreduce_perf", (server,), lambda r: 1024 <= r["message_size"] <= 2**26 and r["num_gpus"] <= 8
                 and "eager" not in r["kernel_source"] and ("TRTLLM" in r["kernel_source"]) == (server == "trtllm"), 3000)
        rows.append(fit("reduce", server, [4, 0.5, 0.7], reduce, columns(r, ("num_gpus", "message_size")), *times(r)))
    r = read(wheel, "nccl_perf", ("nccl",), lambda r: 1024 <= r["message_size"] <= 2**26 and r["num_gpus"] <= 8
             and r["op_name"] == "alltoall" and r["nccl_dtype"] == "half", 3000)
    rows.append(fit("exchange", "nccl", [8, 0.5, 0.7], exchange, columns(r, ("num_gpus", "message_size")), *times(r)))
    sizes = ("num_tokens", "num_experts", "topk", "hidden_size", "inter_size", "moe_tp_size", "moe_ep_size")
    for kernel, (peak, width) in EXPERTS.items():
        r = read(wheel, "moe_perf", SERVERS, lambda r: r["moe_dtype"] == kernel and r["num_experts"] >= 32 and r["topk"] > 1
                 and r["num_tokens"] <= 16384 and r["distribution"] == "power_law_1.2" and r["inter_size"] // r["moe_tp_size"] >= 96
                 and "nongated" not in r["kernel_source"], 10**9)
        best = {}  # of the kernels of all servers: which one a server takes is its choice
        for one in r:
            key = (one["device"], *(one[n] for n in sizes))
            if key not in best or one["latency"] < best[key]["latency"]:
                best[key] = one
        r = list(best.values())
        r = [r[i] for i in RANDOM.choice(len(r), min(len(r), 20000), replace=False)]
        x = columns(r, sizes)
        t, n, k, h, inter, tp, ep = (x[s] for s in sizes)
        inter, picked = inter / tp, t * k / ep
        x["bytes"] = n / ep * (1 - (1 - k / n) ** t) * 3 * h * inter * width
        x["flop"], x["peak"] = picked * 6 * h * inter, x[peak]
        x["moved"] = picked * (2 * h + 3 * inter) * 2 + t * h * 4
        rows.append(fit("experts", kernel, [15, 0.7, 0.5, 0.2, 1], experts, x, *times(r)))
    with open(output, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


def times(rows):
    return np.array([r["latency"] for r in rows]) * 1e-3, np.array([r["device"] for r in rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
