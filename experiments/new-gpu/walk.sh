#!/bin/sh
# The walk of a GPU that origami does not know, on an H200 under another name: calibrate, select, bench, fit. Its own
# device file is hidden: the records of calibration get another product name, so that all that is not measured is scaled
# from the H100. Usage: walk.sh ORIGAMI FOLDER, with the executor cuda trusted or beside it. Every step continues what an
# earlier call left in FOLDER.
set -eu
origami=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
space='--space warps=4,8 --space stages=3 --space block_k=32,64 --space split_k=1' # 91 kernels
time_of() { name=$1; shift; begin=$(date +%s); "$@"; echo "$name: $(($(date +%s) - begin)) s" >>"$out/seconds.txt"; }

time_of calibrate "$origami" calibrate --device auto --executor cuda --records "$out/calibration.jsonl" \
	--format csv >"$out/calibration.csv"
time_of calibrate-again "$origami" calibrate --device auto --executor cuda --records "$out/calibration-2.jsonl" \
	--format csv >"$out/calibration-2.csv"
sed 's/NVIDIA H200/NVIDIA H900/' "$out/calibration.jsonl" >"$out/unknown.jsonl"
"$origami" calibrate --replay "$out/unknown.jsonl" --output "$out/h900.yaml" --format csv >"$out/unknown.csv"
time_of select "$origami" --device-file "$out/h900.yaml" select -m 4096 -n 4096 -k 4096 --format table
time_of bench "$origami" --device-file "$out/h900.yaml" bench --executor cuda --kernel mma --timeout 60s \
	$space --problems "$here/sizes.csv" --records "$out/sweep" --format csv >"$out/bench-h900.csv"
time_of fit "$origami" --device-file "$out/h900.yaml" fit --kernel mma --records "$out/sweep" \
	--output "$out/h900-fitted.yaml" --format csv >"$out/fit.csv"
[ -e "$out/h900-fitted.yaml" ] &&
	"$origami" --device-file "$out/h900-fitted.yaml" eval --kernel mma $space --times "$out/sweep" --format csv \
		>"$out/eval-fitted.csv"
"$origami" --device-file "$out/h900.yaml" eval --kernel mma $space --times "$out/sweep" --format csv >"$out/eval-h900.csv"
"$origami" --device-file "$out/h900.yaml" roofline --kernel mma --records "$out/sweep" --format csv \
	>"$out/roofline.csv"
cat "$out/seconds.txt"
