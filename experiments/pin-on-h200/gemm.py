"""Pins of Triton GEMMs beside the picks of origami's model of Triton's GEMMs, on the recorded times of
plugins/nvidia/pin/testdata: shares of the best configuration's speed. It needs the library alone (make lib)."""

import gzip
import json
import math
import pathlib
import re

from origami_gemm import lib

DATA = pathlib.Path(__file__).resolve().parents[2] / "plugins/nvidia/pin/testdata"
# kernel: the problem of the case's sizes
PROBLEMS = {"matmul_kernel": lambda m, n, k: dict(m=m, n=n, k=k, dtype="bf16"),
            "addmm_kernel": lambda m, n, k: dict(m=m, n=n, k=k, dtype="fp16"),
            "bmm_kernel": lambda b, m, n, k: dict(m=m, n=n, k=k, batch=b, dtype="bf16"),
            "linear_forward_kernel": lambda m, n, k: dict(m=m, n=n, k=k, dtype="fp16", trans_b=True),
            "_addmm_fwd": lambda m, n, k: dict(m=m, n=n, k=k, dtype="bf16")}
PROBLEMS["baddbmm_kernel"] = PROBLEMS["bmm_kernel"]
NAMES = {"block_m": "BM|(BLOCK|TILE)(_SIZE)?_M|BLOCK_SIZE_BATCH", "block_n": "BN|(BLOCK|TILE)(_SIZE)?_N|BLOCK_SIZE_OUT_FEAT",
         "block_k": "BK|(BLOCK|TILE)(_SIZE)?_K|BLOCK_SIZE_IN_FEAT", "group_m": "G|GROUP(_SIZE)?_(M|BATCH)"}


def config(text):
    values = dict(part.split("=") for part in text.split(",") if "=" in part)
    out = {of: int(v) for of, name in NAMES.items() for k, v in values.items() if re.fullmatch(name, k)}
    return {**out, "num_warps": int(re.search(r",w(\d+)", text)[1]), "num_stages": int(re.search(r",s(\d+)", text)[1])}


def main():
    model, library, shares = lib.Model("sm90", "h200", kernel="triton"), lib.load(), {}
    for line in (line for path in sorted(DATA.glob("*.gz")) for line in gzip.open(path, "rt")):
        row = json.loads(line)
        name = row["case"].split(" |")[0].rsplit(".", 1)[-1]
        if name not in PROBLEMS:
            continue
        sizes = map(int, row["case"].rsplit(" ", 1)[-1].split("x"))
        configs = [config(i) for i in row["ids"]]
        first = model.rank(**PROBLEMS[name](*sizes), candidates=configs, top=1)[0]
        mine = next(i for i, c in enumerate(configs) if all(c[k] == first[k] for k in c if k != "group_m"))
        kernels = [dict(zip(row["names"], k)) for k in row["kernels"]]
        pin = library.ask({"ask": "pin", "arch": "sm90", "device": "h200", "kernels": kernels})["pick"]
        one = [min(row["us"]) / row["us"][i] for i in (pin, mine)]
        shares.setdefault(name, []).append(one)
        print(f"{row['case'][-60:]:60s} pin {one[0]:.3f} model of GEMMs {one[1]:.3f}")
    for name, v in [*shares.items(), ("all", [x for v in shares.values() for x in v])]:
        means = [math.exp(sum(math.log(x[i]) for x in v) / len(v)) for i in (0, 1)]
        print(f"{name}: {len(v)}, pin {means[0]:.3f} ({min(x[0] for x in v):.3f}), "
              f"model of GEMMs {means[1]:.3f} ({min(x[1] for x in v):.3f})")


if __name__ == "__main__":
    main()
