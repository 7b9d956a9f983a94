package target

// What all targets from sm_80 on have in common, for kernels that are the same text on each of them. What a device lets
// a kernel use is in gpu.Device. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
// Capability", and the CUDA occupancy calculator, for 8.0 to 12.1.
const (
	// RegistersPerThread is the most registers that an instruction can name.
	RegistersPerThread = 255
	// RegisterFile has the registers of an SM. RegisterGranule is the multiple in which a thread has them.
	RegisterFile, RegisterGranule = 65536, 8
	// ThreadsPerCTA is the most threads of a CTA, GridYZ the most CTAs of a grid along y and z.
	ThreadsPerCTA, GridYZ = 1024, 65535
	// MostThreads is the most resident threads of an SM that any target has, LeastCTAs the most resident CTAs of the
	// target that has the fewest.
	MostThreads, LeastCTAs = 2048, 16
)
