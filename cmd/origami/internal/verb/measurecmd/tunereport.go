package measurecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/tune"
	"github.com/origami-gemm/origami/core/unit"
)

// tuned is a size in JSON.
type tuned struct {
	Problem gemm.Record  `json:"problem"`          // the size
	Sets    []string     `json:"sets"`             // the names of the sets that have the size
	Pick    *gemm.Config `json:"pick"`             // the pick
	Config  string       `json:"config,omitempty"` // the text of the pick
	// the pick's measured time and its rate; missing if it was not measured
	Seconds float64 `json:"seconds,omitempty"`
	TFLOPS  float64 `json:"tflops,omitempty"`
	// the pick's predicted time; missing for a model that only ranks
	Predicted float64      `json:"predicted_seconds,omitempty"`
	Model     *gemm.Config `json:"model_pick"` // the best prediction
	Measured  int          `json:"measured"`   // the measurements of the size, and what brute force takes
	Usable    int          `json:"candidates"`
	Expected  ask.Number   `json:"expected_regret" unit:"fraction"` // by what is known; `null` with `--strategy steps`
	// time of the pick ÷ time of the fastest − 1, if all candidates are recorded
	Known *float64    `json:"known_regret,omitempty" unit:"fraction"`
	Why   tune.Reason `json:"why"` // how the size ended: `regret`, `all`, `budget`, `steps`, `no_kernel`
	// the configurations that are as fast, as far as is known
	Tied  []tied `json:"tied"`
	Steps []step `json:"steps"` // its measurements in order
}

// step is a measurement in JSON.
type step struct {
	Config  string  `json:"config"`            // the configuration
	Seconds float64 `json:"seconds,omitempty"` // the measured time; missing if there is none
	Chance  float64 `json:"chance"`            // how likely it seemed to be the fastest
	Gain    float64 `json:"gain"`              // the expected speed-up over the fastest that was measured
}

// summary is what came out for all sizes, in JSON.
type summary struct {
	Arch         string          `json:"arch"` // as in `select`
	Device       string          `json:"device"`
	Model        string          `json:"model"`
	ModelClass   arch.ModelClass `json:"model_class,omitempty"`
	Kernel       string          `json:"kernel"`
	Strategy     string          `json:"strategy"`               // how it was tuned
	Regret       float64         `json:"regret" unit:"fraction"` // the limit
	Sizes        int             `json:"sizes"`                  // how many there are
	Measurements int             `json:"measurements"`           // of all sizes
	Fresh        int             `json:"fresh_measurements"`     // new in this run, and how long they took
	FreshSeconds float64         `json:"fresh_seconds"`
	Tied         int             `json:"tied"`                            // how many sizes have a pick that is tied
	BruteForce   int             `json:"brute_force_measurements"`        // how many measuring everything takes
	Kernels      int             `json:"kernels"`                         // how many different picks there are
	Expected     ask.Number      `json:"expected_regret" unit:"fraction"` // the mean by what is known
	// the mean and the worst, if all candidates are recorded
	Known      *float64 `json:"known_regret,omitempty" unit:"fraction"`
	KnownWorst *float64 `json:"known_regret_worst,omitempty" unit:"fraction"`
	Unfinished int      `json:"unfinished"` // how many sizes stopped before the limit
}

// report writes the outcome.
func (s *tuning) report(ctx context.Context, t *tune.Tuner) error {
	rows, sum := s.rows(t), summary{}
	s.summarise(t, rows, &sum)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.keepOutcome(rows, &sum); err != nil {
		return err
	}
	if err := s.writeLogics(t); err != nil {
		return err
	}
	streams, format := s.o.Factory.Streams, s.o.Factory.Format()
	if format == show.Table {
		s.heading(&sum)
		streams.Printf("\n")
	}
	if err := s.write(format, rows); err != nil || format != show.JSON {
		return err
	}
	return show.JSONLine(streams, map[string]*summary{"summary": &sum})
}

// keepOutcome writes the outcome beside the measurements that it comes from. A folder with all candidates has none.
func (s *tuning) keepOutcome(rows []tuned, sum *summary) error {
	if s.recording == nil {
		return nil
	}
	if s.o.Strategy == all {
		err := os.Remove(filepath.Join(s.recording.folder, datastore.TuneFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return diag.Inputf("it cannot be removed: %v", err).At("%s", s.recording.folder)
		}
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"tune": 1, "file": s.o.name(), "summary": sum,
		"sizes": rows}, "", " ")
	if err != nil {
		return err
	}
	return s.writeOutcome(append(text, '\n'))
}

// rows returns a row per size.
func (s *tuning) rows(t *tune.Tuner) []tuned {
	rows := make([]tuned, len(t.Sizes))
	for i := range t.Sizes {
		size, p := &t.Sizes[i], &t.Picks[i]
		r := &rows[i]
		*r = tuned{Problem: size.Problem.Record(), Sets: size.Sets, Measured: p.Measured,
			Usable: size.Usable, Expected: ask.Number(p.Expected), Why: p.Why, Tied: []tied{}, Steps: []step{},
			Model: &size.Candidates[0].Config}
		if p.Candidate < 0 {
			continue
		}
		c := &size.Candidates[p.Candidate]
		r.Pick, r.Config = &c.Config, c.Config.String()
		if !s.arch.Describe().RanksOnly {
			r.Predicted = float64(c.Predicted)
		}
		r.Tied = s.ties(t, i)
		if r.Seconds = float64(p.Time); p.Time > 0 {
			r.TFLOPS = size.Problem.Flops() / r.Seconds / 1e12
		}
		if !s.known {
			continue
		}
		time := p.Time
		if time == 0 {
			time = s.time(t, tune.Task{Size: i, Candidate: p.Candidate})
		}
		if time > 0 {
			known := float64(time/s.best[i]) - 1
			r.Known = &known
		}
	}
	for _, m := range t.Log {
		rows[m.Size].Steps = append(rows[m.Size].Steps, step{t.Sizes[m.Size].Candidates[m.Candidate].Config.String(),
			float64(m.Time), m.Chance, m.Gain})
	}
	return rows
}

// summarise computes the figures of all sizes.
func (s *tuning) summarise(t *tune.Tuner, rows []tuned, sum *summary) {
	d := s.arch.Describe()
	*sum = summary{Arch: d.Arch, Device: d.Device, Model: d.Model, ModelClass: d.ModelClass, Kernel: s.kernel,
		Strategy: s.o.Strategy,
		Regret:   s.o.regret, Sizes: len(rows), Measurements: len(t.Log), Fresh: s.fresh,
		BruteForce: s.plan.BruteForce()}
	if s.fresh > 0 {
		sum.FreshSeconds = s.took.Seconds()
	}
	kernels := map[gemm.Config]bool{}
	var expected, known []float64
	for i := range rows {
		r := &rows[i]
		if r.Why == tune.Budget || r.Why == tune.Failing {
			sum.Unfinished++
		}
		if len(r.Tied) > 0 {
			sum.Tied++
		}
		if r.Seconds > 0 {
			kernels[*r.Pick] = true
		}
		if v := float64(r.Expected); !math.IsNaN(v) {
			expected = append(expected, v)
		}
		if r.Known != nil {
			known = append(known, *r.Known)
		}
	}
	sum.Kernels, sum.Expected = len(kernels), ask.Number(geomean(expected))
	if len(known) == 0 {
		return
	}
	mean, worst := geomean(known), 0.0
	for _, v := range known {
		worst = max(worst, v)
	}
	sum.Known, sum.KnownWorst = &mean, &worst
}

// heading prints the summary as text.
func (s *tuning) heading(sum *summary) {
	streams, d, key := s.o.Factory.Streams, s.arch.Describe(), show.Key[summary]
	show.Lines(streams, show.DeviceLines(d)...)
	show.Lines(streams, show.ModelLine(d, s.kernel))
	show.Facts(streams, sum, key("sizes"), key("measurements", "measured"),
		key("brute_force_measurements", "brute force"), key("fresh_measurements", "new"),
		show.Text("took", func(s *summary) string { return rounded(s.FreshSeconds) }).If(sum.Fresh > 0),
		show.Text("times", func(*summary) string { return s.data.Name }).If(s.recording == nil),
		key("tied"), key("kernels"), key("regret", "limit").If(s.o.Strategy == byModel),
		key("expected_regret", "expected"), key("known_regret", "known"), key("known_regret_worst", "worst"),
		key("unfinished"))
}

func rounded(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d > time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// write writes the sizes.
func (s *tuning) write(format show.Format, rows []tuned) error {
	key := show.Key[tuned]
	return show.Write(s.o.Factory.Streams, format, rows, key("problem"), key("config", "pick"),
		show.Number("time", func(r *tuned) float64 { return r.Seconds }, seconds),
		show.Number("TFLOP/s", func(r *tuned) float64 { return math.Round(r.TFLOPS*100) / 100 }, digits.SixDigits),
		show.Number("predicted", func(r *tuned) float64 { return r.Predicted }, seconds), key("measured"), key("candidates"),
		key("expected_regret", "expected regret"), key("known_regret", "known regret").If(s.known), key("why"),
		show.Text("tied with", func(r *tuned) string { return tieCell(r.Tied) }))
}

func seconds(v float64) string { return unit.Seconds(v).String() }

// tied is a configuration that is as fast as a pick, as far as is known, in JSON.
type tied struct {
	Config  string  `json:"config"`  // the configuration
	Seconds float64 `json:"seconds"` // its measured time
	// by what share the two times may differ by chance
	Noise ask.Number `json:"noise"`
}

// ties lists what is tied with the pick of a size, by times that were measured one after the other.
func (s *tuning) ties(t *tune.Tuner, i int) []tied {
	out := []tied{}
	if t.Picks[i].Time == 0 {
		return out
	}
	at := func(task tune.Task) dataset.Measurement {
		m, _ := s.recordedAt(t, task)
		m.Config = t.Sizes[i].Candidates[task.Candidate].Config // in the launch order of the candidate
		return m
	}
	pick := at(tune.Task{Size: i, Candidate: t.Picks[i].Candidate})
	var others []dataset.Measurement
	for _, m := range t.Log {
		if m.Size == i && m.Time > 0 {
			others = append(others, at(m.Task))
		}
	}
	for _, m := range measure.Ties(&pick, others) {
		out = append(out, tied{m.Config.String(), float64(m.Median), ask.Number(m.Noise)})
	}
	return out
}

// tieCell says what a pick is tied with, for people.
func tieCell(list []tied) string {
	if len(list) == 0 {
		return ""
	}
	noise := list[0].Noise
	for _, x := range list {
		noise = max(noise, x.Noise)
	}
	more := ""
	if len(list) > 1 {
		more = fmt.Sprintf(" and %d more", len(list)-1)
	}
	return fmt.Sprintf("%s%s within the noise of %s", list[0].Config, more, digits.Percent(float64(noise)))
}
