// Package fake is an architecture provider for tests of the plugin boundary. Its numbers are meaningless: they cover
// the whole range of float64. It uses every field that crosses the boundary.
package fake

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Provider opens architectures named Name, or "fake" if Name is empty.
type Provider struct{ Name string }

// The devices differ in the number of usable candidates and in the order of ranking.
var sizes = map[string]int{"small": 122, "large": 1000}

func (p Provider) name() string {
	if p.Name == "" {
		return "fake"
	}
	return p.Name
}

// Manifest implements arch.Provider.
func (p Provider) Manifest() arch.Manifest {
	return arch.Manifest{
		Name: p.name(), Version: "0.3.1", Calibrates: true, Ladder: true,
		Archs: []arch.ArchEntry{{
			ID: p.name(), Vendor: "none", Models: []string{"hashed", "other"}, Kernels: []string{"one", "two"},
			Fitted: []string{"hashed"},
			Devices: []arch.DeviceEntry{
				{ID: "small", Name: "Fake Small", Aliases: []string{p.name() + "-s", p.name() + "-122"}},
				{ID: "large", Name: "Fake Large", Aliases: []string{p.name() + "-l"}},
			},
		}},
		Options: []arch.Option{{Key: "salt", Default: "1", Values: []string{"1", "2"}, Doc: "changes every number"}},
	}
}

// Open implements arch.Provider. The override "noise" and the option "salt" change the results. A live device changes
// the device name, a device file the device.
func (p Provider) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	if r.Arch != p.name() {
		return nil, diag.Inputf("no architecture %q", r.Arch).At("%s", p.name()).Do("use %s", p.name())
	}
	named := r.Device
	if r.Device == "" {
		r.Device = "small"
	}
	if sizes[r.Device] == 0 {
		return nil, diag.Inputf("no device %q", r.Device).Do("use small or large")
	}
	salt := "1"
	for key, value := range r.Options {
		if key != "salt" || value != "1" && value != "2" {
			return nil, diag.Inputf("no option %s=%s", key, value).Do("use salt=1 or salt=2")
		}
		salt = value
	}
	number := func(value float64, unit string, method hw.Method, date string) hw.Number {
		return hw.Number{Value: value, Unit: unit, Source: "nothing", Method: method, Date: date}
	}
	sheet := &hw.Sheet{
		Header:     hw.Header{File: "fake.yaml", Arch: p.name(), Device: r.Device},
		Derived:    map[string]hw.Number{"noise": number(1.0/3, "1", hw.Assumed, "2026-11-20")},
		Calibrated: map[string]hw.Number{"bandwidth": number(1895.7, "B/cycle", hw.Microbenchmark, "2026-11-19")},
	}
	specs := []hw.Spec{{Name: "noise", Unit: "1"}, {Name: "bandwidth", Unit: "B/cycle"}}
	params, err := hw.Resolve(specs, sheet, nil, r.Overrides)
	if err != nil {
		return nil, err
	}
	m := &model{seed: mix(math.Float64bits(params.Get("noise")), uint64(len(salt)), uint64(salt[0]))}
	m.desc = describe(p.name(), r.Device, salt, params)
	if r.DeviceFile != nil {
		header, err := hw.DecodeHeader(hw.FilePlace, r.DeviceFile)
		if err != nil {
			return nil, err
		}
		if named != "" {
			return nil, diag.Inputf("the device %s beside a device file", named)
		}
		m.desc.Device, m.desc.DeviceName = header.Device, header.Name
	}
	if r.Live != nil {
		clock := strings.Replace(unit.Hertz(r.Live.Attributes["clock"]).String(), ".00", "", 1)
		m.desc.DeviceName = fmt.Sprintf("%s live at %s of %s", r.Live.Name, clock, named)
	}
	m.levels = []arch.Level{
		{
			Name: "L2", Bound: arch.BoundL2, Capacity: 4 << 20, Latency: 300, Partitions: 8, Reached: 4000.5,
			Bandwidth: arch.Bandwidth{Peak: 5120.25, Units: 108, Linear: true},
			Names:     arch.LevelNames{Capacity: "l2", Latency: "l2_wait", Partitions: "dies", Bandwidth: "l2_rate"},
		},
		{
			Name: "MALL", Bound: arch.BoundMALL, Capacity: 256 << 20, Latency: 500, Partitions: 1,
			Bandwidth: arch.Bandwidth{Peak: 3000, Units: 108, C0: -1e-5, C1: 0.015, C2: 0.1},
		},
		{
			Name: "HBM", Bound: arch.BoundDRAM, Latency: 800, Partitions: 1, DataSheet: 3e12,
			Bandwidth: arch.Bandwidth{Peak: 2100.7, Units: 108, C2: 1},
			Names:     arch.LevelNames{DataSheet: "hbm", C0: "c0", C1: "c1", C2: "c2"},
		},
	}
	m.candidates(sizes[r.Device])
	return m, nil
}

// describe returns a description with every field set.
// groups are the groups of a problem that the model was fitted to.
var groups, _ = gemm.NewGroups(40, 0, 24)

// nest are the indices of that problem.
var nest, _ = gemm.ParseNest("m64:16:0:32,k16:1:1:0,n32:0:16:1")

func describe(name, device, salt string, params hw.Set) arch.Description {
	d := arch.Description{
		Arch: name, Vendor: "none", Device: device, DeviceName: "Fake " + device, Aliases: []string{"alias"},
		Model: "hashed", Models: []string{"hashed", "other"}, Kernels: []string{"one", "two"},
		Rung: arch.RungCalibrated, RanksOnly: true, RungReason: "since noise is",
		UnitName: "XU", Units: 108, Partitions: 8, Clock: 1.755e9, ClockRung: arch.RungSpec,
		SharedMemory: 101376, RegisterFile: 65536, RegistersPerThread: 255,
		Peak: []arch.PeakRate{{DType: gemm.FP16, Rate: 165.2e12}, {DType: gemm.FP8, Rate: 330.3e12}},
		Atoms: []arch.Atom{
			{DType: gemm.FP16, M: 16, N: 8, K: 16, Latency: 32.5, PerUnit: 4},
			{DType: gemm.BF16, M: 16, N: 8, K: 8, Latency: 17, PerUnit: 2},
		},
		Ceilings: []arch.Ceiling{
			{Name: "multiply", DType: gemm.FP16, Limit: 160e12, Reached: 150e12, Source: "a benchmark"},
			{Name: "scratch", Level: arch.AtShared, Limit: 20e12, Source: "its width"},
		},
		Params: params,
		Unused: []string{"bandwidth"},
		Constants: []arch.Constant{{Name: "e", Value: math.E, Unit: "1", Doc: "a constant", Source: "Euler", Low: 1,
			High: 4}},
		Order:   arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}},
		Options: []arch.OptionValue{{Key: "salt", Value: salt}},
		Uncertainty: []arch.Uncertainty{{
			Kernel: "one", Evidence: arch.EvidenceChecked, Level: 0.9, Sigma: 0.05, PlanSigma: 0.07,
			MedianError: 0.06, Source: "nothing", Widening: 1.5, Checked: arch.Checked{
				DataSet: "some", Sizes: 3, Times: 7, TimedType: "bf16",
				Layouts: []arch.Layout{{
					Types: gemm.Types{In: gemm.FP16, Out: gemm.FP16}, AMajor: gemm.MajorK, BMajor: gemm.MajorN,
				}},
				Divisor: arch.Range{Low: 8, High: 16}, Split: arch.Range{Low: 1, High: 2}, M: arch.Range{Low: 64, High: 4096},
				N: arch.Range{Low: 32, High: 2048}, K: arch.Range{Low: 16, High: 1024}, Batch: arch.Range{Low: 1, High: 4},
				Flops: arch.Range{Low: 1e6, High: 1e12},
			},
			Ranges: []arch.ErrorRange{
				{Bound: arch.BoundDRAM, Below: 20e-6, Low: 0.8, High: 1.5},
				{Low: 0.9, High: 1.25},
			},
		}},
		Fitted: []arch.Fitted{{DataSet: "some", Kernel: "two", Problems: []gemm.Problem{{
			M: 64, N: 32, K: 16, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorN, DType: gemm.FP16, Out: gemm.FP32,
			LDA: 24, LDB: 40, LDC: 48, AlignA: 2, AlignB: 4, AlignC: 8,
			Alpha: 2, Beta: 1, Epilogue: gemm.Epilogue{Activation: gemm.GELU},
		}, {
			M: 64, N: 32, K: 16, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorN, DType: gemm.FP16, Groups: groups,
		}, {
			M: 64, N: 32, K: 16, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorN, DType: gemm.FP16, Nest: nest,
		}}}},
		Monotone: []arch.Dim{arch.DimN, arch.DimK},
		Families: []arch.Family{{Name: "two", Doc: "has named axes", Pastes: []string{"code"}, Groups: true, Nests: true,
			Types: []gemm.Types{
				{In: gemm.FP16, Out: gemm.FP16}, {In: gemm.FP16, Out: gemm.FP32}, {In: gemm.BF16, Out: gemm.BF16},
				{In: gemm.BF16, Out: gemm.FP32},
			}, Axes: []gemm.Axis{
				{
					Name: "cluster", Doc: "CTAs per cluster", Type: gemm.Enumeration,
					Values: []string{"1x1", "2x1", "4x1"}, Default: "1x1",
				},
				{Name: "vector", Unit: "elements", Doc: "width of a load", Type: gemm.Integer, Default: "4"},
			}}},
	}
	for i := range 30 {
		d.Terms = append(d.Terms, arch.Term{
			Name: fmt.Sprintf("term_%d", i), Unit: "cycles", Formula: "rule: a hash", Doc: "nothing", Source: "nowhere",
			Kind: arch.TermKind(i % 4), Common: fmt.Sprintf("common_%d", i),
		})
	}
	return d
}

type model struct {
	desc   arch.Description
	levels []arch.Level
	list   arch.Candidates
	seed   uint64
}

func (m *model) candidates(n int) {
	for position := 0; len(m.list.Configs) < n; position++ {
		c := gemm.Config{
			BlockM: 16 << (position % 5), BlockN: 16 << (position / 5 % 5), BlockK: 16 << (position / 25 % 4),
			NumWarps: 1 << (position / 100 % 4), NumStages: 1 + position/400, SplitK: 1 + position%2,
			Kernel: m.desc.Kernels[position%7/6],
		}
		if axes := m.desc.Axes(c.Kernel); position%3 > 0 {
			for i := range axes {
				_ = axes[i].Set(&c, []string{"1x1", "2x1", "4x1", "4", "8", "2"}[3*i+position/3%3])
			}
		}
		if position%5 == 4 && position/5 < 28 {
			reason := []arch.Reason{arch.ReasonSharedMemory, arch.ReasonRegisters, "own_reason"}[position/5%3]
			m.list.Rejected = append(m.list.Rejected, arch.Rejection{
				Config: c, Position: position, Reason: reason, Detail: fmt.Sprintf("needs %d, has %d", position, n),
			})
			continue
		}
		m.list.Configs = append(m.list.Configs, c)
	}
}

func (m *model) Describe() *arch.Description     { return &m.desc }
func (m *model) Hierarchy() arch.MemoryHierarchy { return m }
func (m *model) Levels() []arch.Level            { return m.levels }

func (m *model) check(p gemm.Problem) error {
	if p.DType != gemm.FP16 && p.DType != gemm.BF16 {
		return diag.Inputf("%s cannot be modelled", p.DType).At("fake").Do("use fp16")
	}
	return nil
}

func (m *model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := m.check(p); err != nil {
		return nil, err
	}
	if len(s.BlockM) == 0 && s.Kernel == "" {
		return &m.list, nil
	}
	// A given axis keeps its values. The remaining candidates move up.
	out := &arch.Candidates{}
	for _, c := range m.list.Configs {
		for _, bm := range s.BlockM {
			if c.BlockM == bm && (s.Kernel == "" || c.Kernel == s.Kernel) {
				out.Configs = append(out.Configs, c)
			}
		}
	}
	return out, nil
}

func (m *model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.check(p); err != nil {
		return err
	}
	for i := range cfgs {
		h := m.hash(p, &cfgs[i], 0)
		switch {
		case h%11 == 0:
			dst[i] = arch.Estimate{Reject: arch.ReasonModelRule}
		case h%13 == 0:
			dst[i] = arch.Estimate{Reject: "own_rule"}
		default:
			dst[i] = arch.Estimate{Cycles: unit.Cycles(positive(h)), Bound: arch.Bound(h % 6)}
		}
	}
	return nil
}

func (m *model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.check(p); err != nil {
		return err
	}
	for i := range cfgs {
		for t := range m.desc.Terms {
			// Any bits, including NaNs and infinities.
			dst[i*len(m.desc.Terms)+t] = math.Float64frombits(m.hash(p, &cfgs[i], uint64(t+1)))
		}
	}
	return nil
}

func (m *model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	h := m.hash(p, &c, 99)
	return arch.Mapping{GroupM: 1 + int(h%16), XCDs: int(h / 16 % 9), Chunk: int(h / 256 % 4)}, m.check(p)
}

func (m *model) hash(p gemm.Problem, c *gemm.Config, salt uint64) uint64 {
	h := mix(m.seed, salt, uint64(p.M), uint64(p.N), uint64(p.K), uint64(p.Batch),
		uint64(p.AMajor), uint64(p.BMajor), uint64(p.DType), uint64(len(c.Kernel)), uint64(c.Kernel[0]))
	h = mixStorage(h, &p)
	searched := *c
	searched.GroupM = 0
	for _, v := range searched.Numbers() {
		h = mix(h, uint64(v))
	}
	for _, b := range []byte(c.Axes.String()) {
		h = mix(h, uint64(b))
	}
	return h
}

// mixStorage makes the answers depend on the whole problem.
func mixStorage(h uint64, p *gemm.Problem) uint64 {
	if p.Plain() {
		return h
	}
	h = mix(h, uint64(p.Out), uint64(p.LDA), uint64(p.LDB), uint64(p.LDC), uint64(p.AlignA), uint64(p.AlignB),
		uint64(p.AlignC))
	for rows := range p.Groups.All() {
		h = mix(h, uint64(rows))
	}
	return h
}

// positive turns a hash into a normal positive number between 1 and 2^16. It uses all bits of the fraction.
func positive(h uint64) float64 {
	return math.Float64frombits((1023+h>>52%16)<<52 | h&(1<<52-1))
}

// mix applies the finaliser of SplitMix64 to a running sum (Steele, Lea, Flood, OOPSLA 2014).
func mix(values ...uint64) uint64 {
	h := uint64(0)
	for _, v := range values {
		h += v + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
