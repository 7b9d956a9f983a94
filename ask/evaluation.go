package ask

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Evaluation is a model scored against measurements. [Evaluating](evaluating.md) defines the numbers.
type Evaluation struct {
	// as in `select`
	Arch       string          `json:"arch"`
	Device     string          `json:"device"`
	Model      string          `json:"model"`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	Kernel     string          `json:"kernel"`
	Rung       arch.Rung       `json:"rung"`
	// what the times are [of](timings.md), measured and predicted
	Timing string `json:"timing,omitempty"`
	// as in `select`: `predicted_ms` is then no time, and `error_median` no error of one
	Ranks bool `json:"ranks_only,omitempty"`
	// the measurements that were scored against
	Records string `json:"records"`
	// the constant group and split of K of the measurements, 0 for none
	GroupM int `json:"group_m"`
	SplitK int `json:"split_k"`
	// the data sets that the model was fitted to
	Fitted []string `json:"fitted"`
	// how many of the problems are [in-sample](evaluating.md#in-sample-scores)
	InSample int `json:"in_sample"`
	// the problems
	Problems []Evaluated `json:"problems"`
	// the recorded problems that were left out, if any
	Partial []gemm.Record `json:"partial,omitempty"`
	// `problems`, `unrecorded_picks`, of these `failed_picks`; `efficiency_…`, `top4_…`, `top8_…`, `top16_…` with
	// `geomean`, `median`, `p10`, `worst`; `tau_mean`, `tau_worst`, `error_median`, `interval_coverage`,
	// `interval_coverage_picks`; with intervals `auto_…` (the fastest of those worth measuring), `auto_measured_mean`
	// (how many), `expected_regret_mean`, `recorded_regret_mean`
	Summary Fields `json:"summary"`
	// the numbers of `summary` by class of shape, for classes with problems
	Classes Fields `json:"classes"`
	// if the measurements vary it: `configurations`, `efficiency_geomean`, `efficiency_p10`, `efficiency_worst` of
	// the model's choice, `constant_geomean`, `constant_worst` of the constant value
	Group *Fields `json:"group,omitempty"`
	Split *Fields `json:"split,omitempty"`
}

// Evaluated is one problem of an evaluation.
type Evaluated struct {
	gemm.Record
	// as in `select`
	Labels Fields `json:"labels,omitempty"`
	// the class of shape
	Class string `json:"class"`
	// the model's pick
	Pick gemm.Config `json:"pick"`
	// its recorded time, `null` without one, and its predicted time
	PickMS      Number  `json:"pick_ms" unit:"ms"`
	PredictedMS float64 `json:"predicted_ms" unit:"ms"`
	// the low and the high end of its time
	IntervalMS *[2]float64 `json:"interval_ms"`
	// the fastest recorded configuration, and its time
	Best   gemm.Config `json:"best"`
	BestMS float64     `json:"best_ms" unit:"ms"`
	// the best time ÷ the time of the pick, or of the fastest of the first 4, 8, 16 candidates: 0 if the pick failed,
	// `null` if none was tried
	Eff   Number `json:"efficiency" unit:"fraction"`
	Top4  Number `json:"efficiency_top4" unit:"fraction"`
	Top8  Number `json:"efficiency_top8" unit:"fraction"`
	Top16 Number `json:"efficiency_top16" unit:"fraction"`
	// how well the orders agree (Kendall's tau-b)
	Tau Number `json:"tau" unit:"ratio"`
	// the place of the pick in the measured order, and of the best in the predicted
	PickRank *int `json:"pick_rank_measured"`
	BestRank *int `json:"best_rank_predicted"`
	// the median error of the predicted times
	Error Number `json:"error_median" unit:"fraction"`
	// whether the pick's time lies in its interval
	Held *bool `json:"interval_held"`
	// the share of the times in their intervals
	Coverage Number `json:"interval_coverage"`
	// recorded configurations, and how many the model rejects
	Recorded int `json:"recorded"`
	Refused  int `json:"refused"`
	// whether the model was fitted to the problem
	InSample bool `json:"in_sample"`
	// as in `select`
	Outside []string `json:"outside"`
}
