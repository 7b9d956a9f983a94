package calibration

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/probe"
)

// madeUp is a made-up GPU that answers programs by what it can do.
type madeUp struct {
	t                              *testing.T
	sms                            int
	hertz                          float64
	l2Bytes                        float64 // what its L2 holds of a data set
	l2, dram, perSM, triad         float64 // bytes per second
	l1Cycles, l2Cycles, dramCycles float64
	flops                          float64 // per cycle and SM, of any instruction
	launch                         float64 // seconds
}

// Run implements exec.Runner. The work of a program follows from its arguments.
func (g *madeUp) Run(_ context.Context, _ int, p exec.Program, runs int) ([]exec.Reading, error) {
	err := p.Validate()
	must.That(g.t, err == nil, "%v", err)
	var words []float64
	var buffer float64
	for _, a := range p.Arguments {
		switch a.Kind {
		case exec.Word32:
			words = append(words, float64(a.Value))
		case exec.BufferArgument:
			buffer = float64(a.Bytes)
		case exec.Word64, exec.CountersArgument:
		}
	}
	seconds, cycles := 0.0, 0.0
	switch entry, _, _ := strings.Cut(p.Entry, "_"); entry {
	case "empty":
		seconds = g.launch
	case "slabs":
		rate := g.l2
		if words[0]*probe.SlabBytes > g.l2Bytes {
			rate = g.dram
		}
		seconds = float64(p.Grid) * probe.SlabBytes / rate
	case "stream":
		if words[0]*probe.SlabBytes > buffer {
			g.t.Errorf("%v slabs in %v bytes", words[0], buffer)
		}
		seconds = float64(p.Grid) * words[1] * probe.SlabBytes / min(g.dram, g.perSM*float64(p.Grid))
	case "triad":
		seconds = 3 * float64(p.Grid) * probe.TriadBytes / g.triad
	case "chase":
		each, bytes := g.l1Cycles, math.Exp2(words[0])*probe.LineBytes
		if bytes > g.l2Bytes {
			each = g.dramCycles
		} else if bytes > 1<<18 {
			each = g.l2Cycles
		}
		must.That(g.t, bytes <= buffer, "pointers over %v bytes of a buffer of %v", bytes, buffer)
		cycles = each * words[1] * probe.ChaseTurn
	case "fma":
		cycles = words[0] * probe.FMAOperations / g.flops
	default:
		cycles = words[0] * 1e3
	}
	if seconds == 0 {
		seconds = cycles / g.hertz
	}
	readings := make([]exec.Reading, runs)
	for i := range readings {
		readings[i].Time = unit.Seconds(seconds)
		if p.Counters > 0 {
			total := seconds
			if cycles > 0 {
				total = cycles / g.hertz
			}
			readings[i].Counters = []uint64{uint64(total * g.hertz * float64(p.Grid)),
				uint64(total * 1e9 * float64(p.Grid)), uint64(p.Grid), 0}
		}
	}
	return readings, nil
}

func measured(t *testing.T, g *madeUp, d exec.Device) (map[string]calibrate.Number, calibrate.Values) {
	t.Helper()
	plan := must.Get(New(d))(t)
	err := plan.Check()
	must.That(t, err == nil, "%v", err)
	s := &calibrate.Session{Plan: plan, Runner: g, Keep: func(*calibrate.Probe, calibrate.Round) error { return nil },
		Environment: func(context.Context, int) (exec.Environment, error) {
			return exec.Environment{Time: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}, nil
		}}
	refused, err := s.Run(t.Context())
	must.Need(t, err == nil && len(refused) <= 0, "%v %v", refused, err)
	numbers := map[string]calibrate.Number{}
	values := plan.Values(s.Rounds)
	list, atoms, err := plan.Numbers(t.Context(), values)
	must.That(t, err == nil && len(atoms) == 2, "%d atoms, %v", len(atoms), err)
	for _, n := range list {
		numbers[n.Name] = n
	}
	return numbers, values
}

func device(arch string, sms, l2, memory, dram float64) exec.Device {
	return exec.Device{Name: "GPU", Arch: arch, Attributes: map[string]float64{"num_sms": sms, "l2_bytes": l2,
		"memory_bytes": memory, "dram_bandwidth": dram}}
}

// TestNumbers: the numbers of a made-up GPU are what it was made of, with the wgmma numbers on Hopper alone.
func TestNumbers(t *testing.T) {
	g := &madeUp{t: t, sms: 132, hertz: 1.9e9, l2Bytes: 44e6, l2: 9.8e12, dram: 3.9e12, perSM: 0.1e12, triad: 4e12,
		l1Cycles: 32, l2Cycles: 280, dramCycles: 690, flops: 250, launch: 2.5e-6}
	numbers, _ := measured(t, g, device("sm90", 132, 60<<20, 141e9, 4.9e12))
	for name, want := range map[string]float64{
		"clock": 1.9e9, "l2_perf_ratio": 9.8e12 / 1.9e9, "dram_perf_ratio": 3.9e12 / 1.9e9, "dram_bw_coeff": 0.1 / 3.9,
		"dram_read": 3.9e12, "dram_triad": 4e12, "hbm_latency_penalty": 690, "l2_latency": 280, "l1_latency": 32,
		"fma_rate": 250, "launch_overhead": 2.5e-6, "l2_knee": 41.5e6,
	} {
		got := numbers[name].Value
		must.That(t, math.Abs(got-want) <= 0.02*want, "%s is %v, want %v", name, got, want)
	}
	for _, name := range []string{"mma_latency", "l2_perf_ratio", "dram_bw_coeff", "wgmma_rate_fp8", "shared_bandwidth"} {
		must.That(t, numbers[name].Parameter, "%s is no parameter", name)
	}
	must.That(t, !numbers["wgmma_completion_fp16"].Parameter, "wgmma_completion_fp16 is a parameter")
	small, _ := measured(t, g, device("sm86", 16, 2<<20, 4e9, 0))
	_, ok := small["wgmma_rate_fp16"]
	must.That(t, !ok, "wgmma on sm_86")
	_, ok = small["mma_rate_fp8"]
	must.That(t, !ok, "fp8 on sm_86")
}

// The formulas of the plan name the counters by their numbers.
func TestCounters(t *testing.T) {
	must.That(t, probe.CounterCycles == 0 && probe.CounterNanoseconds == 1 && probe.CounterCTAs == 2,
		"the counters have other numbers than the formulas say")
}

// TestAboveTheHardware: a DRAM benchmark that is faster than DRAM is refused, and so are the numbers that need it.
func TestAboveTheHardware(t *testing.T) {
	g := &madeUp{t: t, hertz: 1.9e9, l2Bytes: 1e12, l2: 9.8e12, dram: 4.8e12, perSM: 1e11, triad: 4e12, l1Cycles: 1,
		l2Cycles: 1, dramCycles: 1, flops: 250, launch: 2e-6}
	numbers, values := measured(t, g, device("sm90", 132, 60<<20, 141e9, 4.9e12))
	_, ok := numbers["dram_perf_ratio"]
	must.That(t, !ok, "dram_perf_ratio above the bandwidth of DRAM")
	got := values["slabs/240 MiB"].Refused
	must.That(t, strings.Contains(got, "more than the hardware can do"), "%v", got)
	must.That(t, numbers["l2_perf_ratio"].Value != 0, "l2_perf_ratio is missing")
}

func TestNoPlan(t *testing.T) {
	for _, d := range []exec.Device{device("sm75", 40, 4<<20, 16e9, 0), device("gfx942", 40, 4<<20, 16e9, 0),
		device("sm90", 0, 4<<20, 16e9, 0), device("sm90", 132, 0, 16e9, 0)} {
		_, err := New(d)
		must.That(t, err != nil && diag.KindOf(err) == diag.Input, "%+v: %v", d, err)
	}
}
