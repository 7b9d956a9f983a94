// Recorded measurements, which no program links. This file keeps them out of the module of the command.
module github.com/origami-gemm/origami/plugins/nvidia/data/sweeps

go 1.26.0
