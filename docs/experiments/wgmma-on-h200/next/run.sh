#!/bin/bash
# Measures what the last version of the family wgmma has not been measured for, part by part, each within a time.
#
#   run.sh BIN OUT PART…        BIN has origami, origami-plugin-cuda and cuda.test; OUT gets the results
#
# Parts: correct (random problems, epilogues), fallback (bench and select without --kernel), builtin (the 23 sizes of
# bench), bf16 (records), sanitize, export (C and Python), counters (ncu; BIN/export has kernels).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
bin=$(cd "$1" && pwd) out=$2
shift 2
mkdir -p "$out" && out=$(cd "$out" && pwd)
export PATH=$bin:$PATH ORIGAMI_REQUIRE_GPU=1
origami plugin trust "$bin/origami-plugin-cuda"

part() { # seconds, name, command…
  local limit=$1 name=$2 from=$SECONDS
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  echo "$name: exit $? after $((SECONDS - from)) s of $limit; $(tail -n 1 "$out/$name.log" | cut -c1-160)"
}

bench() { # seconds, name, problems, candidates, flags…
  local limit=$1 name=$2 problems=$3 candidates=$4
  shift 4
  part "$limit" "$name" origami --arch sm90@h200 --kernel wgmma bench --executor cuda --problems "$problems" \
    --candidates "$candidates" --records "$out/records/$name" --report "$out/report/$name" "$@"
}

correct() {
  part 150 random "$bin/cuda.test" -test.v -test.run TestRandomWgmma
  part 60 epilogues "$bin/cuda.test" -test.v -test.run 'TestRandomEpilogues|TestRandomNests'
}

fallback() { # K of 999 is for mma, as no tensor map describes it
  printf 'm,n,k,dtype\n1000,1000,1000,fp16\n1000,1000,999,fp16\n' >"$out/fallback.csv"
  part 60 fallback origami --arch sm90@h200 bench --executor cuda --problems "$out/fallback.csv" \
    --space block_m=64,128 --space block_n=64,128 --space block_k=64 --space num_warps=8 \
    --records "$out/records/fallback" --report "$out/report/fallback"
  part 30 fallback-select origami --arch sm90@h200 select --executor cuda --measure 4 --problems "$out/fallback.csv" \
    --format json
}

builtin_sizes() {
  part 200 builtin origami --arch sm90@h200 --kernel wgmma bench --executor cuda --candidates "$out/all.csv" \
    --records "$out/records/builtin" --report "$out/report/builtin"
}

bf16() {
  local data=$root/plugins/nvidia/data/h200-wgmma set
  for set in skinny large; do
    (cat "$data/$set/fit.csv"; tail -n +2 "$data/$set/test.csv") | sed 's/fp16/bf16/' >"$out/bf16-$set.csv"
    bench 90 "bf16-$set" "$out/bf16-$set.csv" "$data/$set/wgmma-configs.csv"
  done
}

sanitize() { # 36 kernels of the family, with and without splits, shared tiles, clusters and epilogues
  for tool in memcheck racecheck; do
    part 90 "$tool" compute-sanitizer --tool $tool --error-exitcode 9 \
      "$bin/cuda.test" -test.v -test.run TestRandomEpilogues/wgmma
  done
}

exported() {
  local check=$root/plugins/nvidia/gemmgen/export/testdata name
  part 40 export-python python3 "$check/check.py" "$bin/export/plain" 200 264 320
  part 20 export-epilogue python3 "$check/check.py" "$bin/export/epilogue" 200 264 320 0 bias+gelu
  for ptx in "$bin"/export/plain/*.ptx; do
    name=$(basename "$ptx" .ptx)
    part 20 "export-$name" sh -c "cd '$bin/export/plain' && nvcc -DNAME=$name -DSIZE_M=200 -DSIZE_N=264 -DSIZE_K=320 \
      -I. -o /tmp/check '$check/check.c' $name.c -lcuda && /tmp/check $name.ptx 0"
  done
}

counters() {
  for size in 4096 8192; do
    part 60 "counters-$size" ncu --section SpeedOfLight --section MemoryWorkloadAnalysis --section WarpStateStats \
      --kernel-name 'regex:^(wgmma|mma)_' --csv --page raw python3 "$here/counters.py" "$bin/export/$size" $size $size $size
  done
}

for name in "$@"; do
  case $name in
    builtin) # those of the recorded sweep of large sizes have whole tiles
      (cat "$root/plugins/nvidia/data/h200-wgmma/tail/wgmma-configs.csv"; tail -n +2 "$root/plugins/nvidia/data/h200-wgmma/large/wgmma-configs.csv" | sed 's/$/,0/') |
        sort -ru | awk '!/^block_m/ || !head++' >"$out/all.csv"
      builtin_sizes ;;
    export) exported ;;
    *) "$name" ;;
  esac
done
