#!/bin/bash
# Measures pins on an H200. It needs, in this folder: src/ with the packages' sources (get.sh), and in the checkout bin/
# with liborigami.so (make lib). PyTorch and Triton 3.6 are the machine's. The results are one tar, $OUT/pin-on-h200.tar.gz.
set -e
cd "$(dirname "$0")"
export OUT="${OUT:-$PWD/out}" DEADLINE="${DEADLINE:-540}" TRITON_CACHE_DIR="${TRITON_CACHE_DIR:-/tmp/pin-triton}"
export PYTHONPATH="$PWD/../../bindings/python" ORIGAMI_LIB="${ORIGAMI_LIB:-$PWD/../../bin/liborigami.so}"
export ORIGAMI_PIN_CACHE="${ORIGAMI_PIN_CACHE:-/tmp/pin-answers}"
mkdir -p "$OUT"
python3 measure.py pins > "$OUT/pins.txt" 2>&1  # it also compiles, on all cores
python3 measure.py times 2>&1 | tee "$OUT/log.txt"
cd "$OUT" && tar czf pin-on-h200.tar.gz times.jsonl log.txt pins.json
