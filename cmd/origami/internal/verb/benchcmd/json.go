package benchcmd

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// object is a line of `bench --json`.
type object struct {
	Arch     string       `json:"arch"`
	Device   string       `json:"device"`
	Model    string       `json:"model"`
	Kernel   string       `json:"kernel"`
	Ranks    bool         `json:"ranks_only,omitempty"`
	Problem  gemm.Record  `json:"problem"`
	Labels   table.Fields `json:"labels,omitempty"`
	Pick     gemm.Config  `json:"pick"`
	Best     gemm.Config  `json:"best"`
	Library  string       `json:"library,omitempty"`
	Times    times        `json:"milliseconds"`
	TFLOPS   times        `json:"tflops"`
	Eff      float64      `json:"efficiency"`
	Versus   *float64     `json:"versus_library,omitempty"`
	Tau      table.Number `json:"tau"`
	PickRank int          `json:"pick_rank"`
	Passed   int          `json:"passed_over"`
	Measured int          `json:"measured"`
	Total    int          `json:"candidates"`
	Regs     int          `json:"registers"`
	Spill    float64      `json:"spill_bytes"`

	Phase      dataset.Phase `json:"phase"`
	Noise      table.Number  `json:"noise_floor"`
	BestRank   int           `json:"best_rank"`
	Wrong      int           `json:"wrong"`
	NotBuilt   int           `json:"not_built"`
	Failed     int           `json:"failed"`
	Missing    int           `json:"missing"`
	ClockMoved int           `json:"clock_moved"`
	Libraries  []library     `json:"libraries,omitempty"`
	Excluded   []excluded    `json:"excluded,omitempty"`
}

// library is a vendor's library on one problem; its numbers are missing where it was not measured.
type library struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"milliseconds,omitempty"`
	TFLOPS       float64 `json:"tflops,omitempty"`
	Versus       float64 `json:"versus,omitempty"`
}

// excluded is a configuration, or a library, that has no time that counts.
type excluded struct {
	Config  *gemm.Config   `json:"config,omitempty"`
	Library string         `json:"library,omitempty"`
	Status  dataset.Status `json:"status"`
	Detail  string         `json:"detail,omitempty"`
}

type times struct {
	Predicted float64 `json:"predicted"`
	Pick      float64 `json:"pick"`
	Best      float64 `json:"best"`
	Library   float64 `json:"library,omitempty"`
}

func (w *writer) object(r *labelled) object {
	o := object{
		Arch: w.arch.Arch, Device: w.arch.Device, Model: w.arch.Model, Kernel: w.data.Kernel,
		Ranks: w.arch.RanksOnly, Problem: r.Problem.Record(), Labels: table.Labels(w.labels, r.labels), Pick: r.Pick.Config,
		Best: r.Best.Config,
		Eff:  r.Efficiency(), Tau: table.Number(r.Tau), PickRank: r.PickRank, Passed: r.PassedOver,
		Measured: r.Measured,
		Total:    r.Candidates,
		Regs:     r.Pick.Resources.Registers, Spill: float64(r.Pick.Resources.SpillBytes),
		Phase: r.Phase, Noise: table.Number(r.Noise), BestRank: r.BestRank, Wrong: r.Wrong, NotBuilt: r.NotBuilt,
		Failed:  r.Failed,
		Missing: r.Missing, ClockMoved: r.ClockMoved,
	}
	for i, name := range w.data.Libraries() {
		t := r.Libraries[i]
		o.Libraries = append(o.Libraries, library{name, float64(t) * 1e3, float64(r.Rate(t)) / 1e12,
			r.VersusLibrary(i)})
	}
	first := unit.Seconds(0)
	if len(o.Libraries) > 0 {
		o.Library, first = o.Libraries[0].Name, r.Libraries[0]
		if v := o.Libraries[0].Versus; first > 0 {
			o.Versus = &v
		}
	}
	for _, e := range r.Excluded {
		failed := excluded{Status: e.Status, Detail: e.Detail}
		if failed.Library = e.Library; failed.Library == "" {
			c := e.Config
			failed.Config = &c
		}
		o.Excluded = append(o.Excluded, failed)
	}
	for _, t := range []struct {
		time         unit.Seconds
		milliseconds *float64
		tflops       *float64
	}{
		{r.Predicted, &o.Times.Predicted, &o.TFLOPS.Predicted}, {r.Pick.Time, &o.Times.Pick, &o.TFLOPS.Pick},
		{r.Best.Time, &o.Times.Best, &o.TFLOPS.Best}, {first, &o.Times.Library, &o.TFLOPS.Library},
	} {
		*t.milliseconds, *t.tflops = float64(t.time)*1e3, float64(r.Rate(t.time))/1e12
	}
	return o
}

func (w *writer) summary() any {
	s := w.summarised()
	spread := func(s stats.Quantiles) map[string]any {
		return map[string]any{"count": s.Count, "median": s.Median, "geomean": s.Geomean, "p10": s.P10,
			"worst": s.Worst}
	}
	first, libraries := stats.Quantiles{}, map[string]any{}
	for i, l := range s.Libraries {
		if i == 0 {
			first = l
		}
		libraries[w.data.Libraries()[i]] = spread(l)
	}
	return map[string]any{
		"kernel": w.data.Kernel, "problems": s.Problems, "passed_over": s.PassedOver, "efficiency": spread(s.Efficiency),
		"versus_library": spread(first),
		"tau_mean":       table.Number(s.TauMean), "tau_worst": table.Number(s.TauWorst),
		"libraries": libraries, "noise_floor": table.Number(s.Noise), "measured": s.Measured, "wrong": s.Wrong,
		"not_built": s.NotBuilt,
		"failed":    s.Failed, "missing": s.Missing, "unfinished": s.Unfinished, "clock_moved": s.ClockMoved,
		"finals": s.Finals,
	}
}
