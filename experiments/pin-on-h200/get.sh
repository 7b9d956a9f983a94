#!/bin/bash
# The sources of the packages whose kernels are measured, to src/, which git ignores.
set -e
cd "$(dirname "$0")"
mkdir -p src
pip download -q --no-deps -d src fla-core==0.6.0
for w in src/*.whl; do python3 -m zipfile -e "$w" src; rm "$w"; done
pip install -q --no-deps -t src einops packaging
