"""Compare what predicts a deployment's time per token, on the same rows: ours, ten numbers of a roofline, BLIS, aiconfigurator.

    go test ./plugins/serving -run Deployments -args -predictions /tmp/ours.txt       # of the checkout
    git clone https://github.com/inference-sim/inference-sim /tmp/blis                # at f90a1e3a
    pip install numpy scipy aiconfigurator==0.12.0
    python compare.py ../../plugins/serving/testdata /tmp/ours.txt /tmp/blis EVERY    # aiconfigurator has every EVERY-th row, 0 for none

Ours and the ten numbers are fitted without the device that they predict. BLIS has the eleven numbers of its defaults.yaml and
the data sheets of the devices. aiconfigurator has tables that were measured on the very devices; it takes about a second a row.
"""

import csv
import gzip
import json
import logging
import pathlib
import subprocess
import sys

import numpy as np
from scipy.optimize import nnls

# FLOP/s in 16 and 8 bits, bytes/s of DRAM, bytes/s to the other GPUs, bytes, the name in aiconfigurator: data sheets
DEVICES = {"sm90@h100": (989e12, 1979e12, 3.35e12, 450e9, 80, "h100_sxm"), "sm90@h200": (989e12, 1979e12, 4.8e12, 450e9, 141, "h200_sxm"),
           "sm100@b200": (2250e12, 4500e12, 7.7e12, 900e9, 180, "b200_sxm"), "sm100@gb200": (2500e12, 5000e12, 8e12, 900e9, 186, "gb200")}
WIDTH = {"bf16": 2, "fp8": 1, "nvfp4": 0.5625, "mxfp4": 0.53, "int4": 0.53}
# What aiconfigurator knows without a network.
PATHS = {"llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B", "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B", "qwen3-32b": "Qwen/Qwen3-32B",
         "deepseek-r1": "deepseek-ai/DeepSeek-R1", "kimi-k2.5": "moonshotai/Kimi-K2.5", "gpt-oss-120b": "openai/gpt-oss-120b",
         "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B-FP8", "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5", "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B"}

BLIS = """package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/inference-sim/inference-sim/sim"
	"github.com/inference-sim/inference-sim/sim/latency"
)

type row struct {
	Config                                 string
	Hardware                               sim.HardwareCalib
	Width                                  float64
	TP, DP, EP, Batch, Context, New, Floor int
}

func main() {
	alpha := []float64{15563.199579, 777.3455, 45.907545}
	beta := []float64{0.152128, 0, 1.36252915, 0.752037, 32.09546717, 4.41684444, 126.024825, 481.8613888, 0, 1.94710771, 0.752037}
	for d := json.NewDecoder(os.Stdin); d.More(); {
		var r row
		if err := d.Decode(&r); err != nil {
			panic(err)
		}
		c, err := latency.GetModelConfig(r.Config)
		if err != nil {
			fmt.Println(0)
			continue
		}
		c.WeightBytesPerParam, c.BytesPerParam = r.Width, 2
		if c.IntermediateDim == 0 {
			c.IntermediateDim = c.MoEExpertFFNDim
		}
		m, err := latency.NewLatencyModel(sim.NewLatencyCoeffs(beta, alpha), sim.ModelHardwareConfig{
			ModelConfig: *c, HWConfig: r.Hardware, TP: r.TP, DP: r.DP, Backend: "trained-physics"})
		if err != nil {
			fmt.Println(0)
			continue
		}
		prompt, out := make([]sim.TokenID, r.Context), make([]sim.TokenID, r.New)
		one := func(done int64, n int) *sim.Request {
			return &sim.Request{InputTokens: prompt, OutputTokens: out, ProgressIndex: done, NumNewTokens: n}
		}
		var batch []*sim.Request
		for range r.Batch {
			batch = append(batch, one(int64(r.Context+r.New/2), 1))
		}
		prefill := m.StepTime([]*sim.Request{one(0, r.Context)}) * int64(r.Batch) / int64(r.New)
		fmt.Println(m.StepTime(batch) + prefill + m.OutputTokenProcessingTime())
	}
}
"""


def text_config(path):
    c = json.loads(path.read_text())
    return c.get("text_config", c)


def terms(r, c):
    """The ten terms of a row, in seconds but for their factors."""
    p16, p8, bw, link, *_ = DEVICES[r["device"]]
    tp, dp, batch, context, new = (int(r[k]) for k in ("tp", "dp", "batch", "context", "new"))
    width, rate = WIDTH[r["weights"]], p16 if r["weights"] == "bf16" else p8
    h, layers, heads = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"]
    dim, kv = c.get("head_dim") or h // heads, c.get("num_key_value_heads", heads)
    experts = c.get("n_routed_experts") or c.get("num_local_experts") or c.get("num_experts") or 0
    chosen, inner = c.get("num_experts_per_tok", 0), c.get("moe_intermediate_size") or c.get("intermediate_size")
    latent = c.get("kv_lora_rank")
    attention = h * (heads + 2 * kv) * dim + heads * dim * h if not latent else 187e6
    each = (latent + c["qk_rope_head_dim"]) if latent else 2 * kv * dim / tp * dp
    dense = layers * (attention + (0 if experts else 3 * h * c["intermediate_size"]))
    expert = layers * 3 * h * inner if experts else 0
    met = experts * (1 - (1 - chosen / experts) ** batch) if experts else 0
    active, seen = dense + expert * chosen, context + new / 2
    reads = batch / new
    return [dense * width / tp / bw, expert * met * width / tp / bw, batch / dp * layers * seen * each * (1 if r["weights"] == "bf16" else 0.5) / bw / 1,
            2 * active * batch / tp / rate, reads * 2 * active * context / tp / rate, reads * layers * 2 * context**2 * heads * dim / tp / p16,
            (tp > 1) * 2 * layers * batch * h * 2 / link, (tp > 1) * reads * 2 * layers * context * h * 2 / link, layers * 1e-5, batch * 1e-5]


def ten(rows, configs, seconds):
    x = np.array([terms(r, configs[r["model"]]) for r in rows])
    devices = np.array([r["device"] for r in rows])
    out = np.zeros(len(rows))
    for d in DEVICES:
        fit = (devices != d) & (devices != "sm100@gb200")
        out[devices == d] = x[devices == d] @ nnls(x[fit] / seconds[fit, None], np.ones(fit.sum()))[0]
    return out


def blis(rows, data, checkout):
    folder = pathlib.Path(checkout) / "cmd" / "compare"
    folder.mkdir(exist_ok=True)
    (folder / "main.go").write_text(BLIS)
    lines = []
    for r in rows:
        p16, p8, bw, _, memory, _ = DEVICES[r["device"]]
        hardware = {"TFlopsPeak": p16 / 1e12, "TFlopsFP8": p8 / 1e12, "BwPeakTBs": bw / 1e12, "mfuPrefill": 0.45, "mfuDecode": 0.3, "MemoryGiB": memory}
        lines.append(json.dumps({"Config": str((data / "configs" / (r["model"] + ".json")).resolve()), "Hardware": hardware, "Width": WIDTH[r["weights"]],
                                 "TP": int(r["tp"]) // int(r["dp"]), "DP": int(r["dp"]), "EP": int(r["ep"]), "Batch": int(r["batch"]),
                                 "Context": int(r["context"]), "New": int(r["new"])}))
    out = subprocess.run(["go", "run", "./cmd/compare"], cwd=checkout, input="\n".join(lines), capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    return np.array([float(v) for v in out.stdout.split()]) * 1e-6


def aiconfigurator(rows, every):
    from aiconfigurator.cli.api import cli_estimate

    logging.disable(logging.CRITICAL)
    out = np.zeros(len(rows))
    for i in range(0, len(rows), every):
        r = rows[i]
        tp, ep, dp = (int(r[k]) for k in ("tp", "ep", "dp"))
        weights = {"bf16": ("bfloat16", "bfloat16"), "fp8": ("fp8_block",) * 2 if r["blocks"] == "1" else ("fp8",) * 2, "nvfp4": ("nvfp4",) * 2,
                   "mxfp4": (None, None), "int4": ("bfloat16", "int4_wo")}[r["weights"]]
        try:
            e = cli_estimate(PATHS[r["model"]], DEVICES[r["device"]][-1], backend_name=r["server"], isl=int(r["context"]), osl=int(r["new"]),
                             batch_size=int(r["batch"]) // dp, tp_size=tp // dp, attention_dp_size=dp, moe_tp_size=tp // ep, moe_ep_size=ep,
                             gemm_quant_mode=weights[0], moe_quant_mode=weights[1])
            out[i] = e.tpot * 1e-3
        except Exception as error:
            print(i, r["model"], r["device"], type(error).__name__, str(error)[:80], file=sys.stderr)
    return out


def main(data, ours, checkout, every="0"):
    data = pathlib.Path(data)
    with gzip.open(data / "deployments.csv.gz", "rt") as f:
        rows = list(csv.DictReader(f))
    configs = {r["model"]: text_config(data / "configs" / (r["model"] + ".json")) for r in rows}
    seconds = np.array([float(r["ms"]) for r in rows]) * 1e-3
    of = {"ours": np.array([float(v) for v in open(ours).read().split()]) * 1e-3, "ten numbers": ten(rows, configs, seconds),
          "BLIS's eleven": blis(rows, data, checkout)}
    if int(every):
        of["aiconfigurator"] = aiconfigurator(rows, int(every))
    devices = np.array([r["device"] for r in rows])
    for title, which in [("all rows", np.full(len(rows), True))] + [(d, devices == d) for d in DEVICES]:
        print(title)
        if int(every):
            print("  of the rows that aiconfigurator predicts")
        for name, predicted in of.items():
            all_there = which & np.all([p > 0 for p in of.values()], axis=0)
            for where in (all_there, which & (predicted > 0)) if int(every) else (which & (predicted > 0),):
                e = np.abs(predicted[where] / seconds[where] - 1)
                if len(e):
                    print(f"    {name:15s} {len(e):5d} rows: median error {100 * np.median(e):5.1f} %, within 20 %: {100 * np.mean(e < 0.2):3.0f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
