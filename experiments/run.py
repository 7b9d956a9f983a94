#!/usr/bin/env python3
"""Runs an experiment again.

    python3 experiments/run.py                      lists them, with what each needs
    python3 experiments/run.py NAME [ARGUMENT ...]  runs one; arguments go to its last program

It runs from the root of the checkout, with bin/origami, bin/liborigami.so and the executors of `make build lib cuda triton`
(trusted, see docs/measuring.md). Results go to the folder in OUT, or else to bin/experiments/NAME. experiments/README.md
says what came out. Some programs are in git alone: they run in a checkout of the commit that has them, which is made and
built beside the results (`make build lib`; executors are the caller's).
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = "plugins/nvidia/data"
SWEEP = "random2-fp16"

# What each needs beside a build, and its commands for a shell. HERE is its folder, OUT the folder of its results.
EXPERIMENTS = {
    "deepbench-on-h200": ("nothing", f"""cd {DATA}/grids
        for t in fp16 tf32; do origami --arch sm90@h200 logic eval --records deepbench-$t/h200-nn \\
             --records deepbench-$t/h200-nt --records deepbench-$t/h200-tn; done
         origami --arch h100 logic eval --kernel sgemm --records deepbench-fp32/h100-128x128 \\
             --records deepbench-fp32/h100-nn-tuned --records deepbench-fp32/h100-nt-tuned --records deepbench-fp32/h100-tn-tuned"""),
    "fit-on-h200": ("nothing", f"""
        origami --device-file $HERE/h200-blank.yaml fit --records {DATA}/h200-triton --output $OUT/fitted.yaml
        origami --device-file $OUT/fitted.yaml eval --times {DATA}/h200-triton-other
        origami calibrate --replay {DATA}/h200-calibration/records.jsonl.gz"""),
    "grouped-on-h200": ("Go", "go test -count=1 -run Grouped ./plugins/nvidia/data && "
                              "go test -count=1 -v -run FloorsOfGroups ./plugins/nvidia"),
    "kernel-parameters-on-h200": ("H200", f"""cd {DATA}/sweeps/warps
        origami --arch sm90@h200 bench --executor cuda --kernel mma --problems fp16.csv --candidates fp16-configs.csv \\
            --records $OUT/fp16"""),
    "issue-on-h200": ("H200, nvcc", "nvcc -O3 -std=c++17 -arch=sm_90a -o $OUT/micro $HERE/micro.cu && $OUT/micro"),
    "logic-on-h200": ("nothing", f"""origami logic eval --folds 5 --arch sm90@h200 --records {DATA}/grids/slides/h200
        origami logic eval --folds 5 --arch sm90@h200"""),
    "mma-on-h200": ("nothing", "origami --arch sm90@h200 --model reference bench --kernel mma"),
    "mma-peak": ("H200", "make cuda-test && bin/cuda.test -test.run xxx -test.bench OfPeak -test.benchtime 150x"),
    "new-gpu": ("H200", "sh $HERE/walk.sh origami $OUT"),
    "nvidia-amd-published": ("nothing", "origami eval --published --arch h100,mi300x,h200,mi355x --pairs"),
    "persistent-on-h100": ("H100, torch, triton", f"""cd {DATA}/h100-persistent
        origami --arch sm90@h100 eval --times h100-test --candidates configs.csv"""),
    "reference-on-h200": ("nothing", """origami --arch sm90@h200 --model reference bench
        origami --arch sm90@h200 --model reference --rung compiled bench
        origami --arch sm90@h200 bench --kernel triton"""),
    "refined-on-h200": ("nothing", f"""origami eval --arch sm90@h200
        origami eval --arch sm90@h200 --rung compiled --times {DATA}/sweeps/{SWEEP}/h200-test \\
            --candidates {DATA}/sweeps/{SWEEP}/configs.csv"""),
    "refined-ablation": ("Go", "go test -count=1 -run Ablation -v ./plugins/nvidia/pipelined/fit -ablation"),
    "resources": ("Go", "go test -count=1 -run TestResources -v ./plugins/nvidia/kernel"),
    "rungs-on-h200": ("Go", "go test -count=1 -run TestMoreKnowledgePicksNoSlower -v ./plugins/nvidia/..."),
    "sgemm-on-h100": ("nothing", f"""origami ladder --arch sm90@h100
        cd {DATA}/sweeps
        origami eval --arch sm90@h100 --kernel sgemm --times sgemm/sgemm-test --candidates sgemm/sgemm-configs.csv
        origami bench --arch sm90@h100 --kernel sgemm --dtype fp32 --records sgemm-picks/sgemm-test \\
            --candidates sgemm-picks/sgemm-configs.csv"""),
    "sgemm-yardstick": ("H100, nvcc", "nvcc -O3 -arch=sm_90a -o $OUT/yardstick experiments/sgemm-on-h100/yardstick.cu && $OUT/yardstick"),
    "sgemm-on-h200": ("H200", """cd $HERE
        origami bench --arch sm90@h200 --kernel sgemm --dtype fp32 --executor cuda --candidates candidates.csv \\
            --problems large.csv --records $OUT/large
        origami bench --arch sm90@h200 --kernel sgemm --dtype fp32 --executor cuda --candidates rungs.csv \\
            --problems ladder.csv --records $OUT/ladder"""),
    "slides-on-h200": ("nothing", f"""origami map --arch sm90@h200 --records {DATA}/grids/slides/h200
        cd {DATA}/grids
        origami tune slides/tune.yaml --arch sm90@h200 --records slides/h200 --max-measurements 729"""),
    "slides-on-h200-again": ("nothing", f"""cd {DATA}/grids
        origami logic eval slides/h200-tuned.yaml --arch sm90@h200 --records slides/h200-again"""),
    "step-operators": ("pyarrow, numpy, scipy", 'pip download aiconfigurator-core==0.12.0 --no-deps -d $OUT && '
                       'python3 $HERE/fit.py $OUT/*.whl plugins/serving'),
    "triton-on-h200": ("nothing", f"origami --arch sm90@h200 bench --records {DATA}/h200-triton-executor"),
    "unseen-parts": ("nothing", "cd $HERE && ./predict.sh > $OUT/predicted.csv && ./compare.sh"),
    "vega10-slides": ("Go", """go test -count=1 -v -run 'Vega|SlideWinners' ./plugins/amd-ref
        origami map --from plugins/amd-ref/data/vega10-slides.csv --dtype fp32"""),
    "wgmma-on-h200": ("nothing", f"""
        origami bench --arch sm90@h200 --kernel wgmma --records {DATA}/h200-wgmma/both/wgmma-builtin-test
        origami bench --arch sm90@h200 --kernel wgmma --records {DATA}/h200-wgmma/random/wgmma-test"""),
}

# The last commits with programs that are in git alone. Nothing that ships rests on another run of them.
IN_GIT = {"b13881df": {
    "inductor-cublas": ("nothing", "python3 $ROOT/experiments/inductor-on-h200/cublas.py"),
    "library-times": ("GPU, torch", 'python3 $ROOT/plugins/library/published/measured/cublas.py $OUT/times.csv "$@"'),
    "pin-on-h200": ("H200, torch, triton 3.6", """if [ $# -gt 0 ]; then python3 "$HERE/$@"
        else $HERE/get.sh ${CASES:-} && $HERE/run.sh; fi"""),
    "step-compared": ("numpy, scipy, aiconfigurator 0.12.0, Go", """cd $ROOT
        go test ./plugins/serving -run Deployments -args -predictions $OUT/ours.txt
        git clone https://github.com/inference-sim/inference-sim $OUT/blis && git -C $OUT/blis checkout f90a1e3a
        python3 experiments/step-operators/compare.py plugins/serving/testdata $OUT/ours.txt $OUT/blis ${EVERY:-0}"""),
    "step-deployments": ("silicon_sample.csv.gz of aiconfigurator-core 0.12.0",
                         'python3 $ROOT/experiments/step-operators/deployments.py "$1" $OUT/deployments.csv.gz'),
    "vllm-invariant-on-h100": ("H100, torch, triton", """
        if [ $# = 0 ]; then for m in llama-3.1-8b qwen3-1.7b; do
            origami table invariant $HERE/$m.json --arch sm90@h100 --output $OUT/tables --format csv > /dev/null; done
            set -- $OUT/tables/*.json; fi
        python3 $HERE/measure.py "$@" """),
}, "4237175a": {
    "collectives-on-h200": ("two H200, torch", 'python3 $HERE/measure.py $OUT/times.csv'),
    "exact-on-h200": ("H200, torch", 'bash $HERE/run.sh "$@"'),
    "layers-on-h100": ("H100, torch", 'SEED=${SEED:-128} python3 $HERE/measure.py "$@"'),
    "models-on-h100": ("H100, torch", 'python3 $HERE/measure.py "$@"'),
    "tuning-compared": ("optuna 5.0.0, kernel_tuner 1.5.0", 'python3 $HERE/compare.py origami "$@"'),
}, "8911d3c7": {
    "advice-on-h100": ("H100, torch", 'python3 $HERE/measure.py origami $OUT/result.jsonl "$@"'),
    "epilogues-on-h100": ("H100, torch", 'python3 $HERE/measure.py "$@"'),
    "experts-on-h100": ("H100, torch", 'python3 $HERE/measure.py "$@"'),
    "fp8-on-h100": ("H100, torch", 'python3 $HERE/measure.py "$@"'),
    "here-on-h200": ("H200, torch, triton, a wheel", "bash $HERE/run.sh known"),
    "inductor-on-h200": ("H200, torch", """python3 $HERE/measure.py all --out $OUT/result.json "$@"
        python3 $HERE/table.py $OUT/result.json"""),
    "layers-held": ("H100, torch", "python3 $ROOT/experiments/layers-on-h100/held.py"),
    "logic-classifiers": ("numpy 2.4.6, scikit-learn 1.9.1", "python3 $ROOT/experiments/logic-on-h200/compare.py origami"),
    "lookup-table": ("H100, torch 2.11", 'python3 $HERE/measure.py $OUT/result.json --layers 4 --turns 1 "$@"'),
    "many-gpus-simulated": ("Go, an hour", "make many-gpus"),
    "persistent-inductor": ("H100, torch 2.11", """
        python3 $ROOT/experiments/persistent-on-h100/inductor.py $OUT/inductor.json "$@"
        python3 $ROOT/experiments/persistent-on-h100/orders.py $OUT/inductor.json"""),
    "timings-on-h200": ("H200, torch, triton", """python3 $HERE/prepare.py $OUT --origami $(command -v origami)
        python3 $HERE/measure.py $OUT $OUT/result.jsonl "$@" """),
    "timings-table": ("nothing", "python3 $ROOT/experiments/timings-on-h200/table.py"),
    "torch-on-h100": ("H100, torch", 'python3 $HERE/measure.py "$@"'),
    "triton-pick-on-h200": ("H200, torch, triton", 'python3 $HERE/bench_triton.py run $OUT/result.json "$@"'),
    "two-gpus": ("two H100s, torch", 'python3 $HERE/tune.py "$@"'),
    "wgmma-on-h100": ("H100, torch", 'python3 $HERE/measure.py "$@"'),
}}


def checkout(folder, commit):
    """A commit's files in a folder, built."""
    if not folder.exists():
        folder.mkdir()
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    subprocess.run(["make", "build", "lib"], cwd=folder, check=True)
    return folder


def main():
    commits = {name: commit for commit, programs in IN_GIT.items() for name in programs}
    known = EXPERIMENTS | {name: program for programs in IN_GIT.values() for name, program in programs.items()}
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        print(__doc__)
        for name, (needs, _) in known.items():
            print(f"{name:28}{needs}{f' (in git, {commits[name]})' if name in commits else ''}")
        return len(sys.argv) > 1
    name = sys.argv[1]
    out = pathlib.Path(os.environ.get("OUT") or ROOT / "bin/experiments" / name).resolve()
    out.mkdir(parents=True, exist_ok=True)
    root = checkout(out / "checkout", commits[name]) if name in commits else ROOT
    join = os.pathsep.join
    environment = {
        "ORIGAMI_LIB": str(root / "bin/liborigami.so"), **os.environ, "ROOT": str(root), "HERE": str(root / "experiments" / name),
        "OUT": str(out), "PATH": join([str(root / "bin"), os.environ.get("PATH", "")]),
        "PYTHONPATH": join(filter(None, [f"{root}/bindings/python", f"{root}/experiments", os.getenv("PYTHONPATH")]))}
    return subprocess.run(["sh", "-exc", known[name][1], "sh", *sys.argv[2:]], cwd=root, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
