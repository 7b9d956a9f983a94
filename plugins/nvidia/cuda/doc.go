// Package cuda runs kernels on NVIDIA GPUs: it is the Executor behind origami-plugin-cuda. It compiles the kernels of
// plugins/nvidia/gemmgen with the driver's own compiler, checks their results, times them, and measures cuBLAS beside them.
//
// It is built with the tag "cuda" only (`make cuda`), through gorgonia.org/cu and a small file of its own for what that
// package lacks. Nothing is linked: the driver, NVML and cuBLAS are opened when the program runs, so that it starts
// anywhere and says what is missing.
package cuda

// Version is the version of the executor. A measurement names it: change it when measuring changes.
const Version = "0.1.0"
