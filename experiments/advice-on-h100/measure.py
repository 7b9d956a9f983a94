"""Follow advice on a GPU: the predicted gain of each piece beside the measured one.

    python3 measure.py ORIGAMI RESULT.jsonl

ORIGAMI is the command, with the executors `cuda` and `triton` trusted or beside it. Times are of one launch between events
with a cold L2 (`--timing events`): of origami's kernels as its executors measure them, of the vendor's library by
`triton.testing.do_bench`. Results are kept as they come.
"""

import json
import math
import os
import subprocess
import sys
import tempfile

import torch
import triton.testing

ARCH = "h100"
EXECUTORS = {"triton": "triton", "wgmma": "cuda", "mma": "cuda", "sgemm": "cuda"}
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}

QUESTIONS = [
    "-m 5000 -n 5000 -k 5000",
    "-m 4096 -n 4096 -k 4090",
    "-m 4096 -n 4098 -k 4096",
    "-m 4096 -n 4096 -k 4096 --lda 4097",
    "-m 1000 -n 1000 -k 1000",
    "-m 2100 -n 2100 -k 512 --dtype bf16",
    "-m 4096 -n 4096 -k 4096 --align 2",
    "-m 8192 -n 1001 -k 4096 --trans-b",
    "-m 1 -n 4096 -k 4096 --dtype bf16 --trans-b",
    "-m 16 -n 14336 -k 4096 --dtype bf16 --trans-b",
    "-m 200 -n 37888 -k 3584 --dtype bf16",
    "-m 300 -n 6144 -k 4096 --dtype bf16 --trans-b",
    "-m 1100 -n 2048 -k 8192 --trans-a",
    "-m 70 -n 4096 -k 14336 --dtype bf16 --trans-b",
    "-m 256 -n 4096 -k 4096 --config 64x64x32,w4,s3",
    "-m 4096 -n 4096 -k 4096 --config 128x128x32,w8,s3",
    "-m 64 -n 1024 -k 16384 --config 64x128x64,w4,s3,k1",
    "-m 8 -n 4096 -k 4096 --config 16x64x64,w4,s3,k1 --dtype bf16",
]


class Bench:
    def __init__(self, origami):
        self.origami = origami
        self.known = {}

    def ask(self, *words):
        done = subprocess.run([self.origami, "--arch", ARCH, "--timing", "events", *words, "--json"],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout.splitlines()[0])

    def measure(self, kernel, problem, config):
        key = json.dumps([kernel, problem, config])
        if key not in self.known:
            self.known[key] = self.library(problem) if kernel == "library" else self.kernel(kernel, problem, config)
        return self.known[key]

    def kernel(self, kernel, problem, config):
        with tempfile.TemporaryDirectory() as folder:
            problems, candidates = os.path.join(folder, "p.jsonl"), os.path.join(folder, "c.json")
            with open(problems, "w") as f:
                f.write(json.dumps(problem))
            with open(candidates, "w") as f:
                json.dump([config], f)
            answer = self.ask("--kernel", kernel, "select", "--problems", problems, "--candidates", candidates,
                              "--measure", "1", "--executor", EXECUTORS[kernel])
        one = answer["measured"]["candidates"][0]
        if one["status"] != "ok":
            raise RuntimeError(f"{one['status']}: {one.get('detail', '')}")
        return one["median_seconds"]

    @staticmethod
    def library(problem):
        dtype = DTYPES[problem["dtype"]]

        def operand(rows, columns, transposed, ld, align):
            if transposed:
                rows, columns = columns, rows
            ld = ld or columns
            start = (align or 16) % 16 // dtype.itemsize
            flat = torch.randn(rows * ld + start, device="cuda", dtype=torch.float32).to(dtype)
            matrix = flat[start:].view(rows, ld)[:, :columns]
            return matrix.t() if transposed else matrix

        a = operand(problem["m"], problem["k"], problem.get("trans_a"), problem.get("lda"), problem.get("align_a"))
        b = operand(problem["k"], problem["n"], problem.get("trans_b"), problem.get("ldb"), problem.get("align_b"))
        return triton.testing.do_bench(lambda: torch.mm(a, b), warmup=50, rep=200, return_mode="median") * 1e-3


def main(origami, path):
    bench = Bench(origami)
    rows = []
    with open(path, "w") as out:
        props = torch.cuda.get_device_properties(0)
        head = {"device": props.name, "torch": torch.__version__, "triton": triton.__version__, "timing": "events"}
        out.write(json.dumps(head) + "\n")
        for text in QUESTIONS:
            words = text.split()
            verb = "explain" if "--config" in words else "select"
            try:
                answer = bench.ask(verb, *words, "--advice")
                before = bench.measure(answer["kernel"], answer["problem"], answer["config"])
            except (RuntimeError, KeyError) as e:
                print(text, "FAILED", e, flush=True)
                out.write(json.dumps({"question": text, "error": str(e)}) + "\n")
                continue
            for advice in answer.get("advice", []):
                row = {"question": text, "rule": advice["rule"], "do": advice["do"], "promised": advice["gain"],
                       "kernel": advice["kernel"], "predicted": [answer["predicted"]["seconds"], advice["seconds"]]}
                try:
                    if advice["rule"] == "fuse":
                        row["error"] = "not measured: it takes a kernel behind the product"
                    else:
                        after = bench.measure(advice["kernel"], advice["problem"], advice["config"])
                        work = advice["problem"]["m"] / answer["problem"]["m"] if advice["rule"] == "rows" else 1
                        row.update(measured=[before, after], got=before / after * work)
                        rows.append(row)
                except RuntimeError as e:
                    row["error"] = str(e)
                print(json.dumps(row), flush=True)
                out.write(json.dumps(row) + "\n")
                out.flush()
    half = sum(r["got"] - 1 >= (r["promised"] - 1) / 2 for r in rows)
    print(f"{len(rows)} measured, {half} with at least half of the gain, {sum(r['got'] < 1 for r in rows)} cost time, "
          f"geometric mean of got ÷ promised {math.exp(sum(math.log(r['got'] / r['promised']) for r in rows) / max(1, len(rows))):.3f}")


main(*sys.argv[1:])
