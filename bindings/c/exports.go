package main

// #cgo linux LDFLAGS: -ldl
// #include <stdlib.h>
// #include "launch.h"
import "C"

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/plugins/builtins"
)

// origami.h numbers the kinds of error as package diag does. This compiles only if the last number agrees.
var _ [0]struct{} = [C.ORIGAMI_DEVICE - 1 - uint8(diag.Device)]struct{}{}

//export origami_go_ask
func origami_go_ask(text *C.char, out **C.char) C.int32_t {
	return guard(out, func() (any, error) {
		if text == nil {
			return nil, isNull("request")
		}
		return answer(context.Background(), []byte(C.GoString(text)))
	})
}

//export origami_go_load
func origami_go_load(text *C.char, device C.int32_t, plan **C.origami_plan, out **C.char) C.int32_t {
	return guard(out, func() (any, error) {
		if text == nil || plan == nil {
			return nil, isNull("request or plan")
		}
		*plan = nil
		r, err := read([]byte(C.GoString(text)))
		if err != nil {
			return nil, err
		}
		if r.Ask != "" && r.Ask != "kernel" {
			return nil, diag.Inputf("%q loads no kernel", r.Ask).At("ask").Do("leave it out")
		}
		k, err := r.kernel(context.Background())
		if err != nil {
			return nil, err
		}
		var kernel C.origami_kernel
		if err := kernelOf(k.Launch, &kernel); err != nil {
			return nil, err
		}
		function, err := loaded.load(k.Launch, k.arch, int32(device))
		if err != nil {
			return nil, err
		}
		err = driven(func(why *C.char, room C.size_t) C.int32_t {
			return C.origami_cuda_plan(device, function, &kernel, plan, why, room)
		})
		k.PTX = "" // the plan has it
		return k, err
	})
}

// guard answers a call: with what f returns, or with an ask.Failure of its error or panic.
func guard(out **C.char, f func() (any, error)) (status C.int32_t) {
	if out == nil {
		return C.ORIGAMI_INPUT
	}
	*out = nil
	defer keep.Asked()()
	defer func() {
		if r := recover(); r != nil {
			status = fail(out, fmt.Errorf("a bug in liborigami: %v; report it", r))
		}
	}()
	v, err := f()
	if err != nil {
		return fail(out, err)
	}
	text, err := ask.Encode(v) // a number that is not finite is an error
	if err != nil {
		return fail(out, err)
	}
	*out = copied(text)
	return C.ORIGAMI_OK
}

// fail answers with an error, and returns its status: the exit code of the command line.
func fail(out **C.char, err error) C.int32_t {
	text, encoding := ask.Encode(ask.Failure{Error: ask.ErrorOf(err)})
	if encoding != nil {
		text = []byte(`{"error":{"kind":"internal","what":"the error cannot be written"}}`)
	}
	*out = copied(text)
	return C.int32_t(diag.KindOf(err)) + C.ORIGAMI_INTERNAL
}

// copied returns a line in memory of the caller.
func copied(line []byte) *C.char {
	line = append(bytes.TrimSuffix(line, []byte("\n")), 0)
	return (*C.char)(C.CBytes(line))
}

func isNull(what string) error {
	return diag.Inputf("%s is NULL", what).Do("pass memory for it")
}

// kernelOf fills in the record of a launch.
func kernelOf(l *builtins.Launch, k *C.origami_kernel) error {
	if len(l.Params) > len(k.parameters) || len(l.Maps) > len(k.maps) {
		return &diag.Error{Kind: diag.Internal, Where: "kernel " + l.Name,
			What: fmt.Sprintf("%d parameters and %d tensor maps do not fit into origami_kernel", len(l.Params), len(l.Maps)),
			Fix:  "report it"}
	}
	k.shared_memory, k.counters, k.partials =
		C.uint64_t(l.SharedMemory), C.uint64_t(l.Counters), C.uint64_t(l.Partials)
	k.grid = [3]C.uint32_t{C.uint32_t(l.Grid[0]), C.uint32_t(l.Grid[1]), C.uint32_t(l.Grid[2])}
	k.threads = C.uint32_t(l.Threads)
	k.parameter_count, k.map_count = C.uint32_t(len(l.Params)), C.uint32_t(len(l.Maps))
	k.adds, k.integer = bit(l.Adds), bit(l.Integer)
	for i := range l.Maps {
		t, to := &l.Maps[i], &k.maps[i]
		to._type, to.matrix = C.int32_t(t.Code), C.int32_t(strings.Index("abc", t.Matrix))
		for j := range t.Sizes {
			to.sizes[j], to.box[j] = C.uint64_t(t.Sizes[j]), C.uint32_t(t.Box[j])
		}
		to.strides = [2]C.uint64_t{C.uint64_t(t.Strides[0]), C.uint64_t(t.Strides[1])}
	}
	for i, p := range l.Params {
		to := &k.parameters[i]
		to.role, to.bytes, to.value = C.int32_t(p.Role.Number()), C.int32_t(p.Bytes), C.uint64_t(p.Value)
	}
	return nil
}

func bit(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}

// loaded are the kernels in the memory of GPUs. They stay there.
var loaded modules

type modules struct {
	mu   sync.Mutex
	list map[moduleKey]*module
}

type moduleKey struct {
	digest [sha256.Size]byte // of the text
	device int32
}

// module is a kernel on a device. Its lock is held while it is compiled.
type module struct {
	mu       sync.Mutex
	function unsafe.Pointer
}

// load returns the function of a kernel on a device of an architecture. It is compiled once: what fails is tried again.
func (all *modules) load(l *builtins.Launch, arch string, device int32) (unsafe.Pointer, error) {
	all.mu.Lock()
	if all.list == nil {
		all.list = map[moduleKey]*module{}
	}
	key := moduleKey{l.Digest, device}
	one := all.list[key]
	if one == nil {
		one = &module{}
		all.list[key] = one
	}
	all.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.function != nil {
		return one.function, nil
	}
	var gpu C.origami_gpu
	err := driven(func(why *C.char, room C.size_t) C.int32_t {
		return C.origami_cuda_gpu(C.int32_t(device), &gpu, why, room)
	})
	if err != nil {
		return nil, err
	}
	name := C.GoString(&gpu.name[0])
	if is := fmt.Sprintf("sm%d", int(gpu.cc)); is != arch {
		return nil, &diag.Error{Kind: diag.Device, Where: fmt.Sprintf("CUDA device %d", device),
			What: fmt.Sprintf("it is %s, an %s, and the kernel is for %s", name, is, arch), Fix: "open the model of this GPU"}
	}
	entry, ptx := C.CString(l.Name), C.CString(l.PTX)
	defer C.free(unsafe.Pointer(entry))
	defer C.free(unsafe.Pointer(ptx))
	var local C.int
	err = driven(func(why *C.char, room C.size_t) C.int32_t {
		return C.origami_cuda_load(C.int32_t(device), ptx, entry, C.uint64_t(l.SharedMemory), &one.function, &local, why,
			room)
	})
	if err == nil && one.function == nil {
		err = &diag.Error{Kind: diag.Device, Where: fmt.Sprintf("CUDA device %d", device),
			What: fmt.Sprintf("its driver compiles %s with %d bytes of local memory per thread, which makes it slow",
				l.Name, int(local)), Fix: "use another configuration or another driver"}
	}
	return one.function, err
}

// driven calls what may fail because of the GPU or its driver.
func driven(call func(why *C.char, room C.size_t) C.int32_t) error {
	const room = 1536
	why := (*C.char)(C.calloc(room, 1))
	defer C.free(unsafe.Pointer(why))
	if call(why, room) == C.ORIGAMI_OK {
		return nil
	}
	return &diag.Error{Kind: diag.Device, What: C.GoString(why),
		Fix: "see whether the driver and the GPU work, and have memory"}
}
