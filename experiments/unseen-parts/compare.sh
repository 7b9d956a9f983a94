#!/bin/sh
# Prints what family library predicts for each time of measured.csv, of the same timing, and predicted ÷ measured, then
# the median of each device and type. ORIGAMI names the command.
set -eu
origami=${ORIGAMI:-origami}
cd "$(dirname "$0")"
python3 -c '
import csv
for r in csv.DictReader(open("measured.csv")):
    if r["m"]: # a rate without its size is compared in README.md
        print(*(r[c] for c in ("device", "dtype", "m", "n", "k", "trans_b", "timing", "microseconds", "library")))' |
while read -r device dtype m n k trans_b timing us library; do
	flag=; test "$trans_b" = false || flag=--trans-b
	# shellcheck disable=SC2086 # no flag, no argument
	predicted=$($origami --in-process --arch "$device" --timing "$timing" select --kernel library --dtype "$dtype" -m "$m" \
		-n "$n" -k "$k" $flag --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["predicted"]["seconds"] * 1e6)')
	echo "$device $dtype $m $n $k $timing $library $us $predicted"
done | python3 -c '
import collections, statistics, sys
groups = collections.defaultdict(list)
for line in sys.stdin:
    *names, measured, predicted = line.split()
    ratio = float(predicted) / float(measured)
    groups[names[0], names[1], names[6]].append(ratio)
    print(*names, measured, f"{float(predicted):.4g}", f"{ratio:.2f}")
for name, ratios in groups.items():
    print("median", *name, f"{statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} times")'
