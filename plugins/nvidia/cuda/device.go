//go:build cuda

package cuda

// #include "blas.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/families"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// device is one GPU with everything that the executor keeps on it between calls.
type device struct {
	ordinal cu.Device
	context cu.CUContext
	stream  cu.Stream
	// begin and end are recorded before and after the run that is timed.
	begin, end cu.Event
	state      state
	name       string
	target     target.Target
	attributes map[string]float64
	modules    modules
	blas       *blas // nil without cuBLAS
	assembler  assembler

	// quiet is held while kernels are timed, and while one is loaded. A load holds the driver's locks for tens of
	// milliseconds. A launch between two events that waits for these locks would be timed with the wait.
	quiet sync.Mutex

	// running is held while kernels run, so that runs on a device take turns. It guards the fields below.
	running sync.Mutex
	flush   region
	// delaying is the kernel that pauses the stream.
	delaying loaded
	pool     region
	// poolType is the element type of the numbers in the pool.
	poolType gemm.DType
	// operands are those of the last problem.
	operands *operands
	checks   checks
	scratch  scratch
}

// modules keeps kernels loaded, so that a sweep over problems compiles each of them once.
type modules struct {
	device *device
	mu     sync.Mutex
	byKey  map[any]*module
	clock  uint64
}

// module is a compiled kernel. It serves all programs with its key.
type module struct {
	loaded
	key    any
	kernel *gemmgen.Kernel
	before loaded // kernel.Before, if there is one
	uses   exec.Resources
	err    error
	once   sync.Once
	users  int
	idle   uint64 // the clock of modules when the last user released it
}

// The names under which cuBLAS is measured: the kernel that it chooses, and the fastest of those that it proposes.
const (
	libraryDefault = "cublas"
	libraryBest    = "cublas-best"
)

// blas is cuBLAS on a device. The caller of its methods holds device.running.
type blas struct {
	library   *C.origami_blas
	workspace region
	version   string
}

// operands are the matrices of one problem on the device, each between fences.
type operands struct {
	device  *device
	problem gemm.Problem
	a, b, c region
	// first has the addresses of the first elements of A, B and C. They are as aligned as the problem says, not more.
	first [3]uint64
	// want is the right values of every rowStep-th row of C, rows of them, in fp32, or in int32 if C is. reference says
	// what computed them.
	want          region
	rows, rowStep int
	reference     string
	// hostReference has the right values instead for the problems that are checked on the host.
	hostReference *gemmgen.HostReference
	// workspace is memory that a kernel needs beside the matrices. offsets has the tables of a problem with a nest.
	workspace, offsets region
	// bias is the bias of the problem's epilogue, between fences. biases are its bytes.
	bias   region
	biases []byte
}

// checks holds the kernels that check results: references by layout, comparisons by the type of C.
type checks struct {
	kernels map[any]compiled
	verdict region
}

type layout struct {
	dtype  gemm.DType
	aMajor gemm.Major
	bMajor gemm.Major
}

// compiled is a kernel that checks results, loaded on the device.
type compiled struct {
	loaded
	verifier
}

// verifier is a gemmgen.Reference or a gemmgen.Comparison.
type verifier interface {
	Launch(v gemmgen.Verification) (gemmgen.Launch, error)
}

// scratch is what programs use of the device. It stays between runs: programs that follow each other have the same
// buffers.
type scratch struct {
	texts    map[string]loaded
	buffers  []region
	counters region
	numbers  map[gemm.DType][]byte
}

// do calls f on a thread that has the device's context.
func (d *device) do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		return err
	}
	return f()
}

// families returns the generated families whose instructions the device has.
func (d *device) families() []gemmgen.Family {
	return slices.DeleteFunc(families.All(), func(f gemmgen.Family) bool { return !d.target.Covers(f.Target()) })
}

// limits are what the device lets a kernel use.
func (d *device) limits() gemmgen.Limits {
	return gemmgen.Limits{
		Target:             d.target,
		RegistersPerThread: target.RegistersPerThread, RegisterFile: int(d.attributes["register_file"]),
		SharedMemory: unit.Bytes(d.attributes["shared_memory_bytes"]),
		Processors:   int(d.attributes["num_sms"]),
	}
}

// describe answers exec.Executor.Devices.
func (d *device) describe() exec.Device {
	out := exec.Device{Name: d.name, Arch: fmt.Sprintf("sm%d", d.target.CC), Attributes: d.attributes}
	for _, f := range d.families() {
		out.Kernels = append(out.Kernels, f.Name())
	}
	if d.blas != nil {
		out.Libraries = []string{libraryDefault, libraryBest}
	}
	return out
}

// runtime names the CUDA version of the driver and the version of cuBLAS.
func (d *device) runtime() string {
	v := cu.Version()
	s := fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	if d.blas != nil {
		s += ", cuBLAS " + d.blas.version
	}
	return s
}
