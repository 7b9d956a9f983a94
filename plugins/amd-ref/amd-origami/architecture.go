// Package amdorigami reproduces AMD's Origami GEMM model as it was when tritonBLAS adopted it: three memory levels (L2
// per die, MALL, HBM), several dies, and the workgroup mapping. It matches the original bit for bit and is never tuned.
// The equations are the table in package terms. docs/model-amd-origami.md says what its formulas do not.
package amdorigami

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
	amd "github.com/origami-gemm/origami/plugins/amd-ref/device"
	"github.com/origami-gemm/origami/plugins/costs"
	"github.com/origami-gemm/origami/sdk/catalog"
)

//go:generate go run ../internal/gen

const (
	// Name is the model's name in requests and descriptions.
	Name = "amd-origami"
	// Family is the kernel family that it predicts.
	Family = "triton"
)

// Model opens the model on a device.
var Model = catalog.Model{
	Name: Name, Class: arch.ClassReference, Kernels: []string{Family}, Options: optionList,
	Open: func(s catalog.Selection) (arch.Architecture, error) {
		o, values, err := parseOptions(s.Options, s.Sheet)
		if err != nil {
			return nil, err
		}
		return newArchitecture(s.Sheet, s.Params, o, values)
	},
}

// architecture is the model on a device.
type architecture struct {
	model.Model
	machine
	sheet  *hw.Sheet
	device device
	atoms  map[gemm.DType]instruction // of the element types that the device has one for
}

// machine is a device in whole numbers, with the settings of the model.
type machine struct {
	options
	cus, xcds         uint64
	ldsBytes, l2Bytes uint64 // of a compute unit, and of a die
	parallelMI        uint64
}

// atomTypes maps an element type to the operand type of its matrix instruction.
var atomTypes = map[gemm.DType]string{
	gemm.FP16: "fp16", gemm.BF16: "bf16", gemm.FP32: "fp32", gemm.TF32: "xf32", gemm.FP8: "fp8", gemm.INT8: "int8",
}

func newArchitecture(sheet *hw.Sheet, params hw.Set, o options, values []arch.OptionValue) (*architecture, error) {
	get := func(name string) uint64 { return uint64(params.Get(name)) }
	a := &architecture{sheet: sheet, atoms: map[gemm.DType]instruction{}, machine: machine{
		options: o, cus: get("num_cus"), xcds: get("num_xcds"), ldsBytes: get("lds_bytes"), parallelMI: get("parallel_mi"),
	}}
	if a.xcds > a.cus {
		return nil, diag.Inputf("num_xcds is %d, which is more than num_cus (%d)", a.xcds, a.cus).
			Do("give each die at least one compute unit")
	}
	a.New, a.Space, a.Refuse = func() model.Evaluation { return &evaluation{on: a} }, a.space, a.refuse
	a.Description, a.Memory = amd.Description(sheet, params), amd.Memory(params)
	if !(arch.LevelOf(a.Memory, arch.BoundDRAM).Bandwidth.Fraction(1) > 0) {
		return nil, diag.Inputf("bw_c0, bw_c1 and bw_c2 are all zero, which leaves no bandwidth").
			Do("set at least one to a positive value")
	}
	a.l2Bytes = uint64(arch.LevelOf(a.Memory, arch.BoundL2).Capacity)
	d := &a.Description
	d.Model, d.Kernels, d.Rung, d.ClockRung = Name, []string{Family}, arch.RungSpec, arch.RungSpec
	// The library asks the model which kernel is fastest, and nothing else: no launch, no power, and loads that are off
	// by any factor where few rows are multiplied.
	d.RanksOnly = true
	d.Constants = slices.Concat(terms.Constants, costs.Of(Name, sheet.Arch))
	d.Terms, d.Options = terms.Schema(gridModes[o.grid], o.grid == dataParallel), values
	d.Order = arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}}
	d.Peak = nil // of the types below alone
	if params.Calibrated(amd.Specs) {
		d.Rung = arch.RungCalibrated
	}
	d.Unused = formula.Unused(params, append(formula.Of(d.Terms), "clock"))
	for _, t := range gemm.DTypes() {
		if atomTypes[t] == "" { // of which the reference says nothing
			continue
		}
		if peak := params.Get("peak_" + t.String()); peak > 0 {
			d.Peak = append(d.Peak, arch.PeakRate{DType: t, Rate: unit.FlopsPerSecond(peak)})
		}
		a.addAtom(t)
	}
	a.device.compute(a.Numbers())
	return a, nil
}

// addAtom adds the matrix instruction of an element type, if the device has one.
func (a *architecture) addAtom(t gemm.DType) {
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
	mi := instruction{m: uint64(s.m), n: uint64(s.n), k: uint64(s.k), latency: a.miLatency(atom.Type, s)}
	if t == gemm.TF32 && a.sheet.Arch == "gfx950" {
		// gfx950 has no XF32 instructions. The library emulates TF32 with three BF16 products and conversions, and models
		// their cost. The factor of the emulation is halved if K ≥ 16M and K ≥ 16N, so a larger K can take less time.
		a.Description.Monotone = []arch.Dim{arch.DimNone}
		mi.convert = f(a.miLatency(atomTypes[gemm.BF16], s))
	}
	a.atoms[t] = mi
}

// miLatency returns the cycles of a matrix instruction with all matrix cores of a compute unit busy, rounded down.
func (a *architecture) miLatency(atomType string, s shape) uint64 {
	cycles := uint64(terms.MissingCycles)
	for _, atom := range a.sheet.Atoms {
		if atom.Type == atomType && (shape{atom.M, atom.N, atom.K}) == s {
			cycles = uint64(atom.Cycles)
		}
	}
	return cycles / a.parallelMI
}

// problem converts p to whole numbers.
func (a *architecture) problem(p *gemm.Problem) problem {
	q := problem{
		machine: &a.machine,
		m:       uint64(p.M), n: uint64(p.N), k: uint64(p.K), batch: uint64(p.Batch),
		transA: p.AMajor == gemm.MajorK, transB: p.BMajor == gemm.MajorN,
		bytes: uint64(p.DType.Bits() / 8), outBytes: uint64(p.Output().Bits() / 8),
		mi: a.atoms[p.DType.CostsLike()], wgm: ceilSqrt(a.cus / a.xcds), volume: f(uint64(p.M * p.N * p.K)),
	}
	if p.Batch > 1 {
		q.wgm = 1
	}
	return q
}

// refuse reports an element type without a matrix instruction.
func (a *architecture) refuse(t gemm.DType) error {
	if _, ok := a.atoms[t.CostsLike()]; ok {
		return nil
	}
	instruction := atomTypes[t.CostsLike()]
	if list := shapes(a.sheet.Atoms, instruction); a.mi != nil && instruction != "" && list != "" {
		return diag.Inputf("%s has no %s matrix instruction for %s", a.sheet.Arch, a.mi, t).
			At("option mi").Do("use one of %s", list)
	}
	var types []string
	for _, atom := range a.Description.Atoms {
		types = append(types, atom.DType.String())
	}
	return diag.Inputf("%s has no matrix instructions for %s", a.sheet.Arch, t).
		Do("use one of %s", strings.Join(types, ", "))
}

// The launch parameters that tritonBLAS uses on AMD. The model ignores them.
const (
	launchWarps  = 8
	launchStages = 2
)

// space has the tile sizes that tritonBLAS tries for an element type: 5×5×6 for 16- and 32-bit types. For 8-bit types,
// gfx942 adds 512 to M and N, and gfx950 drops 16. tritonBLAS also repeats the depths 128 and 256 for 8-bit types on
// gfx942. A repeated configuration changes no pick, so this list has no repetitions.
func (a *architecture) space(_ string, t gemm.DType) arch.Space {
	sides := []int{16, 32, 64, 128, 256}
	if t.Bits() == 8 {
		switch a.sheet.Arch {
		case "gfx942":
			sides = append(sides, 512)
		case "gfx950":
			sides = sides[1:]
		}
	}
	return arch.Space{
		Kernel: Family, BlockM: sides, BlockN: sides, BlockK: []int{16, 32, 64, 128, 256, 512},
		NumWarps: []int{launchWarps}, NumStages: []int{launchStages}, SplitK: []int{1},
	}
}

// Mapping implements arch.Architecture. Like tritonBLAS, it passes the number of compute units as the grid size,
// whatever the option grid is.
func (a *architecture) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := a.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	in := mappingInput{
		cus: a.cus, xcds: a.xcds, workgroups: cmp.Or(a.workgroups, a.cus),
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
