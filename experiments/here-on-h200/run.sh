#!/bin/bash
# origami here on a real GPU: run.sh [known|hidden|all], some 3 minutes a part. It needs this folder with a wheel in it,
# python3 with pip, torch and triton, and a driver. hidden also needs origami-hidden.xz: the command of the wheel, built
# without configs/sm90-h200.yaml and without the H200's row in plugins/nvidia/data/data.go. Everything goes to $OUT.
export LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/cuda/lib64:$LD_LIBRARY_PATH
OUT=${OUT:-/tmp/here-out}; mkdir -p "$OUT"; HERE=$(cd "$(dirname "$0")" && pwd); PART=${1:-all}
say() { echo; echo "== [$(( $(date +%s) - START )) s] $*"; }; START=$(date +%s)
cd /tmp
exec > >(tee -a "$OUT/transcript.txt") 2>&1
say "pip install of the local wheel"
time python3 -m pip install --no-index --quiet --disable-pip-version-check --root-user-action=ignore "$HERE"/*.whl || { time python3 -m pip install --no-index --quiet --target /tmp/t "$HERE"/*.whl; export PYTHONPATH=/tmp/t; }
export PATH=/tmp/t/bin:$(dirname "$(which python3)"):$PATH; python3 -c 'import sys; print(sys.executable)'
which origami; origami version; nvidia-smi -L; python3 -c 'import torch, triton; print("torch", torch.__version__, "triton", triton.__version__)'

answers() { # before|after: what answers know of the sizes that here does not measure
  for k in triton wgmma mma library; do
    origami select --arch auto --kernel $k --timing events --problems "$HERE/other.csv" --json > "$O/$1-$k.jsonl" 2>> "$O/errors.txt"
    origami select --arch auto --kernel $k --timing events --problems "$HERE/other-fp8.csv" --json > "$O/$1-$k-fp8.jsonl" 2>> "$O/errors.txt"
  done; }
python_answer() { python3 - <<'P'
import origami_gemm
m = origami_gemm.Model("auto")
p = m.select(4096, 4096, 4096, dtype="bf16")
print(m, "evidence", p.evidence, "interval", p.interval)
P
}
part() { # name
  export HOME=/tmp/home-$1 XDG_CONFIG_HOME= ; rm -rf $HOME; mkdir -p $HOME; O=$OUT/$1; mkdir -p "$O"
  say "$1: before"
  origami plugin ls; time origami select --arch auto -m 4096 -n 4096 -k 4096 --dtype bf16
  python_answer; answers before
  say "$1: origami here, interrupted after 20 s, and again to its end"
  time timeout -s INT 20 origami here
  time origami here | tee "$O/here.txt"
  say "$1: once more, which measures nothing"
  time origami here --json | tee "$O/here.json"
  say "$1: after"
  origami select --arch auto -m 4096 -n 4096 -k 4096 --dtype bf16; python_answer; answers after
  cp -r $HOME/.config/origami/devices "$O/"
  say "$1: the picks of other sizes are measured, of the answers without the file and of those with it"
  for f in "" -fp8; do
    for s in before after; do
      [ $s = before ] && export XDG_CONFIG_HOME=/tmp/none || export XDG_CONFIG_HOME=
      for k in triton:triton wgmma:cuda mma:cuda; do
        origami select --arch auto --kernel ${k%:*} --problems "$HERE/other$f.csv" --measure 1 --executor ${k#*:} --json > "$O/measured-$s-${k%:*}$f.jsonl" 2>> "$O/errors.txt"
      done
    done
    python3 "$HERE/library.py" "$HERE/other$f.csv" > "$O/measured-library$f.jsonl" 2>> "$O/errors.txt"
  done
  say "$1: how many of their times lie in the intervals before and after"
  python3 "$HERE/compare.py" "$O" | tee "$O/held.txt"
  grep -v '^$' "$O/errors.txt" | sort | uniq -c | sort -rn | head -5; }

if [ "$PART" != hidden ]; then
  part known
  say "calibrate and tune of the wheel"
  time origami calibrate --output "$OUT/calibrated.yaml" --records "$OUT" --format csv > "$OUT/calibrate.csv"
  time origami tune --arch auto --executor cuda --records "$OUT/tuned" -m 3072 -n 4096 -k 4096 --dtype bf16 --budget 15s
fi
if [ "$PART" != known ] && [ -e "$HERE/origami-hidden.xz" ]; then
  # The same program without its file and its records of the H200: the GPU is one that nobody described.
  mkdir -p /tmp/hidden; cp "$(dirname "$(which origami)")"/origami-plugin-* /tmp/hidden/
  python3 -c "import lzma,sys;sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())" "$HERE/origami-hidden.xz" > /tmp/hidden/origami; chmod +x /tmp/hidden/*; export PATH=/tmp/hidden:$PATH; hash -r
  python_answer() { :; } # the library of the wheel knows the H200
  part hidden
fi
say "done"
