package main

// #include <stdlib.h>
// #include "launch.h"
import "C"

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/plugins/builtins"
)

// generate returns the kernel of a problem, and fills in its record: of a configuration, or of the pick for nil.
func (m *model) generate(problem *C.origami_problem, config *C.origami_pick, record *C.origami_kernel) (
	*builtins.Launch, error,
) {
	p, err := problemOf(problem)
	if err != nil {
		return nil, err
	}
	var e selector.Entry
	if config == nil {
		e, err = m.selectOne(p)
	} else {
		e, err = m.among(p, config)
	}
	if err != nil {
		return nil, err
	}
	l, err := builtins.Generate(m.description, p, e.Config, p.Beta != 0)
	if err != nil {
		return nil, err
	}
	return l, kernelOf(l, record)
}

// among returns the entry of a caller's configuration.
func (m *model) among(p gemm.Problem, config *C.origami_pick) (selector.Entry, error) {
	c, err := m.configOf(config)
	if err != nil {
		return selector.Entry{}, err
	}
	e, err := m.entry(p, c)
	return selector.Entry{Config: e.Config, Estimate: e.Estimate, Mapping: e.Mapping}, err
}

// entry returns what is predicted of a configuration.
func (m *model) entry(p gemm.Problem, c gemm.Config) (ask.Entry, error) {
	r, err := ask.RankAmong(context.Background(), m.arch, m.kernel, p, []gemm.Config{c})
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return ask.Entry{}, err
	}
	return r.Entries[0], nil
}

// configOf reads the configuration of a pick.
func (m *model) configOf(c *C.origami_pick) (gemm.Config, error) {
	config := gemm.Config{
		BlockM: int(c.block_m), BlockN: int(c.block_n), BlockK: int(c.block_k), GroupM: int(c.group_m),
		NumWarps: int(c.num_warps), NumStages: int(c.num_stages), SplitK: int(c.split_k), Kernel: m.kernel,
	}
	axes := m.description.Axes(m.kernel)
	for pair := range strings.SplitSeq(C.GoStringN(&c.axes[0], C.int(textLength(c.axes[:]))), ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if err := config.SetAxis(axes, name, value); err != nil {
				return config, err
			}
		}
	}
	return config, config.ValidateNumbers()
}

// textLength is the length of a text in a C array, which may fill it.
func textLength(text []C.char) int {
	if i := slices.Index(text, 0); i >= 0 {
		return i
	}
	return len(text)
}

// kernelOf fills in the record of a launch.
func kernelOf(l *builtins.Launch, k *C.origami_kernel) error {
	if len(l.Params) > len(k.parameters) || len(l.Maps) > len(k.maps) || len(l.Name) >= len(k.entry) {
		return &diag.Error{Kind: diag.Internal, Where: "kernel " + l.Name,
			What: fmt.Sprintf("%d parameters and %d tensor maps do not fit into origami_kernel", len(l.Params), len(l.Maps)),
			Fix:  "report it"}
	}
	copyText(&k.entry[0], C.size_t(len(k.entry)), l.Name)
	k.shared_memory, k.counters, k.partials =
		C.uint64_t(l.SharedMemory), C.uint64_t(l.Counters), C.uint64_t(l.Partials)
	k.grid = [3]C.uint32_t{C.uint32_t(l.GridX), C.uint32_t(l.GridY), C.uint32_t(l.GridZ)}
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
		to.role, to.bytes, to.value = C.int32_t(p.Role.Number()), C.int32_t(p.Type.Bytes()), C.uint64_t(p.Value)
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

// rangeOf converts the sizes M that bands are asked for. A list that is too long stays so, and is refused.
func rangeOf(c *C.origami_range) ask.Range {
	r := ask.Range{Low: int(c.low)}
	if c.count > 0 {
		for _, m := range unsafe.Slice(c.list, min(c.count, ask.MostListed+1)) {
			r.List = append(r.List, int(m))
		}
	}
	if c.same != nil {
		if text := C.GoString(c.same); text != "" {
			r.Same = strings.Split(text, ",")
		}
	}
	return r
}

// bands divides sizes M of a problem. library is the model of the vendor's library, or nil.
func (m *model) bands(p gemm.Problem, r ask.Range, library *model) (*ask.Bands, error) {
	if m.order != nil {
		r = r.Ordered(ask.Kernels{Model: m.arch, Space: m.free}, m.order)
	}
	if library == nil {
		return ask.BandsOf(context.Background(), m.arch, m.space, p, r, nil)
	}
	return ask.BandsOf(context.Background(), m.arch, m.space, p, r, library.arch)
}

// same converts what the kernels of bands have in common, zeros if that is nothing.
func (m *model) same(p gemm.Problem, b *ask.Bands) (c C.origami_same, err error) {
	s := b.Same
	if s == nil {
		return c, nil
	}
	for i, char := range []byte(s.Text()) {
		c.values[i] = C.char(char)
	}
	c.mean_price, c.worst_price, c.worst_m = C.double(s.MeanPrice), C.double(s.WorstPrice), C.int64_t(s.WorstM)
	if s.One == nil {
		return c, nil
	}
	c.one_mean_price, c.one_worst_price = C.double(s.One.MeanPrice), C.double(s.One.WorstPrice)
	c.one_worst_m = C.int64_t(s.One.WorstM)
	p.M = b.Bands[len(b.Bands)-1].MHigh
	e, err := m.entry(p, s.One.Config)
	if err != nil {
		return c, err
	}
	answer := m.ranking(&p, nil).Pick(&e)
	c.one = pickOf(&answer)
	return c, nil
}

// band converts a band of a problem. The pick in it is for its largest M.
func (m *model) band(p gemm.Problem, library *model, b *ask.Band) (c C.origami_band, err error) {
	p.M = b.MHigh
	c.m_low, c.m_high, c.worst_m = C.int64_t(b.MLow), C.int64_t(b.MHigh), C.int64_t(b.WorstM)
	c.mean_regret, c.worst_regret = C.double(b.MeanRegret), C.double(b.WorstRegret)
	c.seconds_low, c.seconds_high = C.double(b.SecondsLow), C.double(b.SecondsHigh)
	if b.Price != nil {
		if c.same_price = C.double(b.Price.Same); b.Price.One != nil {
			c.one_price = C.double(*b.Price.One)
		}
	}
	if b.Config == nil {
		c.library = 1
		e, err := library.selectOne(p)
		c.pick = library.pick(&p, &e)
		return c, err
	}
	e, err := m.entry(p, *b.Config)
	if err != nil {
		return c, err
	}
	answer := m.ranking(&p, nil).Pick(&e)
	c.pick = pickOf(&answer)
	return c, nil
}
