package measurecmd

import (
	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// compared is a problem with the model's pick, the best candidate and the vendor's libraries.
type compared struct {
	Arch   string          `json:"arch"` // as in `select`
	Device string          `json:"device"`
	Model  string          `json:"model"`
	Class  arch.ModelClass `json:"model_class,omitempty"`
	Kernel string          `json:"kernel"`
	// as in `select`: the `predicted` numbers are then no time and no rate
	Ranks   bool        `json:"ranks_only,omitempty"`
	Problem gemm.Record `json:"problem"` // as in `select`
	Labels  ask.Fields  `json:"labels,omitempty"`
	// the first ranked candidate with a time, at the launch-order group of the measurements
	Pick gemm.Config `json:"pick"`
	// the fastest of the measured candidates
	Best gemm.Config `json:"best"`
	// the vendor's default library
	Library      string  `json:"library,omitempty"`
	Milliseconds figures `json:"milliseconds"` // the times, and the rates
	TFLOPS       figures `json:"tflops"`
	// best time ÷ time of the pick
	Efficiency float64 `json:"efficiency" unit:"fraction"`
	// the library's time ÷ time of the pick
	Versus *float64 `json:"versus_library,omitempty"`
	// Kendall's tau-b of predicted against measured times
	Tau ask.Number `json:"tau"`
	// rank of the pick by the times of the sweep
	PickRank int `json:"pick_rank"`
	// the candidates before the pick without a valid time
	PassedOver int `json:"passed_over"`
	Measured   int `json:"measured"` // the candidates with a time, and all of them
	Candidates int `json:"candidates"`
	// of the kernel of the pick, per thread
	Registers int `json:"registers"`
	Spills    int `json:"spill_bytes"`
	// `final` if these times are from runs in turns, else `sweep`
	Phase dataset.Phase `json:"phase"`
	// larger ÷ smaller of two measurements of the pick − 1
	Noise ask.Number `json:"noise_floor" unit:"fraction"`
	// rank of the best by predicted time
	BestRank int `json:"best_rank"`
	// candidates without a valid time; `wrong` and `failed` include libraries, `failed` time-outs
	Wrong    int `json:"wrong"`
	NotBuilt int `json:"not_built"`
	Failed   int `json:"failed"`
	Missing  int `json:"missing"`
	// measurements during which the clock moved by more than 2 %
	ClockMoved int `json:"clock_moved"`
	// every library of the data set, the default first
	Libraries []library `json:"libraries,omitempty"`
	// the wrong and the failed candidates
	Excluded []excluded `json:"excluded,omitempty"`
}

// figures are a number for each kernel.
type figures struct {
	Predicted float64 `json:"predicted"` // of the pick
	Pick      float64 `json:"pick"`      // as measured
	Best      float64 `json:"best"`
	Library   float64 `json:"library,omitempty"` // if it was measured
}

// library is a vendor's library on one problem. Its numbers are missing where it was not measured.
type library struct {
	Name         string  `json:"name"`                   // its name
	Milliseconds float64 `json:"milliseconds,omitempty"` // its time and its rate
	TFLOPS       float64 `json:"tflops,omitempty"`
	Versus       float64 `json:"versus,omitempty"` // its time ÷ time of the pick
}

// excluded is a configuration, or a library, that has no time that counts.
type excluded struct {
	Config  *gemm.Config   `json:"config,omitempty"` // the one or the other
	Library string         `json:"library,omitempty"`
	Status  dataset.Status `json:"status"` // what became of it
	Detail  string         `json:"detail,omitempty"`
}

func (w *writer) compared(r *score.Comparison, labels []string) compared {
	milliseconds := func(t unit.Seconds) float64 { return float64(t) * 1e3 }
	tflops := func(t unit.Seconds) float64 { return r.Problem.Flops() / float64(t) / 1e12 }
	c := compared{Arch: w.arch.Arch, Device: w.arch.Device, Model: w.arch.Model, Class: w.arch.ModelClass,
		Kernel: w.data.Kernel, Ranks: w.arch.RanksOnly, Problem: r.Problem.Record(), Labels: ask.Labels(w.labels, labels),
		Pick: r.Pick.Config, Best: r.Best.Config,
		Milliseconds: figures{milliseconds(r.Pick.Predicted), milliseconds(r.Pick.Measured),
			milliseconds(r.Best.Measured), 0},
		TFLOPS:     figures{tflops(r.Pick.Predicted), tflops(r.Pick.Measured), tflops(r.Best.Measured), 0},
		Efficiency: r.Efficiency(), Tau: ask.Number(r.Tau), PickRank: r.PickRank, PassedOver: r.PassedOver,
		Measured: r.Measured, Candidates: r.Candidates, Registers: r.Pick.Resources.Registers,
		Spills: int(r.Pick.Resources.SpillBytes), Phase: r.Phase, Noise: ask.Number(r.Noise), BestRank: r.BestRank,
		Wrong: r.Wrong, NotBuilt: r.NotBuilt, Failed: r.Failed, Missing: r.Missing, ClockMoved: r.ClockMoved}
	for i, name := range w.data.Libraries() {
		l := library{Name: name}
		if t := r.Libraries[i]; t > 0 {
			l = library{name, milliseconds(t), tflops(t), r.VersusLibrary(i)}
		}
		if c.Libraries = append(c.Libraries, l); i > 0 {
			continue
		}
		if c.Library = name; l.Milliseconds > 0 {
			c.Milliseconds.Library, c.TFLOPS.Library, c.Versus = l.Milliseconds, l.TFLOPS, &l.Versus
		}
	}
	for i := range r.Excluded {
		e := excluded{Library: r.Excluded[i].Library, Status: r.Excluded[i].Status, Detail: r.Excluded[i].Detail}
		if e.Library == "" {
			e.Config = &r.Excluded[i].Config
		}
		c.Excluded = append(c.Excluded, e)
	}
	return c
}
