//go:build cuda

package cuda

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "driver.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// driver returns an error if there is no driver or no GPU. Nothing else of the driver may be called then.
func driver() error {
	if problem := C.origami_driver(); problem != nil {
		return &diag.Error{
			Kind: diag.Device, What: C.GoString(problem), Where: "CUDA",
			Fix: "install the driver, or run where a GPU is",
		}
	}
	return nil
}

// start enqueues a launch of a function on a stream. The parameters may be reused when it returns.
func start(stream cu.Stream, f cu.Function, l gemmgen.Launch) error {
	return code(C.origami_launch(function(f), C.uint(l.GridX), C.uint(l.GridY), C.uint(l.GridZ),
		C.uint(l.Threads), C.uint(l.SharedMemory), *(*C.CUstream)(unsafe.Pointer(&stream)),
		unsafe.Pointer(unsafe.SliceData(l.Params)), C.size_t(len(l.Params)),
		(*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(l.Offsets))), C.size_t(len(l.Offsets))))
}

// encodeMaps writes the tensor maps of a launch to its parameters.
func encodeMaps(l *gemmgen.Launch) error {
	for i := range l.Maps {
		m := &l.Maps[i]
		dtype := C.CUtensorMapDataType(C.CU_TENSOR_MAP_DATA_TYPE_FLOAT16)
		switch {
		case m.DType.Bytes() == 1:
			dtype = C.CU_TENSOR_MAP_DATA_TYPE_UINT8
		case m.DType == gemm.BF16:
			dtype = C.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
		}
		var (
			sizes   [len(m.Sizes)]C.cuuint64_t
			strides [len(m.Strides)]C.cuuint64_t
			box     [len(m.Box)]C.cuuint32_t
		)
		for j, v := range m.Sizes {
			sizes[j], box[j] = C.cuuint64_t(v), C.cuuint32_t(m.Box[j])
		}
		for j, v := range m.Strides {
			strides[j] = C.cuuint64_t(v)
		}
		err := code(C.origami_tensor_map(unsafe.Pointer(&l.Params[m.Offset]), dtype, C.cuuint64_t(m.Address),
			&sizes[0], &strides[0], &box[0]))
		if err != nil {
			return diag.Inputf("the driver refuses the tensor map of %d x %d x %d elements at %#x, rows %d bytes apart: %v",
				m.Sizes[0], m.Sizes[1], m.Sizes[2], m.Address, m.Strides[0], err)
		}
	}
	return nil
}

// allowShared allows a function so much dynamic shared memory.
func allowShared(f cu.Function, bytes unit.Bytes) error {
	return code(C.origami_allow_shared(function(f), C.int(bytes)))
}

// function returns the driver's handle. It is the only field of cu.Function, which does not export it.
func function(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }

// compile loads PTX text into the current context. The error has the first complaint of the compiler, and the whole
// log as detail.
func compile(text string) (cu.Module, error) {
	const size = 64 << 10
	buffer := C.calloc(1, size) // the driver stores the address as an integer, so it must not be Go memory
	defer C.free(buffer)
	module, err := cu.LoadDataEx(text, &cu.JITErrorLogBuffer{Buffer: unsafe.Slice((*byte)(buffer), size)})
	if err == nil {
		return module, nil
	}
	log := strings.TrimSpace(C.GoString((*C.char)(buffer)))
	return module, &compileError{err, log}
}

// compileError is a refusal by the compiler in the driver.
type compileError struct {
	err error
	log string
}

func (e *compileError) Unwrap() error { return e.err }

// Error returns the first line that complains, and the number of lines in the log.
func (e *compileError) Error() string {
	lines := strings.Split(e.log, "\n")
	for _, line := range lines {
		if strings.Contains(line, "error") || strings.Contains(line, "fatal") {
			return fmt.Sprintf("%v: %s (%d lines in the log)", e.err, strings.TrimSpace(line), len(lines))
		}
	}
	return fmt.Sprintf("%v: %s", e.err, lines[0])
}

// Format adds the whole log for %+v.
func (e *compileError) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprint(s, e.Error())
	if s.Flag('+') && verb == 'v' {
		_, _ = fmt.Fprintf(s, "\n%s", e.log)
	}
}

// code converts a result of the driver to an error of the type that gorgonia.org/cu returns.
func code(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return as(cu.Success, int(r))
}

// as converts a number to the type of its first argument, for types that cannot be named here.
func as[T ~int](_ T, n int) T { return T(n) }

// Errors after which the device cannot be used (gone), and errors of a request that the device cannot serve
// (refused). After any other error of a running kernel the context is lost, and the process cannot get it back.
// Source: CUDA driver API, CUresult.
var (
	gone    = []error{cu.NoDevice, cu.InvalidDevice, cu.EccUncorrectable, cu.SystemNotReady, cu.NvlinkUncorrectable}
	refused = []error{cu.OutOfMemory, cu.LaunchOutOfResources, cu.InvalidValue}
)

func anyOf(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// fault gives an error of the driver its kind, and names the operation during which it happened.
func fault(err error, during string) error {
	var d *diag.Error
	switch {
	case err == nil || errors.As(err, &d):
		return err
	case anyOf(err, gone):
		return &diag.Error{
			Kind: diag.Device, What: fmt.Sprintf("the device was lost: %v", err), Where: during,
			Fix: "see what nvidia-smi and the kernel's log say", Err: err,
		}
	case anyOf(err, refused):
		return &diag.Error{Kind: diag.Input, What: fmt.Sprintf("the driver refuses: %v", err), Where: during, Err: err}
	default:
		return &diag.Error{Kind: diag.Plugin, What: fmt.Sprintf("the kernel failed: %v", err), Where: during, Err: err}
	}
}

// loaded is a kernel on the device, with the module that it is in.
type loaded struct {
	module   cu.Module
	function cu.Function
}

// loadFunction compiles PTX text and returns the kernel of that name.
func loadFunction(text, name string) (loaded, error) {
	module, err := compile(text)
	if err != nil {
		return loaded{}, diag.Inputf("the driver does not compile %s: %v", name, err)
	}
	f, err := module.Function(name)
	return loaded{module, f}, err
}

// loadImage loads machine code, or PTX text where there is none or the driver refuses it, and returns the kernel of
// that name.
func loadImage(image []byte, text, name string) (loaded, error) {
	if image != nil {
		if module, err := cu.LoadData(string(image)); err == nil {
			if f, err := module.Function(name); err == nil {
				return loaded{module, f}, nil
			}
		}
	}
	return loadFunction(text, name)
}

// unload drops the kernel, if there is one.
func (l loaded) unload() {
	if l.function != (cu.Function{}) {
		_ = l.module.Unload()
	}
}

// functionResources allows a function its dynamic shared memory and asks the driver what the function uses.
func functionResources(f cu.Function, threads int, shared unit.Bytes) (r exec.Resources, err error) {
	if err := allowShared(f, shared); err != nil {
		return r, err
	}
	if r.Registers, err = f.Attribute(cu.NumRegs); err != nil {
		return r, err
	}
	local, err := f.Attribute(cu.LocalSizeBytes)
	if err != nil {
		return r, err
	}
	static, err := f.Attribute(cu.SharedSizeBytes)
	if err != nil {
		return r, err
	}
	r.SpillBytes, r.SharedMemory = unit.Bytes(local), shared+unit.Bytes(static)
	r.CTAsPerSM, err = f.MaxActiveBlocksPerMultiProcessor(threads, int64(shared))
	return r, err
}
