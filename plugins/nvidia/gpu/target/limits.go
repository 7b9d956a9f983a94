package target

// What all targets from sm_80 on have in common, for kernels that are the same text on each of them. What a device lets
// a kernel use is in gpu.Device. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
// Capability", and the CUDA occupancy calculator, for 8.0 to 12.1.
const (
	// RegistersPerThread is the most registers that an instruction can name.
	RegistersPerThread = 255
	// RegisterFile is the registers of an SM.
	RegisterFile = 65536
	// RegisterGranule is the multiple in which a thread has registers.
	RegisterGranule = 8
	// GridYZ is the most CTAs of a grid along y and z.
	GridYZ = 65535
	// MostThreads is the most resident threads of an SM that any target has.
	MostThreads = 2048
	// LeastCTAs is the most resident CTAs of an SM of the target that has the fewest.
	LeastCTAs = 16
	// SharedOfSM90 is the shared memory that a CTA can have on 9.0, in bytes.
	SharedOfSM90 = 227 << 10
)
