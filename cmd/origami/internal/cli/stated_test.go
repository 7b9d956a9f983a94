package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The times of the kernels of the toy and of its vendor's library, whatever the problem.
const (
	fixedSeconds   = 1e-3
	librarySeconds = 0.98e-3
)

// fixed is the toy with fixed times, a library, and constants that it states.
type fixed struct {
	fakearch.Toy
	constants []arch.Constant
}

func (f fixed) Manifest() arch.Manifest {
	m := f.Toy.Manifest()
	for i := range m.Archs {
		m.Archs[i].Kernels = []string{"plain", "library"}
	}
	return m
}

func (f fixed) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := f.Toy.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	d, seconds := *a.Describe(), fixedSeconds
	d.Kernels = []string{"plain"}
	if r.Kernel == "library" {
		d.Kernels, seconds = []string{"library"}, librarySeconds
	}
	d.Families, d.Timing, d.Constants = nil, string(timing.Events), slices.Concat(d.Constants, f.constants)
	return &fixedArch{a, &d, unit.Cycles(seconds * float64(d.Clock))}, nil
}

type fixedArch struct {
	arch.Architecture
	description *arch.Description
	cycles      unit.Cycles
}

func (f *fixedArch) Describe() *arch.Description { return f.description }

func (f *fixedArch) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, _ []gemm.Config) error {
	for i := range dst {
		dst[i] = arch.Estimate{Cycles: f.cycles, Bound: arch.BoundCompute}
	}
	return nil
}

func (f *fixedArch) Terms(_ context.Context, dst []float64, _ gemm.Problem, _ []gemm.Config) error {
	for i := range dst {
		dst[i] = float64(f.cycles)
	}
	return nil
}

// answersOf runs a command over the fixed toy and returns its JSON, a value for each line.
func answersOf(t *testing.T, constants []arch.Constant, line string) (all []any) {
	t.Helper()
	var out, log bytes.Buffer
	code := cli.Main(cli.System{
		Args:    append([]string{"--json"}, strings.Fields(line)...),
		Streams: iostreams.Plain(strings.NewReader(""), &out, &log),
		Getenv:  func(string) string { return "" },
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
			return session.InProcess{Providers: models.Providers{fixed{constants: constants}}}, nil
		},
	})
	must.Need(t, code == 0, "%s: exit code %d: %s", line, code, log.String())
	for lines := json.NewDecoder(&out); ; {
		var v any
		if err := lines.Decode(&v); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v in %s", line, err, out.String())
		}
		all = append(all, v)
	}
}

// times lists the numbers of an answer that are seconds of a prediction.
func times(v any) (found []float64) {
	switch v := v.(type) {
	case map[string]any:
		for key, of := range v {
			seconds, is := of.(float64)
			if is && (key == "seconds" || strings.HasPrefix(key, "seconds_") || strings.HasSuffix(key, "_seconds")) {
				found = append(found, seconds)
			}
			found = append(found, times(of)...)
		}
	case []any:
		for _, of := range v {
			found = append(found, times(of)...)
		}
	}
	return found
}

const toyProduct = "-m 256 -n 256 -k 256"

// A plugin of a made-up vendor that states nothing is taken at its word: whatever is asked, the times are its own.
func TestTimesAreThePlugins(t *testing.T) {
	lines := []string{
		"select " + toyProduct, "rank " + toyProduct, "explain " + toyProduct, "select --advice " + toyProduct,
		"roofline " + toyProduct, "select -m 1:8192 -n 256 -k 256", "select --contract ik,kj->ij --size i=256,j=256,k=256",
		"select --beta 2 " + toyProduct, "--arch toy1@small,toy1@big compare " + toyProduct,
		"compare --arch toy1@small,toy1@big --epilogue bias+gelu " + toyProduct, "select -m 64,2048 -n 256 -k 256",
	}
	for _, e := range []string{"scales+bias+gelu+residual", "silu_gated", "relu"} {
		lines = append(lines, "select --epilogue "+e+" "+toyProduct, "explain --epilogue "+e+" "+toyProduct,
			"select --kernel library --epilogue "+e+" "+toyProduct, "rank --epilogue "+e+" "+toyProduct)
	}
	for _, of := range timing.Names() {
		lines = append(lines, "select --timing "+of+" "+toyProduct, "explain --timing "+of+" "+toyProduct)
	}
	for _, line := range lines {
		if !strings.Contains(line, "--arch") {
			line = "--arch toy1@small " + line
		}
		got := times(answersOf(t, nil, line))
		must.That(t, len(got) != 0, "%s: no time", line)
		for _, seconds := range got {
			must.That(t, math.Abs(seconds/fixedSeconds-1) <= 1e-12 || math.Abs(seconds/librarySeconds-1) <= 1e-12,
				"%s: %v s", line, seconds)
		}
	}
}

// What a plugin states of its device enters its times, and nothing else does.
func TestConstantsAreThePlugins(t *testing.T) {
	state := func(name string, value float64) arch.Constant {
		return arch.Constant{Name: name, Value: value, Unit: "1", Doc: "stated", Source: "Acme's brochure"}
	}
	first := func(line string, constants ...arch.Constant) map[string]any {
		t.Helper()
		return answersOf(t, constants, "--arch toy1@small "+line)[0].(map[string]any)
	}
	seconds := func(answer map[string]any) float64 { return answer["predicted"].(map[string]any)["seconds"].(float64) }
	check := func(what string, got, want float64) {
		t.Helper()
		must.That(t, math.Abs(got/want-1) <= 1e-9, "%s: %v, want %v", what, got, want)
	}
	launch, call := state("timing_launch", 1e-4), state("timing_call", 5e-5)
	for of, want := range map[string]float64{"events": 1e-3, "model": 0.9e-3, "host": 1.05e-3} {
		check(of, seconds(first("select --timing "+of+" "+toyProduct, launch, call)), want)
	}

	// 256·256 elements in tiles of the pick, on 8 units of 1 GHz, at 1/2 a cycle each.
	answer := first("select --epilogue bias "+toyProduct, state("besides_bias", 0.5))
	config := answer["config"].(map[string]any)
	tile := config["block_m"].(float64) * config["block_n"].(float64)
	check("bias", seconds(answer), 1e-3+math.Ceil(256*256/tile/8)*tile*0.5*1e-9)

	const bands = "select -m 1:4096 -n 256 -k 256"
	for margin, want := range map[float64]string{1: "library", 1.1: "plain"} {
		list := first(bands, state("bands_margin", margin))["bands"].([]any)
		if kernel := list[0].(map[string]any)["kernel"]; len(list) != 1 || kernel != want {
			t.Errorf("a margin of %v: %d bands of %v, want %s", margin, len(list), kernel, want)
		}
	}

	const copied = "select --contract akbl,klc->abc --size a=32,b=8,c=64,k=16,l=16"
	contraction := func(constants ...arch.Constant) float64 {
		return first(copied, constants...)["contraction"].(map[string]any)["seconds"].(float64)
	}
	copies := contraction(state("contract_launch", 1e-3)) - contraction()
	n := math.Round(copies / 1e-3)
	must.That(t, n >= 1 && math.Abs(copies-n*1e-3) <= 1e-12, "copies take %v s", copies)

	shown := false
	for _, c := range first("explain "+toyProduct, launch, state("bands_margin", 1))["constants"].([]any) {
		switch c := c.(map[string]any); c["name"] {
		case "timing_launch":
			shown = c["source"] == "Acme's brochure"
		case "bands_margin":
			t.Error("explain shows a margin, which is no part of a time")
		}
	}
	must.That(t, shown, "explain does not show where the constant of the timing is from")
}
