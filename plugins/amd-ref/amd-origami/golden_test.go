package amdorigami

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
	amd "github.com/origami-gemm/origami/plugins/amd-ref/device"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// record is a line of a golden file: its cells by the names of the columns, and those in lower case as in the terms.
type record struct {
	testing.TB
	name          string
	line, columns int
	cells         map[string]string
}

// golden reads testdata/golden/name.
func golden(t testing.TB, name string) (records []record) {
	t.Helper()
	for i, cells := range csvtest.Named(t, "testdata/golden/"+name) {
		r := record{t, name, i + 2, len(cells), cells}
		for column, cell := range maps.Clone(cells) {
			if lower := strings.ToLower(column); cells[lower] == "" {
				cells[lower] = cell
			}
		}
		records = append(records, r)
	}
	return records
}

// each tests every line of a golden file, up to the first that fails.
func each(t testing.TB, name string, do func(r record)) {
	t.Helper()
	for _, r := range golden(t, name) {
		do(r)
		r.stop()
	}
}

// stop ends the test if it has failed.
func (r record) stop() {
	must.Need(r, !r.Failed(), "%s line %d: %v", r.name, r.line, r.cells)
}

func (r record) text(column string) string {
	cell, ok := r.cells[column]
	must.Need(r, ok, "%s has no column %q", r.name, column)
	return cell
}

func (r record) number(column string) float64 { return csvtest.Float(r, r.cells, column) }
func (r record) int(column string) int        { return csvtest.Int(r, r.cells, column) }
func (r record) count(column string) uint64   { return uint64(r.int(column)) }

// want compares a value with a cell, bit for bit.
func (r record) want(column string, got float64) {
	want := r.number(column)
	must.That(r, math.Float64bits(got) == math.Float64bits(want), "%s = %v, want %v", column, got, want)
}

// problem reads the problem of a line. The letters assume column-major storage: T for A and N for B mean K-contiguous.
func (r record) problem(dtype string) gemm.Problem {
	p := gemm.New(r.int("M"), r.int("N"), r.int("K"))
	p.Batch = r.int("batch")
	p.SetTrans(r.text("transA") == "N", r.text("transB") == "N")
	var ok bool
	if p.DType, ok = map[string]gemm.DType{"f16": gemm.FP16, "bf16": gemm.BF16, "f32": gemm.FP32}[dtype]; !ok {
		r.Fatalf("unknown dtype %q", dtype)
	}
	return p
}

// open opens an architecture with options given as "key=value".
func open(t testing.TB, archID string, opts ...string) *architecture {
	t.Helper()
	p := must.Get(catalog.New(catalog.Definition{
		Name: "amd-ref", Version: "test", Files: configs.FS, Vendor: "AMD",
		Archs: map[string][]catalog.Model{
			"gfx900": {Model}, "gfx906": {Model}, "gfx908": {Model}, "gfx90a": {Model}, "gfx942": {Model}, "gfx950": {Model},
		},
		Specs: amd.Specs, Derive: nil, Scale: amd.Scale,
	}))(t)
	r := arch.OpenRequest{Arch: archID, Model: Name, Options: map[string]string{}}
	for _, o := range opts {
		key, value, _ := strings.Cut(o, "=")
		r.Options[key] = value
	}
	a := must.Get(p.Open(context.Background(), r))(t)
	return a.(*architecture)
}

// opener opens each architecture once per combination of options.
type opener map[string]*architecture

func (o opener) open(t testing.TB, archID string, opts ...string) *architecture {
	key := archID + " " + strings.Join(opts, " ")
	if o[key] == nil {
		o[key] = open(t, archID, opts...)
	}
	return o[key]
}

// TestGoldenHardware compares the resolved parameters with those of AMD's library.
func TestGoldenHardware(t *testing.T) {
	each(t, "amd_hardware.csv", func(r record) {
		a := open(t, r.text("arch"))
		set := hw.Set(a.Description.Params).Get
		for column, got := range map[string]float64{
			"N_CU": set("num_cus"), "NUM_XCD": set("num_xcds"), "CU_per_L2": f(a.cus / a.xcds),
			"lds_capacity": set("lds_bytes"), "L2_capacity": set("l2_bytes"),
			"mem1_perf_ratio": set("mem1_perf_ratio"), "mem2_perf_ratio": set("mem2_perf_ratio"),
			"mem3_perf_ratio": set("mem3_perf_ratio"),
			"bw_c0":           set("bw_c0"), "bw_c1": set("bw_c1"), "bw_c2": set("bw_c2"),
			"compute_clock_ghz": set("clock") / 1e9, "parallel_mi_cu": set("parallel_mi"),
			"clockRate_kHz": set("clock") / 1e3, "memoryClockRate_kHz": set("memory_clock") / 1e3,
		} {
			r.want(column, got)
		}
		must.That(t, r.columns == 16, "%d columns, but 16 are compared", r.columns)
	})
}

// TestGoldenCandidates compares every intermediate value of every configuration through Candidates, Terms and Estimate.
// It includes configurations that do not fit or that a rule rejects.
func TestGoldenCandidates(t *testing.T) {
	ctx := context.Background()
	opened := opener{}
	for rows := range slices.Chunk(golden(t, "amd_candidates.csv.gz"), 150) {
		r := rows[0]
		mi := r.text("MI_M") + "x" + r.text("MI_N") + "x" + r.text("MI_K")
		a := opened.open(t, r.text("arch"), "mi="+mi, "occ="+r.text("occupancy"), "grid="+r.text("grid_mode"))
		p := r.problem(r.text("dtype"))
		list := must.Get(a.Candidates(ctx, p, arch.Space{}))(t)
		configs := list.Configs
		for _, rejection := range list.Rejected {
			configs = append(
				configs[:rejection.Position:rejection.Position],
				append([]gemm.Config{rejection.Config}, configs[rejection.Position:]...)...)
		}
		must.Need(t, len(configs) == 150, "%d candidates, want 150", len(configs))
		values := make([]float64, len(configs)*len(a.Description.Terms))
		must.Do(t, a.Terms(ctx, values, p, configs))
		estimates := archtest.Estimates(t, a, p, configs...)
		for i, c := range configs {
			r := rows[i]
			must.Need(t, c.BlockM == r.int("MT_M") && c.BlockN == r.int("MT_N") && c.BlockK == r.int("MT_K"),
				"candidate %d is %v, which differs from line %d", i, c, r.line)
			compared := 0
			for j, term := range a.Description.Terms {
				column := term.Name
				if _, ok := r.cells[column]; !ok {
					continue
				}
				compared++
				got := values[i*len(a.Description.Terms)+j]
				if column != "total_latency" {
					r.want(column, got)
					continue
				}
				e := estimates[i]
				switch {
				case r.text(column) == "rejected":
					must.That(t, got == arch.RejectedTotal && e.Reject != "" && e.Cycles == 0,
						"total %v, estimate %+v, want rejected", got, e)
				default:
					r.want(column, got)
					if r.text("lds_ok") == "0" {
						must.That(t, e.Reject == arch.ReasonSharedMemory, "estimate %+v, want %s", e, arch.ReasonSharedMemory)
					} else if e.Reject != "" || e.Bound == arch.BoundUnknown {
						t.Errorf("estimate %+v, want a bound and no reason", e)
					} else {
						r.want(column, float64(e.Cycles))
					}
				}
			}
			if compared != r.columns-13 { // all except set, arch, dtype, problem, layout, tile and grid mode
				t.Errorf("compared %d of %d columns", compared, r.columns)
			}
			r.stop()
		}
	}
}

// TestGoldenUnits compares tile latencies of arbitrary mappings, active compute units, splits, batches and odd tiles.
func TestGoldenUnits(t *testing.T) {
	opened := opener{}
	each(t, "amd_units.csv.gz", func(r record) {
		a := opened.open(t, r.text("arch"), "occ="+r.text("occupancy"))
		p := r.problem("f16")
		q := a.problem(&p)
		mi := shape{r.int("MI_M"), r.int("MI_N"), r.int("MI_K")} // missing from the table of some devices
		latency := a.miLatency("fp16", mi)
		q.mi = instruction{m: r.count("MI_M"), n: r.count("MI_N"), k: r.count("MI_K"), latency: latency}
		q.wgm = r.count("WGM")
		e := evaluation{on: a}
		e.set(q)
		e.config = &gemm.Config{BlockM: r.int("MT_M"), BlockN: r.int("MT_N"), BlockK: r.int("MT_K")}
		n, rejected := e.place(e.config)
		e.start(launch{workgroups: 1, active: r.count("active_cus"), timesteps: 1, split: r.count("split")})
		e.compute(n)
		compared, values := 0, make([]float64, len(terms.Terms))
		e.columns(values, n, rejected)
		for i, term := range terms.Terms {
			if _, ok := r.cells[term.Name]; ok {
				compared++
				r.want(term.Name, values[i])
			}
		}
		must.That(t, compared == 26, "compared %d columns", compared)
	})
}

// TestGoldenGrid compares the number of workgroups of every grid mode.
func TestGoldenGrid(t *testing.T) {
	opened := opener{}
	each(t, "amd_grid_units.csv.gz", func(r record) {
		a := opened.open(t, r.text("arch"))
		mode := dataParallel
		for i, name := range gridModes {
			if name == r.text("algo") {
				mode = gridMode(i)
			}
		}
		in := gridInput{
			cus:   a.cus,
			tiles: cdiv(r.count("M"), r.count("MT_M")) * cdiv(r.count("N"), r.count("MT_N")) * r.count("batch"),
			steps: cdiv(r.count("K"), r.count("MT_K")),
		}
		l := newLaunch(in.workgroups(mode), in.tiles, a.cus)
		r.want("num_wgs", f(l.workgroups))
		r.want("active_cus", f(l.active))
		r.want("timesteps", f(l.timesteps))
		r.want("split", f(l.split))
	})
}

// TestGoldenMapping compares both workgroup mappings.
func TestGoldenMapping(t *testing.T) {
	opened := opener{}
	each(t, "amd_wgm_units.csv.gz", func(r record) {
		a := opened.open(t, r.text("arch"))
		in := mappingInput{
			cus: a.cus, xcds: a.xcds,
			m: r.count("M"), n: r.count("N"), batch: r.count("batch"),
			bm: r.count("MT_M"), bn: r.count("MT_N"),
			workgroups: r.count("grid"),
		}
		jan := must.Get(in.jan(context.Background()))(t)
		r.want("jan_xcc", f(jan.xcc))
		r.want("jan_wgm", f(jan.wgm))
		feb := must.Get(in.feb(context.Background()))(t)
		r.want("feb_chunk", f(feb.chunk))
		r.want("feb_xcc", f(feb.xcc))
		r.want("feb_wgm", f(feb.wgm))
	})
}
