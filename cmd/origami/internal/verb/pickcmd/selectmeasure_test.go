package pickcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// doubter is the toy, with a model that states its uncertainty.
type doubter struct {
	fakearch.Toy
	spread float64
}

func (d doubter) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := d.Toy.Open(ctx, r)
	if err != nil || d.spread == 0 {
		return a, err
	}
	described := *a.Describe()
	described.Uncertainty = []arch.Uncertainty{{Kernel: "plain", Level: 0.9, Sigma: d.spread, PlanSigma: d.spread,
		Ranges: []arch.ErrorRange{{Low: 0.5, High: 2}}}}
	p := gemm.New(256, 256, 256)
	described.Uncertainty[0].Checked.Add(&p, 1)
	return doubting{a, &described}, nil
}

type doubting struct {
	arch.Architecture
	description *arch.Description
}

func (d doubting) Describe() *arch.Description { return d.description }

// machine is a host with a GPU.
type machine struct {
	session.InProcess
	x *exectest.Executor
}

func (m machine) Executor(context.Context, string) (exec.Executor, error) { return m.x, nil }

// answers runs a command line over 256x256x256 and returns what it writes.
func answers(t *testing.T, spread float64, x *exectest.Executor, format string, set func(*SelectOptions),
) (string, error) {
	t.Helper()
	var out bytes.Buffer
	x.Device = exec.Device{Name: "Acme Small", Arch: "toy1", Kernels: []string{"plain"}}
	o := &SelectOptions{Factory: &session.Factory{
		Streams: iostreams.Plain(strings.NewReader(""), &out, &out),
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
			return machine{session.InProcess{Providers: models.Providers{doubter{spread: spread}}}, x}, nil
		},
		Settings: config.Settings{Arch: []string{"toy1"}, DType: "fp16", Format: format},
	}}
	must.Do(t, question.Decode([]byte(`{"m":256,"n":256,"k":256}`), &o.Query.Product))
	set(o)
	err := o.answer(t.Context())
	must.Do(t, o.Factory.Streams.Flush())
	return out.String(), err
}

// reply is the part of select's JSON that is about measuring.
type reply struct {
	Raw       map[string]any `json:"config"`
	Predicted struct {
		Interval []float64 `json:"interval_seconds"`
		Level    float64   `json:"interval_level"`
		Seconds  float64   `json:"seconds"`
	} `json:"predicted"`
	Loss     *float64 `json:"expected_regret"`
	Worth    int      `json:"worth_measuring"`
	Measured *struct {
		Auto       bool    `json:"auto"`
		Noise      float64 `json:"noise_floor"`
		Candidates []struct {
			Config map[string]any `json:"config"`
			Median *float64       `json:"median_seconds"`
			Status string         `json:"status"`
			Chosen bool           `json:"chosen"`
		} `json:"candidates"`
	} `json:"measured"`
}

func askOne(t *testing.T, spread float64, x *exectest.Executor, set func(*SelectOptions)) reply {
	t.Helper()
	out := must.Get(answers(t, spread, x, "json", set))(t)
	var r reply
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err, out)
	}
	return r
}

func TestDoubtWithoutMeasuring(t *testing.T) {
	withRegret := func(o *SelectOptions) { o.Regret = true }
	r := askOne(t, 0.1, &exectest.Executor{}, withRegret)
	if r.Loss == nil || *r.Loss <= 0 || r.Worth < 2 || r.Measured != nil {
		t.Errorf("%+v", r)
	}
	// At the toy's peak the problem takes 4.096 µs.
	if i := r.Predicted.Interval; len(i) != 2 || i[0] != 4.096e-6 || i[1] != r.Predicted.Seconds*2 ||
		r.Predicted.Level != 0.9 {
		t.Errorf("%+v", r.Predicted)
	}
	// It takes longer than the selection, so it has to be asked for.
	if r := askOne(t, 0.1, &exectest.Executor{}, func(*SelectOptions) {}); r.Loss != nil || r.Worth != 0 {
		t.Errorf("%+v", r)
	}
	// A model that states no uncertainty gets none.
	if r := askOne(t, 0, &exectest.Executor{}, withRegret); r.Loss != nil || r.Worth != 0 ||
		r.Predicted.Interval != nil {
		t.Errorf("%+v", r)
	}
}

// The answer is the candidate with the shortest measured time.
func TestMeasure(t *testing.T) {
	auto := func(o *SelectOptions) { o.Measure = "auto" }
	pick := askOne(t, 0.1, &exectest.Executor{}, func(*SelectOptions) {}).Raw
	slowPick := func(_ gemm.Problem, c gemm.Config) unit.Seconds {
		if c.BlockM == 64 && c.BlockN == 64 {
			return 2e-3 // as the model's pick is
		}
		return unit.Seconds(1e-3) + unit.Seconds(c.BlockK)*1e-6
	}
	x := &exectest.Executor{Noise: 0.01, Time: slowPick}
	r := askOne(t, 0.1, x, auto)
	if !r.Measured.Auto || len(r.Measured.Candidates) != r.Worth || r.Measured.Noise <= 0 || r.Measured.Noise > 0.02 {
		t.Fatalf("%+v", r)
	}
	best, chosen := 0, -1
	for i, c := range r.Measured.Candidates {
		if *c.Median < *r.Measured.Candidates[best].Median {
			best = i
		}
		if c.Chosen {
			chosen = i
		}
	}
	if chosen < 1 || chosen != best || !equal(r.Raw, r.Measured.Candidates[chosen].Config) ||
		!equal(r.Measured.Candidates[0].Config, pick) {
		t.Errorf("chose %d, the fastest is %d: %+v", chosen, best, r)
	}
	if held, _ := x.Held(); held != 0 {
		t.Errorf("%d kernels are left open", held)
	}

	// As many as are asked for.
	if r := askOne(t, 0, &exectest.Executor{Noise: 0.01},
		func(o *SelectOptions) { o.Measure = "3" }); len(r.Measured.Candidates) != 3 || r.Measured.Auto {
		t.Errorf("%+v", r)
	}
	// No difference that a measurement could show.
	if r := askOne(t, 1e-9, &exectest.Executor{}, auto); r.Measured == nil || len(r.Measured.Candidates) != 0 ||
		r.Worth != 1 || !equal(r.Raw, pick) {
		t.Errorf("%+v", r)
	}
	// A pick with a wrong result, or one that kills the process, is not the answer.
	for _, fate := range []exectest.Fate{exectest.Wrong, exectest.Crash, exectest.NotBuilt} {
		broken := &exectest.Executor{Noise: 0.01, Fate: func(_ gemm.Problem, c gemm.Config) exectest.Fate {
			if c.BlockM == 64 && c.BlockN == 64 {
				return fate
			}
			return exectest.Fine
		}}
		if r := askOne(t, 0.3, broken, auto); r.Measured.Candidates[0].Median != nil ||
			r.Measured.Candidates[0].Status == "ok" || equal(r.Raw, pick) {
			t.Errorf("fate %d: %+v", fate, r)
		}
	}
}

func equal(a, b map[string]any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func TestMeasureMistakes(t *testing.T) {
	for _, tc := range []struct {
		spread float64
		set    func(*SelectOptions)
		want   string
	}{
		{0.1, func(o *SelectOptions) { o.Measure = "many" }, `--measure: "many" is neither auto nor a whole number`},
		{0.1, func(o *SelectOptions) { o.Measure = "0" }, `--measure: "0" is neither`},
		{0.1, func(o *SelectOptions) { o.Executor = "cuda" }, "--executor: nothing is to be measured; add --measure auto"},
		{0, func(o *SelectOptions) { o.Measure = "auto" },
			"--measure auto: the refined model of toy1@small does not say how far"},
	} {
		_, err := answers(t, tc.spread, &exectest.Executor{}, "json", tc.set)
		if diag.KindOf(err) != diag.Input || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
	dead := &exectest.Executor{Fate: func(gemm.Problem, gemm.Config) exectest.Fate { return exectest.Wrong }}
	_, err := answers(t, 0.1, dead, "json", func(o *SelectOptions) { o.Measure = "2" })
	if diag.KindOf(err) != diag.Input ||
		!strings.HasPrefix(err.Error(), "none of 2 candidates for 256x256x256 fp16 could be measured: largest error") {
		t.Errorf("%v", err)
	}
}

// The card says what was measured and what came of it.
func TestMeasuredCard(t *testing.T) {
	out := must.Get(answers(t, 0.1, &exectest.Executor{Noise: 0.01}, "table", func(o *SelectOptions) {
		o.Measure, o.Regret = "2", true
	}))(t)
	for _, want := range []string{" interval ", "\nunmeasured  expected regret ", "\nmeasured    ", "the choice\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	t.Log(out)
}
