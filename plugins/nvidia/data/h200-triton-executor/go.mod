// Recorded measurements, which no program links. This file keeps them out of the module of the command.
module github.com/origami-gemm/origami/plugins/nvidia/data/h200-triton-executor

go 1.26.0
