package nvidia

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// ModelRefined is the default model.
const ModelRefined = "refined"

// refined predicts the time of a kernel from what its CTAs do on an SM: how many fit at once, what a K step of them takes
// at each resource and how long one alone has to wait, waves and their tail, launch, pipeline fill and output.
// docs/model-nvidia-refined.md has the equations and says what the constants stand on.
//
// Every product that feeds an addition is wrapped in a conversion, which keeps Go from fusing the two: results are the
// same bits on every platform.
type refined struct {
	description arch.Description
	levels      []arch.Level
	device      device
	compiled    kernelTable // by the compiler's report; nil below that rung
	timed       timedTable  // kernels by themselves; nil below the rung characterized
	// prepared holds, per family and layout, what does not depend on the problem of the list of configurations that
	// was estimated last.
	prepared [len(familyNames) * layouts]atomic.Pointer[[]kernel]
}

var _ arch.Architecture = (*refined)(nil)

// familyNames are the kernel families that the model predicts, default first.
var familyNames = [...]string{KernelTriton, KernelMMA}

// layouts is the number of combinations of A's and B's majors.
const layouts = 4

func newRefined(sheet *hw.Sheet, params hw.Set, d device, compiled kernelTable, timed timedTable) *refined {
	m := &refined{device: d, compiled: compiled, timed: timed}
	m.levels = []arch.Level{
		{
			Name: "L2", Capacity: unit.Bytes(params.Int("l2_bytes")), Partitions: 1, Bound: arch.BoundL2,
			Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(min(d.l2Total, d.l2PortBandwidth*d.sms)), Units: int(d.sms), Linear: true},
		},
		{
			Name: "DRAM", Latency: unit.Cycles(d.dramLatency), Partitions: 1, Bound: arch.BoundDRAM,
			Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(d.dramBandwidth), Units: int(d.sms), C0: 0, C1: 1},
		},
	}
	m.description = describe(sheet, params)
	m.description.Model = ModelRefined
	m.description.Constants, m.description.Terms, m.description.Order = d.constants(), refinedTerms, arch.Order{}
	switch {
	case timed != nil:
		m.description.Rung = arch.RungCharacterized
	case compiled != nil:
		m.description.Rung = arch.RungCompiled
	case bandwidthsMeasured(params):
		m.description.Rung = arch.RungCalibrated
	default:
		m.description.Rung = arch.RungSpec
	}
	m.description.Uncertainty = uncertaintyOf(&m.description)
	return m
}

// bandwidthsMeasured reports whether the bandwidths of L2 and DRAM come from a microbenchmark of the device, or from the
// user. Of what a microbenchmark is meant to supply they are what this model cannot do without.
func bandwidthsMeasured(params hw.Set) bool {
	for _, name := range []string{"l2_perf_ratio", "dram_perf_ratio"} {
		if p, ok := params.Lookup(name); !ok || p.Tier < hw.Calibrated {
			return false
		}
	}
	return true
}

// Describe implements arch.Architecture.
func (m *refined) Describe() *arch.Description { return &m.description }

// Hierarchy implements arch.Architecture.
func (m *refined) Hierarchy() arch.MemoryHierarchy { return refinedHierarchy{m} }

// supports reports an error for what the model cannot take.
func (m *refined) supports(p *gemm.Problem) error {
	if p.DType != gemm.FP16 && p.DType != gemm.BF16 {
		return diag.Inputf("the refined model of %s takes fp16 and bf16, not %s: its kernel families have no other operands",
			m.description.Arch, p.DType).Do("use fp16 or bf16")
	}
	return p.Validate()
}

// The axes of triton's space: what the sweep of h200-triton covers.
var (
	tritonStages = []int{2, 3, 4, 5}
	tritonWarp   = []int{4, 8}
)

// Candidates implements arch.Architecture: every kernel of the family that fits an SM, block_m slowest, then block_n,
// block_k, warps and stages. triton's family is what its sweep covers: above two stages, num_stages times the operands of a
// K step have to fit the shared memory of a CTA, though mma.sync gets by with a buffer less.
func (m *refined) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := m.supports(&p); err != nil {
		return nil, err
	}
	axes := arch.Space{
		Kernel: KernelTriton, BlockM: blockSizes, BlockN: blockSizes, BlockK: depths,
		NumWarps: tritonWarp, NumStages: tritonStages, SplitK: []int{1},
	}
	switch s.Kernel {
	case "", KernelTriton:
	case KernelMMA:
		axes = gemmgen.Space()
	default:
		return nil, diag.Inputf("the refined model of %s has no kernel family %q", m.description.Arch, s.Kernel).Do("use %s", strings.Join(familyNames[:], " or "))
	}
	all, err := s.Enumerate(axes)
	if err != nil {
		return nil, err
	}
	out := &arch.Candidates{}
	for position, c := range all {
		var k kernel
		if detail := m.prepare(&k, &p, &c); k.reject == "" {
			out.Configs = append(out.Configs, c)
		} else {
			out.Rejected = append(out.Rejected, arch.Rejection{Config: c, Position: position, Reason: k.reject, Detail: detail})
		}
	}
	return out, nil
}

// fewConfigs is up to how many configurations are prepared in passing, without being kept.
const fewConfigs = 64

// kernels returns what does not depend on the sizes of the problem for each configuration. It is kept from one call to
// the next, per family and layout, so that a list that is estimated for problem after problem is prepared once.
func (m *refined) kernels(p *gemm.Problem, cfgs []gemm.Config) []kernel {
	if len(cfgs) <= fewConfigs {
		return nil
	}
	slot := 0
	if cfgs[0].Kernel == KernelMMA {
		slot = layouts
	}
	if p.AMajor != gemm.MajorK {
		slot |= 1
	}
	if p.BMajor != gemm.MajorK {
		slot |= 2
	}
	if kept := m.prepared[slot].Load(); kept != nil && sameConfigs(*kept, cfgs) {
		return *kept
	}
	list := make([]kernel, len(cfgs))
	for i := range cfgs {
		m.prepare(&list[i], p, &cfgs[i])
	}
	m.prepared[slot].Store(&list)
	return list
}

// sameConfigs compares a few of the configurations; Estimate compares each as it goes.
func sameConfigs(list []kernel, cfgs []gemm.Config) bool {
	n := len(cfgs)
	return len(list) == n && list[0].config == cfgs[0] && list[n/2].config == cfgs[n/2] && list[n-1].config == cfgs[n-1]
}

// Estimate implements arch.Architecture.
func (m *refined) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.supports(&p); err != nil {
		return err
	}
	if err := fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	var (
		s    = newSizes(&p)
		kept = m.kernels(&p, cfgs)
		own  kernel
		t    timing
	)
	for i := range cfgs {
		k := &own
		if kept != nil && kept[i].config == cfgs[i] {
			k = &kept[i]
		} else {
			m.prepare(k, &p, &cfgs[i])
		}
		if k.reject != "" {
			if err := usable(&cfgs[i]); err != nil {
				return err
			}
			dst[i] = arch.Estimate{Reject: k.reject}
			continue
		}
		m.device.time(&t, &s, k)
		dst[i] = arch.Estimate{Cycles: unit.Cycles(t.total), Bound: t.bound(k)}
	}
	return nil
}

// Terms implements arch.Architecture.
func (m *refined) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.supports(&p); err != nil {
		return err
	}
	if err := fits(len(dst), len(cfgs)*len(refinedColumns)); err != nil {
		return err
	}
	s := newSizes(&p)
	for i := range cfgs {
		if err := usable(&cfgs[i]); err != nil {
			return err
		}
		var b refinedBreakdown
		m.prepare(&b.kernel, &p, &cfgs[i])
		b.sizes, b.device = s, &m.device
		m.device.time(&b.timing, &b.sizes, &b.kernel)
		for j := range refinedColumns {
			dst[i*len(refinedColumns)+j] = refinedColumns[j].value(&b)
		}
	}
	return nil
}

// refinedGroups are the launch-order groups that phase two tries.
var refinedGroups = [...]int{1, 2, 4, 16, 32}

// groupGain is how much faster another group than defaultGroup has to be: the model does not tell closer ones apart.
const groupGain = 0.02

// Mapping implements arch.Architecture: defaultGroup, or the group with the shortest time if it is faster by groupGain.
func (m *refined) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if err := m.supports(&p); err != nil {
		return arch.Mapping{}, err
	}
	if err := usable(&c); err != nil {
		return arch.Mapping{}, err
	}
	var (
		k kernel
		t timing
		s = newSizes(&p)
	)
	c.GroupM = defaultGroup
	m.prepare(&k, &p, &c)
	m.device.time(&t, &s, &k)
	best, least := defaultGroup, t.total*(1-groupGain)
	for _, g := range refinedGroups {
		k.config.GroupM = g
		if m.device.time(&t, &s, &k); t.total < least {
			best, least = g, t.total
		}
	}
	return arch.Mapping{GroupM: best}, nil
}

// refinedHierarchy is the model's memory: the L2 and DRAM.
type refinedHierarchy struct{ m *refined }

// Levels implements arch.MemoryHierarchy.
func (h refinedHierarchy) Levels() []arch.Level { return h.m.levels }

// rejectShared says how much shared memory is missing.
func (m *refined) rejectShared(need unit.Bytes) string {
	return fmt.Sprintf("needs %d B of shared memory, %d B available", int64(need), int64(m.description.SharedMemory))
}
