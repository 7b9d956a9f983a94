"""Fit the operators of plugins/serving to the published times of aiconfigurator-core 0.12.0 (Apache-2.0).

    pip download aiconfigurator-core==0.12.0 --no-deps; pip install pyarrow pandas scipy
    python fit.py aiconfigurator_core-0.12.0-*.whl ../../plugins/serving

Only the tables of operators are read from the wheel, never the deployments. A kernel has a few terms, fitted on all
devices of a generation, and by how much times of each size differ from them: a residual, the mean of the devices. Three
questions are asked of each kernel, and answered with the share of times within 20 %:

    kept     sizes drawn at random, which no residual is of
    device   a device, whose times are in no term and no residual; other devices of its generation have the kernel
    other    a generation, predicted by the terms that all other generations share

A third argument is a device, such as h200_sxm, that is left out of all.
"""

import io
import json
import sys
import zipfile
import zlib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from scipy.optimize import least_squares
from scipy.spatial import cKDTree

# bytes/s of DRAM, FLOP/s in 16, 8 and 4 bits, bytes/s to the other GPUs of the node in each direction: data sheets
DEVICES = {
    "h100_sxm": (3.35e12, 989e12, 1979e12, 989e12, 450e9),
    "h200_sxm": (4.8e12, 989e12, 1979e12, 989e12, 450e9),
    "b200_sxm": (7.7e12, 2250e12, 4500e12, 9000e12, 900e9),
    "gb200": (8e12, 2500e12, 5000e12, 10000e12, 900e9),
    "b300_sxm": (7.7e12, 2250e12, 4500e12, 13500e12, 900e9),
    "gb300": (8e12, 2500e12, 5000e12, 15000e12, 900e9),
    "a100_sxm": (2.039e12, 312e12, 312e12, 312e12, 300e9),
    "l40s": (0.864e12, 362e12, 733e12, 362e12, 32e9),
    "rtx_pro_6000_server": (1.597e12, 500e12, 1000e12, 2000e12, 64e9),
}
GENERATIONS = {"sm90": ("h100_sxm", "h200_sxm"), "sm100": ("b200_sxm", "gb200"), "sm103": ("b300_sxm", "gb300"), "sm80": ("a100_sxm",),
               "sm89": ("l40s",), "sm120": ("rtx_pro_6000_server",)}
SERVERS = ("sm90", "sm100", "sm103")  # the generations of servers' GPUs: what they share is what others get, where they have a kernel
ALIKE = {"sm100": ("sm100", "sm103"), "sm103": ("sm100", "sm103")}  # one generation, to leave out
OF = {d: g for g, devices in GENERATIONS.items() for d in devices}
# The newest version of each server that has the tables of a device.
VERSIONS = {"trtllm": ("1.3.0rc20", "1.0.0"), "vllm": ("0.24.0", "0.14.0"), "sglang": ("0.5.14", "0.5.10"),
            "nccl": ("2.29.2", "2.27.3")}
RANDOM = np.random.default_rng(0)
STEP = 0.02  # of a stored residual, as a logarithm


def read(wheel, table, without="no kernel", together=False):
    """The rows of a table, of the fastest of a server's kernels: which one a server takes is its choice. Or of all together."""
    with zipfile.ZipFile(wheel) as z:
        names, frames = set(z.namelist()), []
        for device in DEVICES:
            for server, versions in VERSIONS.items():
                found = [n for v in versions for n in names if f"/{device}/" in n and n.endswith(f"/{server}/{v}/{table}.parquet")]
                if found:
                    frames.append(pq.read_table(io.BytesIO(z.read(found[0]))).to_pandas().assign(device=device, server=server))
    x = pd.concat(frames, ignore_index=True)
    x = x[(x.latency > 0) & ~x.kernel_source.str.contains(without)].sort_values("latency")
    key = [c for c in x if c not in ("latency", "kernel_source", "framework", "version", "implementation", "backend")]
    x = x.groupby(key, as_index=False).latency.sum() if together else x.drop_duplicates(key)
    x["generation"], x["seconds"] = x.device.map(OF), x.latency * 1e-3
    sheet = np.array([DEVICES[d] for d in x.device])
    for i, name in enumerate(("bw", "p16", "p8", "p4", "link")):
        x[name] = sheet[:, i]
    return x.sort_index()


def width(types):
    return np.where(types == "fp8", 1.0, 2.0)


# Each operator: its rows with M, N, K and layout, by which residuals are found, and the quantities of its terms.


def decode(wheel):
    x = read(wheel, "generation_attention_perf")
    x = x[(x.window_size.fillna(0) == 0) & x.head_dim.isin([64, 128, 256]) & (x.step >= 127) & (x.batch_size <= 1024)
          & (x.num_key_value_heads <= 16) & (x.num_heads > x.num_key_value_heads)]
    b, h, kv, d, s = (x[n].astype(float) for n in ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "step"))
    return x.assign(kernel=x.server, M=s + 1, N=b * kv, K=h / kv, layout=x.head_dim.astype(str) + " " + x.kv_cache_dtype, s=s,
                    bytes=2 * b * kv * (s + 1) * d * width(x.kv_cache_dtype) + 4 * b * h * d, flop=4 * b * h * s * d)


def prefill(wheel):
    x = read(wheel, "context_attention_perf")
    x = x[(x.window_size.fillna(0) == 0) & x.head_dim.isin([64, 128, 256]) & (x.isl >= 128) & (x.batch_size <= 8)
          & (x.num_heads > x.num_key_value_heads)]
    b, h, kv, d, s = (x[n].astype(float) for n in ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "isl"))
    return x.assign(kernel=x.server, M=s, N=b * h, K=h / kv, layout=x.head_dim.astype(str) + " " + x.attn_dtype + " " + x.kv_cache_dtype,
                    flop=2 * b * s * s * h * d, bytes=4 * b * s * (h + kv) * d)


def latent_decode(wheel):
    x = read(wheel, "generation_mla_perf")
    x = x[(x.server == "trtllm") & (x.step >= 127) & (x.batch_size <= 1024)]
    b, h, s = (x[n].astype(float) for n in ("batch_size", "num_heads", "step"))
    return x.assign(kernel=x.server, M=s + 1, N=b, K=h, layout=x.kv_cache_dtype, s=s, flop=b * h * s * 2 * (576 + 512),
                    bytes=b * (s + 1) * 576 * width(x.kv_cache_dtype))


def latent_prefill(wheel):
    x = read(wheel, "context_mla_perf")
    x = x[(x.server == "trtllm") & (x.isl >= 128) & (x.batch_size <= 8)]
    b, h, s = (x[n].astype(float) for n in ("batch_size", "num_heads", "isl"))
    return x.assign(kernel=x.server, M=s, N=b, K=h, layout=x.kv_cache_dtype, flop=b * s * s * h * (192 + 128), bytes=4 * b * s * h * (192 + 128))


def linear(wheel):
    # A layer has two kernels, a convolution and the rule of its state, whose times are added.
    x = read(wheel, "gdn_perf", together=True)
    x = x[(x.phase == "generation") | (x.seq_len >= 128) & (x.batch_size <= 8)]
    b, s, heads, keys = (x[n].astype(float) for n in ("batch_size", "seq_len", "num_v_heads", "num_k_heads"))
    adds, tokens, state = x.phase == "generation", b * s, heads * 128 * 128
    return x.assign(operator=np.where(adds, "linear decode", "linear prefill"), kernel=x.server, M=np.where(adds, b, s), layout="",
                    N=np.where(adds, heads, b * heads), K=1, flop=8 * state * tokens,
                    bytes=np.where(adds, 8 * state * b, 4 * tokens * 128 * (2 * keys + 2 * heads)))


def links(wheel):
    x = read(wheel, "custom_allreduce_perf", "eager|MNNVL")
    x = x[(x.message_size >= 1024) & (x.message_size <= 2**26) & (x.num_gpus <= 8)]
    x["kernel"] = x.server
    y = read(wheel, "nccl_perf")
    y = y[(y.message_size >= 1024) & (y.message_size <= 2**28) & y.op_name.isin(["all_reduce", "alltoall"]) & (y.nccl_dtype == "half")]
    y["kernel"] = "nccl"
    x = pd.concat([x, y], ignore_index=True)
    x["operator"] = np.where(x.op_name == "alltoall", "exchange", "reduce")
    # The message of NCCL's tables is in elements of two bytes, as in the servers' all-reduces.
    return x.assign(M=x.message_size, N=x.num_gpus, K=1, layout="", n=x.num_gpus.astype(float),
                    bytes=2.0 * x.message_size * np.where(x.operator == "exchange", 1, 2) * (x.num_gpus - 1) / x.num_gpus)


# Type of the weights: the rate, and bytes of a weight with its scales.
EXPERTS = {"bfloat16": ("p16", 2), "fp8": ("p8", 1), "fp8_block": ("p8", 1), "nvfp4": ("p4", 0.5625), "int4_wo": ("p16", 0.53),
           "w4a16_mxfp4": ("p16", 0.53), "w4a8_mxfp4_mxfp8": ("p8", 0.53)}


def experts(wheel):
    x = read(wheel, "moe_perf", "nongated|situ")
    x = x[x.moe_dtype.isin(list(EXPERTS)) & (x.num_experts >= 32) & (x.topk > 1) & (x.num_tokens <= 16384)
          & (x.distribution == "power_law_1.2") & (x.inter_size // x.moe_tp_size >= 96)]
    t, n, k, h, i, tp, ep = (x[c].astype(float) for c in ("num_tokens", "num_experts", "topk", "hidden_size", "inter_size", "moe_tp_size",
                                                            "moe_ep_size"))
    i, picked = i / tp, t * k / ep
    return x.assign(kernel=x.server, operator="experts " + x.moe_dtype, M=np.ceil(picked), N=n / ep * k, K=np.round(h * i / 1024), layout="", t=t, flop=picked * 6 * h * i,
                    bytes=n / ep * (1 - (1 - k / n) ** t) * 3 * h * i * x.moe_dtype.map(lambda d: EXPERTS[d][1]),
                    peak=np.select([x.moe_dtype.map(lambda d: EXPERTS[d][0]) == p for p in ("p16", "p8", "p4")], [x.p16, x.p8, x.p4]),
                    moved=picked * (2 * h + 3 * i) * 2 + t * h * 4)


# Each operator's rows, the first guess of its values, its seconds, and the powers of M, N and K whose logarithms are
# the distance of two sizes.
OPERATORS = {
    "decode": (decode, [4, 0.8, 1, 0.2], lambda v, x: v[0] * 1e-6 + x["bytes"] / (v[1] * x["bw"]) + v[2] * 1e-6 * np.log2(1 + x["s"] / 256)
               + x["flop"] / (v[3] * x["p16"]), (0.5, 0.5, 1)),
    "prefill": (prefill, [5, 0.6, 0.7], lambda v, x: v[0] * 1e-6 + x["flop"] / (v[1] * x["p16"]) + x["bytes"] / (v[2] * x["bw"]),
                (0.5, 0.5, 1)),
    "experts": (experts, [15, 0.7, 0.5, 0.2, 1], lambda v, x: (v[0] + v[4] * np.log2(1 + x["t"])) * 1e-6 + x["moved"] / (v[3] * x["bw"])
                + np.hypot(x["bytes"] / (v[1] * x["bw"]), x["flop"] / (v[2] * x["peak"])), (0.3, 1, 3)),
    "reduce": (links, [4, 0.5, 0.7], lambda v, x: (v[0] + v[1] * x["n"]) * 1e-6 + x["bytes"] / (v[2] * x["link"]), (1, 1, 1)),
}
OPERATORS["linear"] = (linear, [5, 0.6, 0.2], OPERATORS["prefill"][2], (0.5, 0.5, 1))
OPERATORS["latent decode"] = (latent_decode, [4, 0.8, 1, 0.5], *OPERATORS["decode"][2:])
OPERATORS["latent prefill"] = (latent_prefill, [5, 0.6, 0.7], *OPERATORS["prefill"][2:])
SIZES = ["layout", "N", "K", "M"]


def numbers(x):
    return {c: x[c].to_numpy(float) for c in x.columns if x[c].dtype.kind in "fi"}


def fit(x, start, time, most=6000):
    """The values of the terms, from at most so many rows."""
    some = numbers(x.iloc[RANDOM.choice(len(x), min(most, len(x)), replace=False)])
    error = lambda v: np.log(time(np.exp(v), some) / some["seconds"])
    bounds = np.log([1e-3] * len(start)), np.log([1e3] * len(start))
    return np.exp(least_squares(error, np.log(start), loss="soft_l1", f_scale=0.2, max_nfev=100, bounds=bounds).x)


def residuals(x, values, time):
    """The mean residual of each size."""
    x = x.assign(residual=np.log(x.seconds / time(values, numbers(x))))
    r = x.groupby(SIZES, as_index=False).residual.mean()
    return r.assign(residual=np.clip(np.round(r.residual / STEP), -127, 127) * STEP)


def near(table, x, powers):
    """What a table says of rows: the mean of core/residual, from the eight nearest sizes of a layout."""
    out = np.zeros(len(x))
    covariance = lambda d: 0.006 * np.exp(-d / 0.5) + 0.004 * np.exp(-d / 4)
    place = lambda f: np.log(f[["M", "N", "K"]].to_numpy(float)) * powers
    for layout, t in table.groupby("layout"):
        at = np.where(x.layout == layout)[0]
        k = min(8, len(t))
        if len(at) == 0:
            continue
        there, here, r = place(t), place(x.iloc[at]), t.residual.to_numpy()
        d, i = (a.reshape(len(at), k) for a in cKDTree(there).query(here, k))
        between = np.linalg.norm(there[i][:, :, None] - there[i][:, None], axis=-1)
        c = covariance(between) + np.eye(k) * (0.001 + 0.03 / len(t))
        out[at] = np.einsum("ij,ij->i", 0.95 * covariance(d), np.linalg.solve(c, r[i][:, :, None])[:, :, 0])
    return out


def score(predicted, seconds):
    e = np.abs(predicted / seconds - 1)
    return [round(float(np.median(e)), 3), round(float(np.mean(e < 0.2)), 3), len(e)]


def sigma(predicted, seconds):
    """Nine of ten errors are smaller than 1.645 of it."""
    return float(np.quantile(np.abs(np.log(predicted / seconds)), 0.9) / 1.645)


def held(predicted, seconds, sigma):
    """The share of times in intervals of 90 %."""
    return round(float(np.mean(np.abs(np.log(predicted / seconds)) < 1.645 * sigma)), 3)


def sample(x, n=4000):
    return x.iloc[RANDOM.choice(len(x), min(n, len(x)), replace=False)]


def shared(x):
    main = x[x.generation.isin(SERVERS)]
    return main if len(main) else x


def kernel(operator, name, x, start, time, powers):
    """The rows of data of a kernel, one for each generation and one for all others, and its residuals."""
    rows, tables = [], []
    for generation, of in x.groupby("generation", sort=False):
        values = fit(of, start, time)
        row = {"operator": operator, "kernel": name, "of": generation, "values": [float(f"{v:.4g}") for v in values], "powers": powers, "times": len(of)}
        cells = of.groupby(SIZES).ngroup()
        kept = cells.isin(RANDOM.choice(cells.max() + 1, (cells.max() + 1) // 10, replace=False))
        one = sample(of[kept])
        kept_back = None
        if len(one) >= 8:
            kept_back = time(values, numbers(one)) * np.exp(near(residuals(of[~kept], values, time), one, powers)), one.seconds
            row["kept"], row["sigma"] = score(*kept_back), round(sigma(*kept_back), 3)
        left = []
        for device in of.device.unique() if of.device.nunique() > 1 else ():
            rest, one = of[of.device != device], sample(of[of.device == device])
            v = fit(rest, start, time)
            predicted = time(v, numbers(one)) * np.exp(near(residuals(rest, v, time), one, powers))
            row.setdefault("device", {})[device] = score(predicted, one.seconds)
            left.append((sigma(predicted, one.seconds), predicted, one.seconds))
        if left:  # the errors on one device are the interval on the other
            row["sigma"] = round(float(np.mean([s for s, *_ in left])), 3)
            row["device_held"] = [held(p, t, left[1 - i][0]) for i, (_, p, t) in enumerate(left)]
            if kept_back:
                row["kept_held"] = held(*kept_back, row["sigma"])
        rest = shared(x[~x.generation.isin(ALIKE.get(generation, (generation,)))])
        if len(rest):
            one = sample(of)
            predicted = time(fit(rest, start, time), numbers(one))
            row["other"], row["other_sigma"] = score(predicted, one.seconds), round(sigma(predicted, one.seconds), 3)
        rows.append(row)
        tables.append((operator, name, generation, residuals(of, values, time), powers))
        print(json.dumps(row), flush=True)
    known = [r["sigma"] for r in rows if "device" in r] or [0.15]
    for row in rows:
        if "device" not in row:  # assumed to differ as devices of other generations differ
            row["sigma"] = max(row.get("sigma", 0), round(float(np.mean(known)), 3))
    x = shared(x)
    values = fit(x, start, time)
    others = [r["other_sigma"] for r in rows if r["of"] in set(x.generation) and "other_sigma" in r] or [0.5]
    rows.append({"operator": operator, "kernel": name, "of": "", "values": [float(f"{v:.4g}") for v in values], "powers": powers, "times": len(x),
                 "sigma": round(float(np.mean(others)), 3)})
    return rows, tables


def encode(tables):
    """times.bin, as plugins/serving reads it."""
    out = b""
    def uvarint(v):
        b = b""
        while v > 127:
            b, v = b + bytes([v & 127 | 128]), v >> 7
        return b + bytes([v])
    for operator, name, generation, table, _ in tables:
        for layout, t in table.groupby("layout"):
            t = t.astype({"N": int, "K": int, "M": int}).groupby(["N", "K", "M"], as_index=False).residual.mean()
            n = k = m = 0
            text = b""
            for r in t.itertuples():
                text += uvarint(r.N - n)
                k = k if r.N == n else 0
                text += uvarint(r.K - k)
                m = m if (r.N, r.K) == (n, k) else 0
                text += uvarint(r.M - m)
                n, k, m = r.N, r.K, r.M
            text += np.round(t.residual / STEP).to_numpy(np.int8).tobytes()
            z = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = z.compress(text) + z.flush()
            out += "\t".join((operator, name, generation, layout, str(len(t)), str(len(packed)))).encode() + b"\n" + packed
    return out


def examples(tables, path):
    """For a test of plugins/serving: what each table multiplies the terms by, a little beside one of its sizes."""
    with open(path, "w") as f:
        f.write("operator,kernel,of,layout,m,n,k,factor\n")
        for operator, name, generation, table, powers in tables:
            layout, t = next(iter(table.groupby("layout")))
            one = t.iloc[[len(t) // 2]].assign(M=lambda x: np.round(x.M * 1.3))
            f.write(",".join((operator, name, generation, layout, *(f"{one[c].iloc[0]:.6g}" for c in "MNK"),
                              f"{np.exp(near(t, one, powers)[0]):.5f}")) + "\n")


def summary(rows):
    """The mean shares of each operator's kernels, on the generations that have two devices, and of all."""
    x = pd.DataFrame([{"operator": r["operator"].split()[0] if r["operator"].startswith("experts") else r["operator"], "of": r["of"],
                       "kept": r.get("kept", [0, np.nan])[1], "kept_held": r.get("kept_held"), "other": (r.get("other") or [0, np.nan])[1],
                       "device": np.mean([d[1] for d in r["device"].values()]) if "device" in r else np.nan,
                       "device_held": np.mean(r["device_held"]) if "device_held" in r else np.nan} for r in rows if r["of"]])
    x["kept_held"] = x.kept_held.astype(float)
    print(x.groupby("operator")[["kept", "kept_held", "device", "device_held", "other"]].mean().round(3).to_string())
    print(x[["kept", "kept_held", "device", "device_held", "other"]].mean().round(3).to_string())
    devices = [(d, s[1]) for r in rows for d, s in r.get("device", {}).items()]
    print(pd.DataFrame(devices, columns=["device", "share"]).groupby("device").share.agg(["mean", "min", "size"]).round(3).to_string())


def main(wheel, output, without=""):
    rows, tables = [], []
    for operator, (read_rows, *model) in OPERATORS.items():
        x = read_rows(wheel)
        x = x[x.device != without]
        if "operator" not in x:
            x["operator"] = operator
        for (operator, name), of in x.groupby(["operator", "kernel"]):
            r, t = kernel(operator, name, of, *model)
            rows, tables = rows + r, tables + t
    summary(rows)
    with open(f"{output}/operators.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
    with open(f"{output}/times.bin", "wb") as f:
        f.write(encode(tables))
    examples(tables, f"{output}/testdata/near.csv")


if __name__ == "__main__":
    main(*sys.argv[1:])
