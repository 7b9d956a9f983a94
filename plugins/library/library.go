// Package library predicts what the tuned library of a vendor takes for a matrix multiplication: cuBLAS, hipBLASLt,
// rocBLAS. The prediction is the fastest of the library's tiles and splits of K. The package knows no vendor: a plugin
// describes the machine, and what is particular to a generation is data of package terms. So are the equations.
// docs/model-library.md says how the quantities were found.
package library

import (
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/residual"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/costs"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

const (
	// Name is the model's name in requests and descriptions.
	Name = "library"
	// Family is the kernel family that it predicts.
	Family = "library"
)

//go:generate go run ./internal/gen

// Model is the model on one machine.
type Model struct {
	model.Model
	machine Machine
	options options
	device  device
	kernels kernels
	peaks   map[gemm.DType]float64 // FLOP/s, 0 for a type that the machine does not multiply
	clocked *stopwatch.Device
	chain   []*Model   // itself among the model in the timings of its chain, the shortest first
	near    *nearTimes // nil without published times
}

// New opens the model on a machine. The options are those of Options.
func New(machine Machine, given map[string]string) (*Model, error) {
	o, err := parseOptions(given)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(terms.Generations(), machine.Generation) {
		return nil, fmt.Errorf("library: %s is of the generation %q, which is unknown", machine.Description.ID(),
			machine.Generation)
	}
	if _, err = ReleaseOf(given, terms.HasEarly(machine.Generation), machine.Description.DeviceName); err != nil {
		return nil, err
	}
	m := newModel(machine, o, nil)
	if len(m.types()) == 0 {
		return nil, diag.Inputf("no type of the %s has scales of scheme=%s", machine.Description.DeviceName, o.scheme).
			At("option").Do("leave it out")
	}
	m.Description.Uncertainty = checked.Of(m.Description.ID(), m.Description.Vendor, Name, o.scheme, o.release,
		string(o.timing))
	for _, below := range m.chain {
		below.near = below.nearTimes()
	}
	for _, o.timing = range chainOf(m.options.timing, true) {
		above := inTiming(machine, o, nil)
		if above.near = above.nearTimes(); above.near.ofDevice() && o.timing != stopwatch.Host {
			m.chain = append(m.chain, above)
		}
	}
	if m.near != nil {
		d := &m.Description
		at := slices.IndexFunc(d.Terms, func(t arch.Term) bool { return t.Common == arch.CommonNearSet })
		d.Terms[at].Source = m.near.source
		m.Description.Monotone = []arch.Dim{arch.DimNone} // measured times are not
	}
	return m, nil
}

// chains are timings of which each counts more than the one before, so that times near a problem in one timing bound
// predictions in the others. Model is bounded by none, since laws between types hold in it. Host bounds none: what it
// adds is longer than many kernels.
var chains = [][]stopwatch.Timing{
	{stopwatch.Model, stopwatch.Cold, stopwatch.Events, stopwatch.Host}, {stopwatch.Warm, stopwatch.Alone},
}

// chainOf are the timings behind one in its chain, or those before it.
func chainOf(t stopwatch.Timing, behind bool) []stopwatch.Timing {
	for _, chain := range chains {
		if at := slices.Index(chain, t); at >= 0 && behind && t != stopwatch.Model {
			return chain[at+1:]
		} else if at >= 0 && !behind {
			return chain[:at]
		}
	}
	return nil
}

func newModel(machine Machine, o options, values map[string]float64) *Model {
	m := inTiming(machine, o, values)
	for _, o.timing = range chainOf(o.timing, false) {
		m.chain = append(m.chain, inTiming(machine, o, values))
	}
	m.chain = append(m.chain, m)
	return m
}

// adds is what the stopwatch of a timing adds at least to the first of its chain.
func (m *Model) adds() unit.Seconds {
	switch m.options.timing {
	case stopwatch.Events, stopwatch.Alone:
		return m.clocked.Launch
	case stopwatch.Host:
		return m.clocked.Launch + m.clocked.Call
	default:
		return 0
	}
}

func inTiming(machine Machine, o options, values map[string]float64) *Model {
	m := &Model{machine: machine, options: o, kernels: kernelsOf(machine.Generation, o.scheme)}
	m.Description, m.peaks = machine.Description, map[gemm.DType]float64{}
	m.Space, m.New = m.space, func() model.Evaluation { return m.evaluation() }
	d := &m.Description
	variant := terms.Variant{Generation: machine.Generation, Scheme: o.scheme, Release: o.release}
	m.AnyAccess = machine.narrow // the term of that name
	d.Model, d.Kernels, d.Rung, d.ClockRung = Name, []string{Family}, arch.RungSpec, arch.RungSpec
	d.Options, d.Timing = o.inForce(), string(o.timing)
	for t := range kernelsFor {
		m.peaks[t] = float64(d.PeakFor(t))
	}
	d.Families = []arch.Family{{Name: Family, Doc: "the kernels of the vendor's library", Types: m.types(), Opaque: true}}
	d.Terms, d.Unused = model.Schema(terms.Terms, terms.Page), machine.unused()
	d.Monotone = []arch.Dim{arch.DimM, arch.DimN, arch.DimK}
	d.Fitted = []arch.Fitted{{DataSet: "published times"}} // at most 1,000 of each series: package fit
	d.Constants = append(machine.numbers(), o.constants()...)
	for i := range terms.Quantities {
		d.Constants = append(d.Constants, terms.Quantities[i].Constant(variant))
	}
	d.Constants = append(d.Constants, costs.Of(Name, string(machine.Generation))...)
	model.Override(d.Constants, values)
	m.Memory = slices.Clone(machine.Memory)
	value := m.Numbers()
	m.device.compute(value)
	m.Reach(arch.BoundL2, value("l2_share_16")*value("units"))
	m.Reach(arch.BoundDRAM, value("dram_speed")/value("clock")*value("read_share"))
	m.clocked = stopwatch.New(m)
	return m
}

// With returns the model with other values of quantities, by name, and without times near a problem, which are beside
// the predictions of these values.
func (m *Model) With(values map[string]float64) *Model { return newModel(m.machine, m.options, values) }

// Fastest is what the library takes: the least time of its kernels. It is 0 for a problem that the model refuses.
func (m *Model) Fastest(p gemm.Problem) unit.Seconds {
	if m.Supports(&p) != nil {
		return 0
	}
	e, fastest := m.evaluation(), unit.Cycles(0)
	e.Problem(p)
	c := gemm.Config{Kernel: Family, BlockK: depthBytes * 8 / p.DType.Bits()}
	for _, c.BlockM = range e.kernels.sides {
		for _, c.BlockN = range e.kernels.sides {
			for _, c.SplitK = range e.kernels.splits {
				if e.Config(&c) != "" {
					continue
				}
				if t := e.Estimate().Cycles; fastest == 0 || t < fastest {
					fastest = t
				}
			}
		}
	}
	return fastest.At(m.Description.Clock)
}

// types are those that the machine multiplies, without terms.LeftOut.
func (m *Model) types() (all []gemm.Types) {
	for _, in := range gemm.DTypes() {
		if m.peaks[in] > 0 && m.takes(in) {
			for _, out := range in.Outputs() {
				if t := (gemm.Types{In: in, Out: out}); terms.LeftOut[m.machine.Generation] != t {
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// evaluation is the model at work on one problem.
type evaluation struct {
	model   *Model
	kernels kernels
	problem gemm.Problem
	q       problem
	t       timing
	busy    float64 // t.busy and t.throttle
	near    residual.Found
	nearOf  stopwatch.Timing
	chain   []*evaluation // of Model.chain
	known   bool          // many published times are of the device and the timing
}

func (m *Model) evaluation() *evaluation {
	e := &evaluation{model: m}
	for _, o := range m.chain {
		member := e
		if o != m {
			member = &evaluation{model: o}
		}
		e.chain = append(e.chain, member)
	}
	return e
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	for _, o := range e.chain {
		if o != e {
			o.Problem(p)
		}
	}
	e.kernels, e.problem = e.model.kernels.of(p.DType), p
	e.q = problem{
		m: float64(p.M), n: float64(p.N), k: float64(p.K), batch: float64(p.Batch),
		elementBytes: float64(p.DType.Bits()) / 8, outputBytes: float64(p.Output().Bits()) / 8,
		transA: model.One(p.TransA()), transB: model.One(p.TransB()), peak: e.model.peaks[p.DType],
		kernels: kernelsFor[p.DType], halvings: e.model.halvings(&p),
		crossings: e.model.crossings(&p),
		oneRow:    model.One(p.M == 1 && slices.Contains(e.kernels.oneRow, p.DType)),
	}
	e.near, e.nearOf, e.known = e.model.near.of(&p)
	e.q.nearTimes, e.q.nearDistance = float64(e.near.Times), e.near.Nearest
	e.q.nearSet = 0
	if e.near.Times > 0 {
		e.q.nearSet = e.model.near.sets[e.near.Series]
	}
	e.q.nearResidual, e.q.nearSpread = e.near.Residual, e.near.Spread
	e.q.compute(&e.model.device)
}

// halvings is the term of that name. Kernels of FMA instructions load elements, whatever their alignment.
func (m *Model) halvings(p *gemm.Problem) float64 {
	if !m.machine.narrow || p.DType == gemm.FP32 {
		return 0
	}
	width := min(p.VectorBytes(gemm.A), p.VectorBytes(gemm.B), p.VectorBytes(gemm.C))
	return math.Log2(gemm.MaxVector / float64(width))
}

// crossings is the term of that name.
func (m *Model) crossings(p *gemm.Problem) float64 {
	if !terms.Lines[m.machine.Generation] || p.DType.Bits() != 8 || p.DType == gemm.INT8 {
		return 0
	}
	const line = 128
	begins := line | p.LD(gemm.A) | p.LD(gemm.B)
	return math.Log2(line / float64(begins&-begins))
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	t := &e.t
	t.blockM, t.blockN, t.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	t.splitK = float64(c.SplitK)
	for _, o := range e.chain {
		if o != e {
			o.Config(c)
		}
	}
	return e.kernels.reject(c)
}

// compute computes the terms, and puts the times of the chain in order. Those that many published times of the device
// tell stay if they are in order. The others are between them.
func (e *evaluation) compute() {
	e.raw()
	if len(e.chain) < 2 || e.nearOf == stopwatch.Host {
		return
	}
	clock := float64(e.model.Description.Clock)
	var room [4]float64
	times, least := room[:len(e.chain)], 0.0
	for i, o := range e.chain {
		if o != e {
			o.raw()
		}
		times[i] = o.t.total - float64(o.model.adds())*clock
		if o.known {
			times[i] = max(times[i], least)
			least = times[i]
		}
	}
	least = 0
	for i, o := range e.chain {
		for j := i + 1; j < len(e.chain) && !o.known && o.model.options.timing != stopwatch.Model; j++ {
			if e.chain[j].known {
				times[i] = min(times[i], times[j])
				break
			}
		}
		if !o.known {
			times[i] = max(times[i], least)
		}
		if least = times[i]; o == e {
			e.t.stopwatch += least + float64(e.model.adds())*clock - e.t.total
			break
		}
	}
	e.t.total = e.busy + e.t.stopwatch + e.t.nearby
}

// raw computes the terms, what the stopwatch counts besides the kernel, and what times near the problem add: before
// that, if they are of the base of the timing.
func (e *evaluation) raw() {
	e.t.stopwatch, e.t.nearby = 0, 0
	e.t.compute(&e.model.device, &e.q)
	e.busy = e.t.total
	floor := max(e.q.computeFloor, e.q.dramFloor)
	correct := func() {
		if e.near.Times > 0 {
			e.t.nearby = max(e.t.total*residual.Share(e.near.Residual), floor-e.t.total)
			e.t.total += e.t.nearby
		}
	}
	if e.nearOf != e.model.options.timing {
		correct()
	}
	if of := e.model.options.timing; of != of.Base() {
		clock := float64(e.model.Description.Clock)
		seconds := unit.Seconds(e.t.total / clock)
		stated := e.model.clocked.Convert(seconds, &e.problem, of.Base(), of)
		e.t.stopwatch = float64(stated-seconds) * clock
		e.t.total += e.t.stopwatch
	}
	if e.nearOf == e.model.options.timing {
		correct()
	}
	e.t.total = e.busy + e.t.stopwatch + e.t.nearby
}

// Estimate implements model.Evaluation.
func (e *evaluation) Estimate() arch.Estimate {
	e.compute()
	return arch.Estimate{Cycles: unit.Cycles(e.t.total), Bound: e.t.bound(&e.q), Spread: float32(e.near.Spread)}
}

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) {
	e.compute()
	columns(dst, &e.model.device, &e.q, &e.t)
}

// kernelsFor is the term kernels, of the types that the model was fitted for.
var kernelsFor = map[gemm.DType]float64{
	gemm.FP4: 4, gemm.FP8: 8, gemm.FP8E5M2: 8, gemm.INT8: 8.5, gemm.FP16: 16, gemm.BF16: 16, gemm.TF32: 19, gemm.FP32: 32,
}

// busyEnough is the share of the total from which on a resource limits a kernel. A kernel that keeps none of them busy
// for so long waits.
const busyEnough = 0.5

// bound is the resource that is busy for most of the time.
func (t *timing) bound(q *problem) arch.Bound {
	matrix, dram := max(t.matrix, q.computeFloor), max(t.dram, q.dramFloor)
	switch most := max(matrix, t.l2, dram); {
	case most < busyEnough*t.total:
		return arch.BoundLatency
	case most == dram:
		return arch.BoundDRAM
	case most == t.l2:
		return arch.BoundL2
	default:
		return arch.BoundCompute
	}
}

// Generation is that of the machine.
func (m *Model) Generation() terms.Generation { return m.machine.Generation }
