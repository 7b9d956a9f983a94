#!/bin/bash
# Builds what run.sh needs into a folder, on a machine with Go: prepare.sh BIN
set -eu
root=$(cd "$(dirname "$0")/../../../.." && pwd)
mkdir -p "$1" && bin=$(cd "$1" && pwd)
cd "$root"
make cuda-ready
export CGO_ENABLED=1 CGO_CFLAGS="-O2 -I$root/plugins/nvidia/cuda/shim -I$root/bin/tools/cuda-headers/nvidia/cu13/include" \
  CGO_LDFLAGS="-L$root/bin/tools/cuda-link"
go build -trimpath -ldflags '-s -w' -tags cuda -o "$bin/" ./plugins/nvidia/cmd/origami-plugin-cuda
go test -tags cuda -trimpath -ldflags '-s -w' -c -o "$bin/cuda.test" ./plugins/nvidia/cuda
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/" ./cmd/origami
du -sh "$bin"
