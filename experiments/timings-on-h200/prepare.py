"""Writes what measure.py needs into a folder: the sizes, origami's picks, and their kernels as PTX. No GPU.

    python3 prepare.py FOLDER [--origami PATH] [--unseen]

Each size is asked of the families triton (without splits of K, which the tutorial kernel lacks), wgmma, mma and
library. Pick, predicted seconds in the timings model and events, and the interval in model go into FOLDER/plan.json;
wgmma and mma are exported beside it.
"""

import argparse
import json
import pathlib
import random
import subprocess

# (N, K) of layers: Llama 3 8B and 70B, Qwen2 7B, DeepSeek V3, Gemma 2 9B.
LAYERS = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 28672), (3584, 18944),
          (37888, 3584), (4608, 3584), (2112, 7168), (7168, 2048), (3584, 14336)]
ROWS = (1, 16, 64, 256, 1024, 4096)
# Of --unseen: Mistral 7B, Phi 3, Qwen2.5 14B, gpt-oss 20B, BERT large, ViT-H.
OTHERS = [(14336, 4096), (9216, 3072), (3072, 8192), (13824, 5120), (5120, 13824), (5120, 2880), (2880, 4096),
          (4096, 1024), (3840, 1280), (5120, 1280)]


def sizes():
    """(M, N, K, type): layers at several M, squares, random multiples of 8; bf16, and some again in fp16 and fp8."""
    rng = random.Random(20261123)
    layers = [(m, n, k) for i, (n, k) in enumerate(LAYERS) for m in (ROWS[i % 3], ROWS[3 + i % 3])]
    layers += [(m, 4096, 4096) for m in ROWS] + [(m, 7168, 2048) for m in (16, 128, 2048)]
    squares = [(s, s, s) for s in (256, 512, 1024, 2048, 3072, 4096, 8192)]
    drawn = [tuple(8 * round(2 ** rng.uniform(4, top) / 8) for top in (12.5, 13, 12.5)) for _ in range(20)]
    every = list(dict.fromkeys(layers + squares + drawn))
    fp8 = [s for s in every if all(v % 16 == 0 for v in s[1:])][1::2]
    return [(*s, "bf16") for s in every] + [(*s, "fp16") for s in every[::6]] + [(*s, "fp8") for s in fp8]


def unseen():
    """40 bf16 sizes that nothing was fitted to: other layers with other numbers of rows, and random multiples of 8."""
    rng = random.Random(28)
    layers = [(rng.choice((1, 8, 24, 48, 96, 200, 384, 640, 1500, 3000)), n, k) for n, k in OTHERS for _ in range(2)]
    drawn = [tuple(8 * round(2 ** rng.uniform(4, top) / 8) for top in (12.5, 13.5, 13)) for _ in range(20)]
    return [(*s, "bf16") for s in layers + drawn]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--origami", default="origami")
    parser.add_argument("--only", help="type of A and B")
    parser.add_argument("--unseen", action="store_true", help="40 other sizes")
    o = parser.parse_args()
    o.folder.mkdir(parents=True, exist_ok=True)

    def origami(*words):
        return subprocess.run([o.origami, "--in-process", "--arch", "sm90@h200", *words], check=True,
                              capture_output=True, text=True).stdout

    rows = []
    for number, (m, n, k, dtype) in enumerate(s for s in (unseen() if o.unseen else sizes()) if o.only in (None, s[3])):
        problem = ["-m", str(m), "-n", str(n), "-k", str(k), "--trans-b", "--dtype", dtype]
        row = {"m": m, "n": n, "k": k, "dtype": dtype, "families": {}}
        for family in ("library", "triton", "wgmma", "mma"):
            space = ["--space", "split_k=1"] if family == "triton" else []
            seconds = {}
            for timing in ("events", "model"):
                answer = json.loads(origami("select", *problem, "--kernel", family, *space, "--timing", timing, "--json"))
                seconds[timing] = answer["predicted"]["seconds"]
            one = {"config": answer["config"], "seconds": seconds,
                   "interval_seconds": answer["predicted"].get("interval_seconds")}
            if family in ("wgmma", "mma"):
                folder = o.folder / f"{number}-{family}"
                origami("export", *problem, "--kernel", family, "--out", str(folder))
                for extra in [*folder.glob("*.c"), *folder.glob("*.h")]:
                    extra.unlink()
                one["module"] = f"{folder.name}/{next(folder.glob('*.py')).stem}"
            row["families"][family] = one
        rows.append(row)
    (o.folder / "plan.json").write_text(json.dumps(rows, indent=1))
    print(len(rows), "sizes")


if __name__ == "__main__":
    main()
