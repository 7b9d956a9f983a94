"""Write the deployments of plugins/serving/testdata from a file of aiconfigurator-core 0.12.0 (Apache-2.0).

    python deployments.py silicon_sample.csv.gz ../../plugins/serving/testdata/deployments.csv.gz

Aggregated rows on at most eight GPUs. Some rows give products of sizes as sizes, which are read as their roots: a --tp of
16 and 64 with as many parts of experts (4 and 8 GPUs), and groups whose GPUs count twice. The batch of groups is that of
all, from the row's source.
"""

import csv
import gzip
import io
import math
import re
import sys

MODELS = {"Llama-3.1-70B": "llama-3.1-70b", "Llama-3.1-8B": "llama-3.1-8b", "Qwen3-32B": "qwen3-32b", "DeepSeek": "deepseek-r1",
          "Kimi": "kimi-k2.5", "gpt-oss": "gpt-oss-120b", "Qwen3-235B": "qwen3-235b-a22b", "MiniMax": "minimax-m2.5",
          "Qwen3.5": "qwen3.5-397b-a17b"}
DEVICES = {"b200_sxm": "sm100@b200", "h100_sxm": "sm90@h100", "h200_sxm": "sm90@h200", "gb200": "sm100@gb200"}
WEIGHTS = {"": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "int4_wo": "int4"}


def number(text):
    return max(1, int(float(text or 1)))


def row(r):
    """A row, or None for one with more GPUs or of another model or device."""
    model = next((v for k, v in MODELS.items() if k in r["model_path"]), None)
    if r["mode"] != "agg" or model is None or r["system"] not in DEVICES:
        return None
    tp, dp, parts, ep = (number(r[k]) for k in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"))
    batch = number(r["batch_size"])
    if dp > 1:
        tp = ep = dp = dp if tp == 1 and dp == parts * ep <= 8 else math.isqrt(parts * ep)
        batch = int(re.search(r"silicon_concurrency=(\d+)", r["silicon_data_source"])[1])
    elif tp in (16, 64) and parts == ep:
        tp = parts
    elif ep * parts > tp:
        ep = max(1, tp // parts) if parts < tp else tp
    if tp > 8:
        return None
    weights = "mxfp4" if model == "gpt-oss-120b" else WEIGHTS[r["gemm_quant_mode"]]
    return [model, DEVICES[r["system"]], r["backend"], weights, int(r["moe_quant_mode"] == "fp8_block"), tp, ep, dp, batch,
            r["isl"], r["osl"], f"{float(r['silicon_tpot_ms']):.4g}"]


def main(source, target):
    with gzip.open(source, "rt") as f:
        rows = sorted(filter(None, map(row, csv.DictReader(f))), key=str)
    text = io.StringIO()
    w = csv.writer(text, lineterminator="\n")
    w.writerow("model device server weights blocks tp ep dp batch context new ms".split())
    w.writerows(rows)
    with open(target, "wb") as f, gzip.GzipFile("", "wb", fileobj=f, mtime=0) as z:
        z.write(text.getvalue().encode())
    print(len(rows), "rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
