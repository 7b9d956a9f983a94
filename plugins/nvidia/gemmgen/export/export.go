// Package export writes generated kernels to be used without origami: the PTX, and launchers for one problem in C and
// in Python. The launchers need the NVIDIA driver and nothing else.
package export

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/families"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

//go:embed templates/*
var texts embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"ctype": ctype, "pytype": pytype}).
		ParseFS(texts, "templates/*"))
})

// Kernel is what to export.
type Kernel struct {
	Family  gemmgen.Family
	Problem gemm.Problem
	Config  gemm.Config
	Limits  gemmgen.Limits
	// Adds asks for a kernel that may add to C: with another kernel, beta has to be zero.
	Adds bool
}

// For returns the kernel of a configuration for a problem on a device. The family is the configuration's.
func For(d *arch.Description, p gemm.Problem, c gemm.Config, adds bool) (Kernel, error) {
	var names []string
	for _, f := range families.All() {
		names = append(names, f.Name())
		if f.Name() != c.Kernel {
			continue
		}
		limits, err := limitsOf(d)
		return Kernel{Family: f, Problem: p, Config: c, Limits: limits, Adds: adds}, err
	}
	if d.Vendor != "NVIDIA" {
		return Kernel{}, diag.Inputf("origami generates no kernels for %s", d.ID()).Do("choose a GPU of NVIDIA")
	}
	return Kernel{}, diag.Inputf("origami does not generate kernels of the family %s", c.Kernel).
		Do("choose one of the families %s", strings.Join(names, ", "))
}

// limitsOf returns what a device lets a kernel use.
func limitsOf(d *arch.Description) (gemmgen.Limits, error) {
	cc, err := strconv.Atoi(strings.TrimPrefix(d.Arch, "sm"))
	if err != nil {
		return gemmgen.Limits{}, diag.Inputf("kernels are generated for NVIDIA GPUs, not for %s", d.Arch).
			Do("open an architecture of the plugin nvidia, such as sm90")
	}
	return gemmgen.Limits{
		Target:             target.Target{CC: cc, Suffix: target.ArchFeatures},
		RegistersPerThread: d.RegistersPerThread, RegisterFile: d.RegisterFile, SharedMemory: d.SharedMemory,
		Processors: d.Units,
	}, nil
}

// File is one of the files of an exported kernel.
type File struct {
	Name string
	Text []byte
}

// Files returns the files: NAME.ptx, NAME.h, NAME.c and NAME.py. NAME is the kernel's entry point.
func (k Kernel) Files() ([]File, error) {
	l, err := k.Launch()
	if err != nil {
		return nil, err
	}
	values := struct {
		*Launch
		gemm.Epilogue
		Problem, Formula string
	}{l, k.Problem.Epilogue, k.Problem.String(), gemmgen.Formula(k.Problem.Epilogue)}
	files := []File{{l.Name + ".ptx", []byte(l.PTX)}}
	for _, kind := range []string{"h", "c", "py"} {
		var b bytes.Buffer
		if err := templates().ExecuteTemplate(&b, "launcher."+kind, values); err != nil {
			return nil, err
		}
		files = append(files, File{l.Name + "." + kind, b.Bytes()})
	}
	return files, nil
}

// Launch is a kernel's text and how a problem is launched with it: everything but the addresses, alpha and beta.
type Launch struct {
	// Name is the entry point.
	Name   string            `json:"entry"`
	PTX    string            `json:"ptx,omitempty"`
	Digest [sha256.Size]byte `json:"-"` // of PTX
	Config gemm.Config       `json:"config"`
	// Grid is in CTAs. Each has so many threads, in one dimension, and bytes of dynamic shared memory.
	Grid         [3]int `json:"grid"`
	Threads      int    `json:"threads"`
	SharedMemory int64  `json:"shared_memory"`
	// Counters and Partials are bytes of workspace, each aligned to 256 bytes. The partial sums follow the counters, which
	// are zero before the first launch, and each launch leaves them at zero.
	Counters int64 `json:"counters"`
	Partials int64 `json:"partials"`
	// Adds says that it adds to what C holds, or to R, and Integer that alpha and beta are integers.
	Adds    bool `json:"adds"`
	Integer bool `json:"integer"`
	// Params are the parameters in the kernel's order.
	Params []Param `json:"parameters"`
	// Maps are the tensor maps that a launcher makes, in the order of the parameters that they fill.
	Maps []TensorMap `json:"maps"`
}

// TensorMap is a tensor map of three dimensions that a launcher makes, as cuTensorMapEncodeTiled takes it: without
// interleaving, with the 128-byte swizzle and zeros outside. Sizes are in elements, strides in bytes.
type TensorMap struct {
	Param   string    `json:"-"`
	Matrix  string    `json:"matrix"` // a, b or c
	Type    string    `json:"type"`   // of the driver's CUtensorMapDataType
	Code    int       `json:"-"`      // its value
	Sizes   [3]uint64 `json:"sizes"`
	Strides [2]uint64 `json:"strides"`
	Box     [3]uint32 `json:"box"`
}

// Param is a parameter of the kernel. Value is the value of a constant, or the place of a tensor map among the maps.
type Param struct {
	Name  string   `json:"-"`
	Role  Role     `json:"role"`
	Type  ptx.Type `json:"-"`
	Bytes int      `json:"bytes"`
	Value uint64   `json:"value"`
}

// Role says what a launcher fills a parameter with.
type Role string

// The roles of parameters that are in the launch. Those of the others are the names of the arguments.
const (
	RoleConstant Role = "constant"
	RoleMap      Role = "map"
)

// roles are in the order of their numbers in C. r is what the epilogue adds last, or C; a step is from one scale to the
// next, 1 or 0.
var roles = []Role{
	RoleConstant, RoleMap, "a", "b", "c", "bias", "partials", "counters", "alpha", "beta", "r", "scale_a", "scale_b",
	"step_a", "step_b",
}

// Number is the role's number in C.
func (r Role) Number() int { return slices.Index(roles, r) }

// base is an address that stands for the matrices and the workspace. It is aligned as memory from the driver.
const base = 1 << 40

// Launch builds the kernel and its launch.
func (k Kernel) Launch() (*Launch, error) {
	if err := k.Problem.Validate(); err != nil {
		return nil, err
	}
	call := gemmgen.NewCall(k.Problem)
	out := k.Problem.Output()
	if k.Adds {
		call.Beta = 1
	}
	program, reason, detail := k.Family.Program(call, out, k.Config, k.Limits)
	if reason != "" {
		return nil, diag.Inputf("%s cannot be built: %s: %s", k.Config, reason, detail).
			Do("choose another configuration, or none: then it is chosen")
	}
	partials, counters := gemmgen.WorkspaceOf(program, k.Problem, k.Config)
	call.A.Address, call.B.Address, call.C.Address = call.A.Address+base, call.B.Address+base, call.C.Address+base
	call.ScaleA, call.ScaleB = gemmgen.Scales{Address: base}, gemmgen.Scales{Address: base}
	call.Bias, call.R, call.Partials, call.Counters = base, call.C.Address, base, base
	kernel, digest, err := emit(program, k.Limits.Target)
	if err != nil {
		return nil, err
	}
	if kernel.Before != nil {
		return nil, diag.Inputf("%s runs another kernel first, and a launcher has one", k.Config).
			Do("choose another configuration")
	}
	launch, err := program.Launch(kernel, call)
	if err != nil {
		return nil, err
	}
	const round = 256 // partial sums are as aligned as memory from the driver
	l := &Launch{
		Name: kernel.Name, PTX: kernel.Text, Digest: digest, Config: k.Config,
		Grid: [3]int{launch.GridX, launch.GridY, launch.GridZ}, Threads: launch.Threads,
		SharedMemory: int64(launch.SharedMemory), Adds: k.Adds, Integer: k.Problem.DType.Integer(),
		Counters: (int64(counters) + round - 1) / round * round, Partials: int64(partials),
		Params: []Param{}, Maps: []TensorMap{},
	}
	for _, m := range launch.Maps {
		l.Maps = append(l.Maps, mapOf(m, kernel.Params))
	}
	for _, p := range kernel.Params {
		one := paramOf(p, launch.Params)
		if one.Role == RoleMap {
			one.Value = uint64(slices.IndexFunc(l.Maps, func(m TensorMap) bool { return m.Param == one.Name }))
		}
		l.Params = append(l.Params, one)
	}
	return l, nil
}

// emitted are kernels that were emitted lately: a kernel serves many problems, and its text takes longer than a launch.
var emitted struct {
	sync.Mutex
	kernels map[emission]emittedKernel
}

type emission struct{ key, target any }

type emittedKernel struct {
	*gemmgen.Kernel
	digest [sha256.Size]byte
}

// mostEmitted bounds the kernels that are kept, of some 50 KiB each. All go when there are more.
const mostEmitted = 128

// emit returns a program's kernel, and the digest of its text.
func emit(program gemmgen.Program, t target.Target) (*gemmgen.Kernel, [sha256.Size]byte, error) {
	emitted.Lock()
	defer emitted.Unlock()
	one, ok := emitted.kernels[emission{program.Key(), t}]
	if ok {
		return one.Kernel, one.digest, nil
	}
	kernel, err := program.Emit(t)
	if err != nil {
		return nil, one.digest, err
	}
	if emitted.kernels == nil || len(emitted.kernels) >= mostEmitted {
		emitted.kernels = map[emission]emittedKernel{}
	}
	one = emittedKernel{kernel, sha256.Sum256([]byte(kernel.Text))}
	emitted.kernels[emission{program.Key(), t}] = one
	return one.Kernel, one.digest, nil
}

func paramOf(p ptx.Param, values []byte) Param {
	one := Param{Name: p.Name, Type: p.Type, Bytes: p.Type.Bytes(), Role: RoleConstant}
	switch {
	case p.Type == ptx.TensorMap:
		one.Role = RoleMap
	case slices.Contains(roles[2:], Role(p.Name)):
		one.Role = Role(p.Name)
	case p.Type.Bytes() == 8:
		one.Value = binary.LittleEndian.Uint64(values[p.Offset:])
	default:
		one.Value = uint64(binary.LittleEndian.Uint32(values[p.Offset:]))
	}
	return one
}

func mapOf(m gemmgen.TensorMap, params []ptx.Param) TensorMap {
	one := TensorMap{Sizes: m.Sizes, Strides: m.Strides, Box: m.Box}
	for _, p := range params {
		if p.Offset == m.Offset {
			one.Param, one.Matrix = p.Name, p.Name[:1]
		}
	}
	// Source: cuda.h, CUtensorMapDataType.
	switch {
	case m.DType.Bytes() == 1:
		one.Type, one.Code = "CU_TENSOR_MAP_DATA_TYPE_UINT8", 0
	case m.DType == gemm.BF16:
		one.Type, one.Code = "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", 9
	default:
		one.Type, one.Code = "CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 6
	}
	return one
}

// types are the types of parameters in ctypes, and, with _t behind integers, in C.
var types = map[ptx.Type]string{
	ptx.U32: "uint32", ptx.S32: "int32", ptx.U64: "uint64", ptx.S64: "int64", ptx.F32: "float",
}

func pytype(t ptx.Type) string { return "ctypes.c_" + types[t] }

func ctype(t ptx.Type) string {
	if t == ptx.F32 {
		return types[t]
	}
	return types[t] + "_t"
}
