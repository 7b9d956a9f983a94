package kernel

// The common part of the families' register models. docs/model-nvidia-resources.md has the bounds and the derivation
// of the values.
const (
	// RegistersFixed are the registers of a thread that do not depend on the tile: sizes, strides, counters, base
	// addresses.
	RegistersFixed = 22
	// RegistersPerCopy are the registers for each copy of 16 bytes from global memory that a thread makes per K step:
	// a 64-bit pointer and a share of the offsets in shared memory.
	RegistersPerCopy = 2.4
)
