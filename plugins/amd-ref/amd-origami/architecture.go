package amdorigami

import (
	"cmp"
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/tabled"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/amd-ref/device"
	"github.com/origami-gemm/origami/plugins/costs"
)

// architecture is the model on a device.
type architecture struct {
	tabled.Model
	machine
	sheet   *hw.Sheet
	mi      *shape
	kernels map[gemm.DType]kernel // of the element types that the device has an instruction for
}

// kernel holds the values that follow from an element type.
type kernel struct {
	mi      instruction
	convert float64
}

func newArchitecture(sheet *hw.Sheet, params hw.Set, o options, values []arch.OptionValue) (*architecture, error) {
	m, err := newMachine(sheet, params, o)
	if err != nil {
		return nil, err
	}
	a := &architecture{machine: *m, sheet: sheet, mi: o.mi, kernels: map[gemm.DType]kernel{}}
	a.New = func() tabled.Evaluation { return &evaluation{on: a} }
	a.Description, a.Memory = device.Description(sheet, params), m.memory
	d := &a.Description
	d.Model, d.Kernels, d.Rung, d.ClockRung = Name, []string{Family}, arch.RungSpec, arch.RungSpec
	// The library asks the model which kernel is fastest, and nothing else: no launch, no power, and loads that are off
	// by any factor where few rows are multiplied.
	d.RanksOnly = true
	d.Constants, d.Terms, d.Options = slices.Concat(constants, costs.Of(Name, sheet.Arch)), termSchema(o.grid), values
	d.Order = arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}}
	d.Peak = nil // of the types below alone
	if params.Calibrated(device.Specs) {
		a.Description.Rung = arch.RungCalibrated
	}
	a.Description.Unused = formula.Unused(params, append(formula.Of(a.Description.Terms), "clock"))
	for _, t := range gemm.DTypes() {
		if atomTypes[t] == "" { // of which the reference says nothing
			continue
		}
		if peak := params.Get("peak_" + t.String()); peak > 0 {
			rate := arch.PeakRate{DType: t, Rate: unit.FlopsPerSecond(peak)}
			a.Description.Peak = append(a.Description.Peak, rate)
		}
		a.addKernel(t)
	}
	return a, nil
}

// addKernel adds the matrix instruction of an element type, if the device has one.
func (a *architecture) addKernel(t gemm.DType) {
	i := slices.IndexFunc(a.sheet.Atoms, func(atom hw.Atom) bool {
		return atom.Type == atomTypes[t] && (a.mi == nil || *a.mi == shape{atom.M, atom.N, atom.K})
	})
	if i < 0 {
		return
	}
	atom := a.sheet.Atoms[i]
	s := shape{atom.M, atom.N, atom.K}
	a.Description.Atoms = append(a.Description.Atoms, arch.Atom{
		DType: t, M: s.m, N: s.n, K: s.k,
		Latency: unit.Cycles(atom.Cycles), PerUnit: int(a.parallelMI),
	})
	k := kernel{mi: instruction{
		m: uint64(s.m), n: uint64(s.n), k: uint64(s.k),
		latency: a.miLatency(a.sheet.Atoms, atom.Type, s),
	}}
	if t == gemm.TF32 && a.emulatesXF32 {
		// The factor of the emulation is halved if K ≥ 16M and K ≥ 16N, so a larger K can take less time.
		a.Description.Monotone = []arch.Dim{arch.DimNone}
		k.convert = f(a.miLatency(a.sheet.Atoms, atomTypes[gemm.BF16], s))
	}
	a.kernels[t] = k
}

// problem converts p to the form that the equations use.
func (a *architecture) problem(p gemm.Problem) (problem, error) {
	if err := p.Validate(); err != nil {
		return problem{}, err
	}
	if err := a.Description.Supports(Family, &p); err != nil {
		return problem{}, err
	}
	k, ok := a.kernels[p.DType.CostsLike()]
	if !ok {
		return problem{}, a.noInstruction(p.DType)
	}
	q := problem{
		machine: &a.machine,
		m:       uint64(p.M), n: uint64(p.N), k: uint64(p.K), batch: uint64(p.Batch),
		transA: p.AMajor == gemm.MajorK, transB: p.BMajor == gemm.MajorN,
		bits: uint64(p.DType.Bits()), outBytes: float64(p.Output().Bits() / 8),
		mi: k.mi, convert: k.convert, wgm: a.assumedWGM,
	}
	if p.Batch > 1 {
		q.wgm = 1
	}
	q.derive()
	return q, nil
}

// noInstruction is the error for an element type without a matrix instruction.
func (a *architecture) noInstruction(t gemm.DType) error {
	instruction := atomTypes[t.CostsLike()]
	if list := shapes(a.sheet.Atoms, instruction); a.mi != nil && instruction != "" && list != "" {
		return diag.Inputf("%s has no %s matrix instruction for %s", a.sheet.Arch, a.mi, t).
			At("option mi").Do("use one of %s", list)
	}
	types := ""
	for i, atom := range a.Description.Atoms {
		if i > 0 {
			types += ", "
		}
		types += atom.DType.String()
	}
	return diag.Inputf("%s has no matrix instructions for %s", a.sheet.Arch, t).Do("use one of %s", types)
}

// Problem implements tabled.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	q, _ := e.on.problem(p) // Supports has accepted it
	*e = evaluation{on: e.on, problem: q}
}

// Config implements tabled.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.splitK = uint64(c.SplitK)
	e.place(uint64(c.BlockM), uint64(c.BlockN), uint64(c.BlockK))
	switch {
	case !e.fits():
		return arch.ReasonSharedMemory
	case e.rejected():
		return arch.ReasonModelRule
	}
	return ""
}

// Detail implements tabled.Evaluation. Candidates has the details.
func (*evaluation) Detail(*gemm.Config, arch.Reason) string { return "" }

// Estimate implements tabled.Evaluation.
func (e *evaluation) Estimate() arch.Estimate {
	e.score(e.splitK)
	return arch.Estimate{Cycles: unit.Cycles(e.total), Bound: e.bound}
}

// Estimate implements arch.Architecture.
func (a *architecture) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if _, err := a.problem(p); err != nil {
		return err
	}
	return a.Model.Estimate(ctx, dst, p, cfgs)
}

// Terms implements arch.Architecture.
func (a *architecture) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if _, err := a.problem(p); err != nil {
		return err
	}
	return a.Model.Terms(ctx, dst, p, cfgs)
}

// Mapping implements arch.Architecture. Like tritonBLAS, it passes the number of compute units as the grid size,
// whatever the option grid is.
func (a *architecture) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := a.problem(p); err != nil {
		return arch.Mapping{}, err
	}
	if err := a.Check(&c); err != nil {
		return arch.Mapping{}, err
	}
	in := mappingInput{
		cus: a.cus, xcds: a.xcds, workgroups: cmp.Or(a.ordered, a.cus),
		m: uint64(p.M), n: uint64(p.N), batch: uint64(p.Batch),
		bm: uint64(c.BlockM), bn: uint64(c.BlockN),
	}
	var out mapped
	var err error
	if a.februaryMapping {
		out, err = in.feb(ctx)
	} else {
		out, err = in.jan(ctx)
	}
	return arch.Mapping{GroupM: int(out.wgm), XCDs: int(out.xcc), Chunk: int(out.chunk)}, err
}
