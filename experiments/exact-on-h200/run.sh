#!/bin/bash
# Exact training on one H200, and on two: bash run.sh [contract|trees|bits|speed|step|two]...
# In a checkout it needs `make lib`. Elsewhere, beside it in one folder: run.py, two.py, the wheel of `make wheel
# WHEELS=linux_amd64` (or site/ with the package and liborigami.so in it), and, for `contract`, rl-kernel/ with RL-Kernel's
# tests/test_det_gemm.py and rl_engine/kernels/gtest/tolerance_contract.json, and the wheels of pytest. Results go to $OUT as
# they come. SECONDS_MOST is what each part may take.
export LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/cuda/lib64:$LD_LIBRARY_PATH
export OUT=${OUT:-/tmp/exact-out} PYTHONUNBUFFERED=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
HERE=$(cd "$(dirname "$0")" && pwd); mkdir -p "$OUT"
exec > >(tee -a "$OUT/log.txt") 2>&1
if [ -d "$HERE/site" ]; then
	export PYTHONPATH=$HERE/site:$HERE
elif ! ls "$HERE"/*.whl > /dev/null 2>&1; then
	export PYTHONPATH=$HERE/../../bindings/python
else
	[ -d /tmp/exact-site ] || python3 -m pip install -q --no-index --no-deps --no-compile --target /tmp/exact-site "$HERE"/*.whl
	export PYTHONPATH=/tmp/exact-site:$HERE
fi
run() { echo "== [$SECONDS s] $*"; timeout 460 python3 "$HERE/$1" "${@:2}" || echo "FAILED $*"; }
for PART in ${@:-contract trees bits speed step}; do
	case $PART in
	bits) run run.py bits 1 & other=$!; run run.py bits 2; wait $other ;;
	two) run two.py ;;
	*) run run.py "$PART" ;;
	esac
done
[ "$1" = two ] || run run.py summary
