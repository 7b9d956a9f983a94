#!/bin/bash
# Measures what the last version of the family wgmma has not been measured for, part by part, each within a time.
#
#   run.sh BIN OUT PART…        BIN has origami, origami-plugin-cuda and cuda.test; OUT gets the results
#
# Parts: correct (random problems, epilogues), fallback (bench and select without --kernel), builtin (the 23 sizes of
# bench).
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

for name in "$@"; do
  case $name in
    builtin) # those of the recorded sweep of large sizes have whole tiles
      (cat "$root/plugins/nvidia/data/h200-wgmma/tail/wgmma-configs.csv"; tail -n +2 "$root/plugins/nvidia/data/h200-wgmma/large/wgmma-configs.csv" | sed 's/$/,0/') |
        sort -ru | awk '!/^block_m/ || !head++' >"$out/all.csv"
      builtin_sizes ;;
    *) "$name" ;;
  esac
done
