// Package export writes generated kernels to be used without origami: the PTX, and launchers for one problem in C and
// in Python. The launchers need the NVIDIA driver and nothing else.
package export

import (
	"bytes"
	"embed"
	"encoding/binary"
	"fmt"
	"sync"
	"text/template"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
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

// File is one of the files of an exported kernel.
type File struct {
	Name string
	Text []byte
}

// Files returns the files: NAME.ptx, NAME.h, NAME.c and NAME.py. NAME is the kernel's entry point.
func (k Kernel) Files() ([]File, error) {
	v, text, err := k.view()
	if err != nil {
		return nil, err
	}
	files := []File{{v.Name + ".ptx", []byte(text)}}
	for _, kind := range []string{"h", "c", "py"} {
		var b bytes.Buffer
		if err := templates().ExecuteTemplate(&b, "launcher."+kind, v); err != nil {
			return nil, err
		}
		files = append(files, File{v.Name + "." + kind, b.Bytes()})
	}
	return files, nil
}

// view is what the templates show.
type view struct {
	Name, Problem, Config string
	DType, Out            gemm.DType
	GridX, GridY, GridZ   int
	Threads               int
	SharedMemory          int64
	Maps                  []tensorMap
	Params                []param
	Counters, Partials    int64 // bytes; the partial sums follow the counters
	Adds, Integer, Bias   bool
	Formula               string
}

// tensorMap is a tensor map that a launcher makes.
type tensorMap struct {
	Param   string
	Matrix  string // a, b or c
	Type    string // of the driver's CUtensorMapDataType
	Code    int    // its value
	Sizes   [3]uint64
	Strides [2]uint64
	Box     [3]uint32
}

// param is a parameter of the kernel. Value is that of a constant. Role is one of: map, constant, or the name of what
// the launcher fills in (a, b, c, bias, partials, counters, alpha, beta).
type param struct {
	Name, Role string
	Type       ptx.Type
	Value      uint64
}

// dynamic are the parameters that differ from launch to launch.
var dynamic = map[string]bool{
	"a": true, "b": true, "c": true, "bias": true, "partials": true, "counters": true, "alpha": true, "beta": true,
}

// base is an address that stands for the matrices and the workspace. It is aligned as memory from the driver.
const base = 1 << 40

// view builds the kernel and its launch.
func (k Kernel) view() (*view, string, error) {
	if err := k.Problem.Validate(); err != nil {
		return nil, "", err
	}
	call := gemmgen.NewCall(k.Problem)
	out := k.Problem.Output()
	if k.Adds {
		call.Beta = 1
	}
	program, reason, detail := k.Family.Program(call, out, k.Config, k.Limits)
	if reason != "" {
		return nil, "", diag.Inputf("%s cannot be built: %s: %s", k.Config, reason, detail).
			Do("choose another configuration, or none: then it is chosen")
	}
	partials, counters := gemmgen.WorkspaceOf(program, k.Problem, k.Config)
	call.A.Address, call.B.Address, call.C.Address = call.A.Address+base, call.B.Address+base, call.C.Address+base
	call.Bias, call.Partials, call.Counters = base, base, base
	kernel, err := program.Emit(k.Limits.Target)
	if err != nil {
		return nil, "", err
	}
	if kernel.Before != nil {
		return nil, "", diag.Inputf("%s runs another kernel first, and a launcher has one", k.Config).
			Do("choose another configuration")
	}
	launch, err := program.Launch(kernel, call)
	if err != nil {
		return nil, "", err
	}
	const round = 256 // partial sums are as aligned as memory from the driver
	v := &view{
		Name: kernel.Name, Problem: k.Problem.String(), Config: k.Config.String(), DType: k.Problem.DType, Out: out,
		GridX: launch.GridX, GridY: launch.GridY, GridZ: launch.GridZ, Threads: launch.Threads,
		SharedMemory: int64(launch.SharedMemory), Adds: k.Adds, Integer: k.Problem.DType.Integer(),
		Bias: k.Problem.Epilogue.Bias, Formula: gemmgen.Formula(k.Problem.Epilogue),
		Counters: (int64(counters) + round - 1) / round * round, Partials: int64(partials),
	}
	for _, p := range kernel.Params {
		v.Params = append(v.Params, paramOf(p, launch.Params))
	}
	for _, m := range launch.Maps {
		v.Maps = append(v.Maps, mapOf(m, kernel.Params))
	}
	return v, kernel.Text, nil
}

func paramOf(p ptx.Param, values []byte) param {
	one := param{Name: p.Name, Type: p.Type, Role: "constant"}
	switch {
	case p.Type == ptx.TensorMap:
		one.Role = "map"
	case dynamic[p.Name]:
		one.Role = p.Name
	case p.Type.Bytes() == 8:
		one.Value = binary.LittleEndian.Uint64(values[p.Offset:])
	default:
		one.Value = uint64(binary.LittleEndian.Uint32(values[p.Offset:]))
	}
	return one
}

func mapOf(m gemmgen.TensorMap, params []ptx.Param) tensorMap {
	one := tensorMap{Sizes: m.Sizes, Strides: m.Strides, Box: m.Box}
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

// ctype is the C type of a parameter, pytype its type in ctypes.
func ctype(t ptx.Type) string {
	return map[ptx.Type]string{
		ptx.U32: "uint32_t", ptx.S32: "int32_t", ptx.U64: "uint64_t", ptx.S64: "int64_t", ptx.F32: "float",
	}[t]
}

func pytype(t ptx.Type) string {
	return fmt.Sprintf("ctypes.c_%s", map[ptx.Type]string{
		ptx.U32: "uint32", ptx.S32: "int32", ptx.U64: "uint64", ptx.S64: "int64", ptx.F32: "float",
	}[t])
}
