package gpu

import "github.com/origami-gemm/origami/plugins/nvidia/gpu/target"

// The SMs of architectures for which only the kernels of vendor libraries are modelled.
var (
	// SM70 is the SM of compute capability 7.0: V100.
	SM70 = &SM{ID: "sm70", Generation: "volta", Target: target.Target{CC: 70}}
	// SM75 is the SM of compute capability 7.5: T4, GeForce RTX 20.
	SM75 = &SM{ID: "sm75", Generation: "turing", Target: target.Target{CC: 75}}
)
