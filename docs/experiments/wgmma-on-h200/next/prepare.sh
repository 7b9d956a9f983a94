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

export_() { # folder, m, n, k, family, configuration, flags…
  local to=$1 m=$2 n=$3 k=$4 family=$5 config=$6
  shift 6
  "$bin/origami" --in-process --arch sm90@h200 --kernel "$family" export -m "$m" -n "$n" -k "$k" --config "$config" \
    --out "$bin/export/$to" "$@" >/dev/null
}
for c in 64x64x64,warps=8,stages=4,split=1 64x128x64,warps=8,stages=3,split=2 128x128x64,warps=12,stages=4,split=1,cluster=2 \
  192x128x64,warps=16,stages=4,split=1 128x128x64,warps=12,stages=4,split=1,stream_k=1; do
  export_ plain 200 264 320 wgmma "$c"
  export_ epilogue 200 264 320 wgmma "$c" --epilogue bias+gelu
done
export_ plain 200 264 320 mma 64x64x64,warps=4,stages=3,split=1
export_ epilogue 200 264 320 mma 64x64x64,warps=4,stages=3,split=3 --epilogue bias+gelu
for size in 4096 8192; do
  export_ $size $size $size $size mma 128x256x64,warps=8,stages=3,split=1 --trans-b
  for c in 128x256x64,warps=12,stages=4,split=1 128x256x64,warps=12,stages=4,split=1,cluster=2 \
    128x256x64,warps=12,stages=4,split=1,stream_k=1,cluster=2 192x192x64,warps=16,stages=3,split=1,cluster=2; do
    export_ $size $size $size $size wgmma "$c" --trans-b
  done
done
du -sh "$bin"
