#!/bin/sh
# Prints predicted.csv: the times of 12 sizes on parts of which no time was looked at. ORIGAMI names the command.
set -eu
origami=${ORIGAMI:-origami}
devices=${*:-rtx4090d rtx5080 rtxpro5000 h20-3e a800 a800-pcie-80gb mi350x mi300a}
sizes='m,n,k,trans_b
1,4096,4096,true
1,14336,4096,true
16,4096,14336,true
64,7168,2048,true
512,4096,4096,true
2048,4096,4096,true
2048,14336,4096,true
8192,8192,1024,true
1024,1024,1024,true
2048,2048,2048,true
4096,4096,4096,true
8192,8192,8192,true'

echo device,model,kernel,dtype,m,n,k,microseconds,tflops,bound
for device in $devices; do
	for dtype in bf16 fp8; do
		case $device:$dtype in a800*:fp8) continue ;; esac # compute capability 8.0 has no fp8
		for family in default library; do
			kernel=
			test $family = default || kernel="--kernel $family"
			# shellcheck disable=SC2086 # no kernel, no argument
			echo "$sizes" | $origami --in-process --arch "$device" --timing model select --problems - --dtype $dtype \
				$kernel --format csv | python3 -c '
import csv, sys
for row in csv.DictReader(sys.stdin):
    names = "device", "model", "kernel", "problem.dtype", "problem.m", "problem.n", "problem.k"
    print(*(row[name] for name in names), "%.4g" % (1e6 * float(row["predicted.seconds"])),
          "%.4g" % float(row["predicted.tflops"]), row["predicted.bound"], sep=",")'
		done
	done
done
