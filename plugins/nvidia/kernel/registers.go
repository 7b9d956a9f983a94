package kernel

// The part of the register model that families share. docs/model-nvidia-resources.md has the bounds and says how the
// values were found.
const (
	// RegistersFixed are the registers of a thread that do not depend on the tile: sizes, strides, counters, base
	// addresses.
	RegistersFixed = 22
	// RegistersPerCopy is for each copy of 16 bytes from global memory that a thread does per K step: a 64-bit pointer,
	// and a share of the offsets in shared memory.
	RegistersPerCopy = 2.4
)
