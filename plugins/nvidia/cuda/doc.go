// Package cuda is the Executor of origami-plugin-cuda: it runs kernels on NVIDIA GPUs. It compiles the kernels of the
// families in plugins/nvidia/gemmgen with the compiler in the driver, checks their results, times them, and measures
// cuBLAS beside them. It knows a family by gemmgen.Family alone.
//
// The package is built with the tag "cuda" only (`make cuda`). It calls the driver through gorgonia.org/cu, and
// through driver.c for what that package lacks. Nothing is linked: the driver, NVML and cuBLAS are opened when the
// program runs, so that it starts anywhere and says what is missing.
package cuda

// Version is the version of the executor. A measurement names it: change it when measuring changes.
const Version = "0.1.0"
