// Package pipelined predicts the time of a kernel from what its CTAs do on an SM: how many fit at once, what a K step
// takes at each resource, how long a CTA alone waits, waves and their tail, launch, pipeline fill and output. The
// equations are in package terms. docs/model-pipelined.md says how the quantities were found.
package pipelined

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/core/model"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/costs"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

// Name is the model's name in requests and descriptions.
const Name = "pipelined"

// What an H200 has: the L2 that its driver reports, and the bandwidth of its data sheet, in B/s.
const (
	h200Caches unit.Bytes = 62914560
	h200DRAM   float64    = 4.8e12
)

//go:generate go run ../internal/gen

// Model is the model on one device.
type Model struct {
	model.Model
	gpu      *gpu.Device
	library  LibraryTime
	clocked  *stopwatch.Device
	h200     stopwatch.Device // clocked with an H200's DRAM and L2
	device   device
	rates    map[gemm.DType]rates
	families []*family
	vendor   atomic.Pointer[vendorTime] // of the last problem
}

// family is a kernel family and what is known of its kernels.
type family struct {
	kernel.Family
	slots, latency float64        // kernel.Overhead
	compiled       kernel.Table   // by the compiler's report; nil below that rung
	timed          kernel.Timings // of kernels by themselves; nil below the rung characterized
	prepared       model.Lists[kernel.Operands, preparedList]
}

// preparedList is a list of configurations for some operands.
type preparedList struct {
	prepared []preparedConfig
	// usable are the positions of configurations that can be used, those of a kernel together. rejected are the others.
	usable, rejected []int32
	kernels          []listedKernel
	won              atomic.Int32 // which of kernels was the fastest for the last problem
	invalid          error        // of the first rejected configuration that is none of the family
}

func newModel(g *gpu.Device, families []*family, library LibraryTime, values map[string]float64) *Model {
	m := &Model{gpu: g, families: families, library: library}
	m.Description, m.AnyAccess = g.Description(), true
	m.New = func() model.Evaluation { return &evaluation{model: m} }
	m.Description.Timing = string(stopwatch.Events) // of the sweeps that its constants were fitted to
	m.Description.Model, m.Description.Kernels = Name, kernel.Names(families)
	m.rates = ratesOf(g)
	m.Description.Families = kernel.Describe(families, m.takes)
	for i, f := range families {
		one, traits := &m.Description.Families[i], f.Traits()
		one.Groups, one.Nests, one.Sums = traits.Groups, traits.Nests, f.Sums(g.SM)
	}
	m.Description.Rung = rungOf(g, families)
	m.Description.Constants, _ = constants(g, families, values) // New has checked the device file
	m.Description.Constants = append(m.Description.Constants, costs.Of(Name, g.SM.Generation)...)
	m.Description.Terms = model.Schema(terms.Terms, terms.Page)
	m.Description.Widen("shared memory", arch.AtShared, "shared_width")
	m.Description.Unused = unused(g)

	m.Memory = slices.Clone(g.Memory)
	value := m.Numbers()
	m.device.compute(value)
	for _, f := range families {
		o := f.Overhead()
		f.slots, f.latency = value(o.Slots.Name), value(o.Latency.Name)
	}
	m.Reach(arch.BoundL2, min(value("l2_perf_ratio")*value("l2_coalescing"),
		value("line_rate")*value("line_bytes")*value("num_sms")))
	m.Reach(arch.BoundDRAM, value("dram_perf_ratio")*value("dram_efficiency"))
	m.clocked = stopwatch.New(m)
	if m.h200 = *m.clocked; g.SM.EvictMeasured && m.h200.DRAMPeak > 0 {
		m.h200.Caches, m.h200.DRAMRate = h200Caches, m.h200.DRAMRate*h200DRAM/m.h200.DRAMPeak
	}
	return m
}

// unused returns the parameters that no formula, constant, rate or limit is computed from.
func unused(g *gpu.Device) []string {
	used := slices.Concat(terms.Parameters, gpu.Limits, []string{"peak_fp16"})
	for t := range ratesOf(g) {
		if name := "peak_" + t.CostsLike().String(); g.SM.WGMMA || t.CostsLike() == g.SM.Multiplies(t) { // or it is converted
			used = append(used, name)
		}
	}
	return formula.Unused(g.Params, used)
}

// With returns the model with other values of quantities and constants, by name.
func (m *Model) With(values map[string]float64) *Model {
	families := make([]*family, len(m.families))
	for i, f := range m.families {
		families[i] = &family{Family: f.Family, compiled: f.compiled, timed: f.timed}
	}
	return newModel(m.gpu, families, m.library, values)
}

// takes reports whether the device has a rate for a type of operands.
func (m *Model) takes(t gemm.Types) bool { return m.rates[t.In].peak > 0 }

// rates of a type, 0 for those that the device does not multiply.
type rates struct {
	ofFP16 float64 // ÷ the rate of fp16
	peak   float64 // FLOP/s
}

func ratesOf(g *gpu.Device) map[gemm.DType]rates {
	all := map[gemm.DType]rates{}
	for _, t := range gemm.DTypes() {
		name := "peak_" + t.CostsLike().String()
		if len(gemm.Plain(t)) == 0 { // it needs scales, and no family here has them
			continue
		}
		if p, ok := g.Params.Lookup(name); ok {
			all[t] = rates{g.FlopsPerCycle(name) / g.FlopsPerCycle("peak_fp16"), p.Value}
		}
	}
	return all
}

// family returns the family of a configuration, or why none of the model's can have it: it is of an unknown family,
// or a number of it is out of range.
func (m *Model) family(c *gemm.Config) (*family, error) {
	f, err := kernel.Find(&m.Description, m.families, c.Kernel)
	if err != nil {
		return nil, err
	}
	return f, c.Validate(f.Axes()...)
}

// Candidates implements arch.Architecture: every kernel of the family that fits an SM, block_m slowest, then block_n,
// block_k, warps and stages.
func (m *Model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := m.Supports(&p, gemm.Config{Kernel: s.Kernel}); err != nil {
		return nil, err
	}
	f, err := kernel.Find(&m.Description, m.families, s.Kernel)
	if err != nil {
		return nil, err
	}
	p = model.Aligned(p)
	operands := kernel.OperandsOf(&p).WithWidths(f, &p)
	list := func() (l *arch.Candidates, bytes int, err error) {
		keep.Making(func() { l, err = f.list(m.gpu, operands, s) })
		if err != nil {
			return nil, 0, err
		}
		return l, len(l.Configs)*int(unsafe.Sizeof(gemm.Config{})) + len(l.Rejected)*int(unsafe.Sizeof(arch.Rejection{})), nil
	}
	if f.compiled != nil || !reflect.TypeOf(f.Family).Comparable() {
		one, _, err := list()
		return one, err
	}
	shared, err := lists.Get(listKey{m.gpu.SM, f.Family, m.gpu.SharedMemory, m.gpu.RegisterFile, m.gpu.RegistersPerThread,
		operands, fmt.Sprintf("%#v", s)}, list)
	if err != nil {
		return nil, err
	}
	f.prepared.Share(shared.Configs)
	// Appending to it must not change the list of another.
	return &arch.Candidates{Configs: slices.Clip(shared.Configs), Rejected: slices.Clip(shared.Rejected)}, nil
}

// lists are lists of candidates. Devices with the same limits share them, such as those that differ in the clock.
var lists keep.Map[listKey, arch.Candidates]

// listKey is what a list without a compiler's reports depends on.
type listKey struct {
	sm              *gpu.SM
	family          kernel.Family
	shared          unit.Bytes
	file, perThread int // registers
	operands        kernel.Operands
	space           string
}

// list lists the candidates of a space.
func (f *family) list(g *gpu.Device, operands kernel.Operands, s arch.Space) (*arch.Candidates, error) {
	out := &arch.Candidates{}
	var kernels recent[arch.Rejection]
	position := 0
	err := enumerate(f, s, func(some []gemm.Config) {
		for _, c := range some {
			r, known := kernels.of(kernel.KernelOf(f.Family, c))
			if !known {
				r.Reason, r.Detail = f.reject(g, operands, &c, f.needs(g, operands, &c))
			}
			if r.Config, r.Position = c, position; r.Reason == "" {
				out.Configs = append(out.Configs, c)
			} else {
				out.Rejected = append(out.Rejected, *r)
			}
			position++
		}
	})
	out.Configs, out.Rejected = slices.Clone(out.Configs), slices.Clone(out.Rejected) // without room to grow
	return out, err
}

// recent has something of each of the last few kernels of a list, which has them once for each split of K. Between two
// splits lie the values of named axes.
type recent[T any] struct {
	kernels [4]gemm.Config
	values  [4]T
	count   int // of all that there were
}

// of returns what there is of a kernel, and whether it was known. It takes the place of the oldest if not.
func (r *recent[T]) of(k gemm.Config) (value *T, known bool) {
	if i := slices.Index(r.kernels[:min(r.count, len(r.kernels))], k); i >= 0 {
		return &r.values[i], true
	}
	i := r.count % len(r.kernels)
	r.kernels[i] = k
	r.count++
	return &r.values[i], false
}

// enumerate lists the configurations of a space, some at a time, with the axes that it leaves empty taken from the
// family's.
func enumerate(f *family, s arch.Space, use func([]gemm.Config)) error {
	defaults := f.Space()
	spaceOf := f.Traits().SpaceOf
	if spaceOf == nil {
		all, err := s.Enumerate(defaults, f.Axes()...)
		use(all)
		return err
	}
	blocksM := s.BlockM
	if len(blocksM) == 0 {
		blocksM = defaults.BlockM
	}
	total := 0
	for _, blockM := range blocksM {
		s.BlockM = []int{blockM}
		some, err := s.Enumerate(spaceOf(blockM), f.Axes()...)
		if err != nil {
			return err
		}
		if total += len(some); total > arch.MaxSpace {
			return arch.SpaceTooLarge()
		}
		use(some)
	}
	return nil
}

// kept returns the list of configurations, prepared, or nil if they are few. It is kept from one call to the next, per
// family, layout, width of accesses and element type, so that a list that is estimated for problem after problem is
// prepared once. The error is as from Supports.
func (m *Model) kept(p *gemm.Problem, cfgs []gemm.Config) (*preparedList, error) {
	if len(cfgs) <= model.FewConfigs {
		return nil, m.Supports(p, cfgs...)
	}
	if err := m.Supports(p, cfgs[:1]...); err != nil {
		return nil, err
	}
	f, err := kernel.Find(&m.Description, m.families, cfgs[0].Kernel)
	if err != nil {
		return nil, err
	}
	operands := kernel.OperandsOf(p).WithWidths(f, p)
	operands.DType, operands.Out = kernel.SameKernels(operands.DType), kernel.SameKernels(operands.Out)
	list, err := f.prepared.Get(operands, cfgs, func(list *preparedList) (bytes int, err error) {
		if slices.ContainsFunc(cfgs, func(c gemm.Config) bool { return c.Kernel != cfgs[0].Kernel }) {
			return 0, errSeveral
		}
		keep.Making(func() { bytes = m.prepareAll(f, list, p, cfgs) })
		return bytes, nil
	})
	if err != nil {
		return nil, m.Supports(p, cfgs...)
	}
	return list, nil
}

var errSeveral = errors.New("configurations of several families")

// prepareAll prepares the configurations of a list. Those of a kernel share it, if their sums are added up in the same
// way. It returns what they take.
func (m *Model) prepareAll(f *family, list *preparedList, p *gemm.Problem, cfgs []gemm.Config) (bytes int) {
	list.prepared = make([]preparedConfig, len(cfgs))
	prepared := 0
	var (
		kernels recent[preparedSplit]
		last    [2]inputs
		shared  = &preparedKernel{}
		next    = &preparedKernel{}
	)
	for i := range cfgs {
		c, config := &list.prepared[i], &cfgs[i]
		one, known := kernels.of(kernel.KernelOf(f.Family, *config))
		if known && m.prepareSplit(c, one, p, config) {
			continue
		}
		c.kernel = next
		m.prepare(c, next, &one.in, p, config)
		one.in[0].splitInputs, one.in[1].splitInputs = splitInputs{}, splitInputs{}
		if c.reject != "" {
			list.rejected = append(list.rejected, int32(i))
			if list.invalid == nil {
				list.invalid = m.Check(config)
			}
		} else if prepared > 0 && one.in == last && next.groupM == shared.groupM {
			c.kernel = shared
		} else {
			last, shared, next = one.in, next, &preparedKernel{}
			prepared++
			shared.number = prepared
		}
		one.preparedConfig, one.splitK = *c, config.SplitK
	}
	list.usable = make([]int32, 0, len(cfgs)-len(list.rejected))
	for i := range list.prepared {
		if list.prepared[i].reject == "" {
			list.usable = append(list.usable, int32(i))
		}
	}
	slices.SortFunc(list.usable, func(a, b int32) int {
		return cmp.Or(list.prepared[a].kernel.number-list.prepared[b].kernel.number, int(a-b))
	})
	list.kernels = make([]listedKernel, 0, prepared)
	for first := int32(0); int(first) < len(list.usable); {
		k := listedKernel{preparedKernel: list.prepared[list.usable[first]].kernel, first: first}
		for k.behind = first; int(k.behind) < len(list.usable); k.behind++ {
			if list.prepared[list.usable[k.behind]].kernel != k.preparedKernel {
				break
			}
		}
		k.setFloor(&m.device, list.prepared, list.usable[first:k.behind])
		list.kernels, first = append(list.kernels, k), k.behind
	}
	return len(cfgs)*int(unsafe.Sizeof(preparedConfig{})+unsafe.Sizeof(int32(0))) +
		prepared*int(unsafe.Sizeof(preparedKernel{})+unsafe.Sizeof(listedKernel{}))
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	kept, err := m.kept(&p, cfgs)
	if err != nil {
		return err
	}
	if kept == nil {
		return m.Model.Estimate(ctx, dst, p, cfgs)
	}
	if err := m.Fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	if err := kept.reject(dst); err != nil {
		return err
	}
	e := estimator{device: &m.device, shape: m.shape(&p)}
	for _, i := range kept.usable {
		c := &kept.prepared[i]
		e.at(c.kernel)
		dst[i] = e.estimate(c, c.kernel)
	}
	return nil
}

// reject writes the reasons against the configurations that cannot be used.
func (l *preparedList) reject(dst []arch.Estimate) error {
	for _, i := range l.rejected {
		dst[i] = arch.Estimate{Reject: l.prepared[i].reject}
	}
	return l.invalid
}

// evaluation is the model at work on one problem.
type evaluation struct {
	estimator
	model   *Model
	problem gemm.Problem
	one     preparedKernel
	config  preparedConfig
	in      [2]inputs
	detail  string
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	e.problem, e.estimator = p, estimator{device: &e.model.device, shape: e.model.shape(&p)}
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.detail = e.model.prepare(&e.config, &e.one, &e.in, &e.problem, c)
	e.shape.grid(&e.grid, e.device, &e.one)
	return e.config.reject
}

// Detail implements model.Evaluation, for the configuration of the last Config.
func (e *evaluation) Detail(*gemm.Config, arch.Reason) string { return e.detail }

// Estimate implements model.Evaluation.
func (e *evaluation) Estimate() arch.Estimate { return e.estimate(&e.config, &e.one) }

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) {
	e.Estimate()
	masked, c, k := e.shape.masked(&e.config), &e.config, &e.one
	columns(dst, &e.in[masked], e.device, &e.shape.sizes, &k.kernelTerms, &k.variants[masked], &c.splits[masked],
		&e.grid, &e.timing)
}

// groups are the launch-order groups that phase two tries.
var groups = []int{1, 2, 4, 16, 32}

// Mapping implements arch.Architecture: the default group, or the group with the shortest time.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := m.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	e := evaluation{model: m}
	e.Problem(p)
	c.GroupM = terms.DefaultGroup
	e.Config(&c)
	return arch.Mapping{GroupM: model.Group(terms.DefaultGroup, groups, func(group int) float64 {
		e.one.groupM = float64(group)
		e.shape.grid(&e.grid, e.device, &e.one)
		return float64(e.Estimate().Cycles)
	})}, nil
}
