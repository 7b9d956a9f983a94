// Package ask is the road from a question to its answer: a problem and options, an opened model, and plain values with
// the keys of the JSON that every command, the server and the libraries give. It knows no command line and no process.
package ask

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
)

// Answer is a configuration for a problem, and what a model predicts for it. The other answers of this package have its
// keys too.
type Answer struct {
	// ids, as in `--arch arch@device`
	Arch   string `json:"arch"`
	Device string `json:"device"`
	// the model
	Model string `json:"model"`
	// `refined`: origami's own prediction; `reference`: a published model
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	// the model's kernel family
	Kernel string `json:"kernel"`
	// how much the model knows: `spec`, `calibrated`, `compiled`, `characterized`
	Rung arch.Rung `json:"rung"`
	// why overridden numbers rule out a higher rung of the model
	RungReason string `json:"rung_reason,omitempty"`
	// the [timing](timings.md) of the predicted times
	Timing string `json:"timing,omitempty"`
	// `true` if the model orders configurations and does not time them: `seconds` and `tflops` are no predictions
	RanksOnly bool `json:"ranks_only,omitempty"`
	// whether `evidence` is `checked`
	Validated bool `json:"validated"`
	// how it lies [outside of what the model was checked on](evaluating.md#where-the-intervals-hold); if only in
	// size, `validated` is `true` and the interval wider
	Outside []string `json:"outside"`
	// of a GPU of this machine that no device file describes exactly; without a file, `device` is `auto`
	Live *Live `json:"live,omitempty"`
	// the product that was asked about
	Problem gemm.Record `json:"problem"`
	// with `--problems`: the further columns of the file, by name
	Labels Fields `json:"labels,omitempty"`
	// `block_m`, `block_n`, `block_k`, `group_m`, `num_warps`, `num_stages`, `split_k`, and in `axes` the values of
	// the family's axes that are not the default. Of `library`, order, warps and stages are unknown: `null`
	Config gemm.Config `json:"config"`
	// absent for a configuration that cannot be used
	Predicted *Predicted `json:"predicted,omitempty"`
	// only if the device has several dies
	Mapping *Mapping `json:"mapping,omitempty"`
	// the numbers of usable and of rejected configurations
	Candidates int `json:"candidates"`
	Rejected   int `json:"rejected"`
	// what the interval [rests on](evaluating.md#evidence): measured times of the device (`checked`), of another kind of
	// problem on it (`related`), of others of its architecture (`sister`), or none of these (`unchecked`)
	Evidence arch.Evidence `json:"evidence"`
	// with `--regret`: the [expected regret](evaluating.md#what-measuring-is-worth) of the pick:
	// its time ÷ the time of the fastest other candidate − 1
	ExpectedRegret *float64 `json:"expected_regret,omitempty"`
	// how many leading candidates are worth measuring; 1: take the pick unmeasured
	WorthMeasuring int `json:"worth_measuring,omitempty"`
	// the other kernel families with a time for the problem; not in `rank`, nor for the problems of a file unless
	// `--advice` asks for them
	Ways []Way `json:"ways,omitempty"`
	// with `--invariant`: time ÷ the time of the pick of all configurations − 1
	InvariantPrice *float64 `json:"invariant_price,omitempty"`
	// with `--advice`, the largest gain first
	Advice []Advice `json:"advice,omitempty"`
	// with `--contract`: the contraction, and how GEMMs compute it
	Contraction *Contraction `json:"contraction,omitempty"`
	// with `--logic`; for kernels of no model here, beside `arch`, `made_for`, `problem`, `speed` (0 if unknown),
	// `unit` and `parameters` only
	Logic *LogicPick `json:"logic,omitempty"`
	// with `--top`: 1 for the best
	Rank int `json:"rank,omitempty"`
}

// Live says where the hardware numbers of a GPU of this machine come from.
type Live struct {
	// the product, and parameters that only its driver reports
	Name   string   `json:"name"`
	Driver []string `json:"driver"`
	// the parameters computed from another device, and that device
	Scaled     []string `json:"scaled"`
	ScaledFrom string   `json:"scaled_from,omitempty"`
}

// Predicted is what a model predicts for a configuration.
type Predicted struct {
	// the predicted total in cycles
	Cycles float64 `json:"cycles" unit:"cycles"`
	// cycles ÷ `clock_hz`
	Seconds float64 `json:"seconds" unit:"s"`
	// 2·m·n·k·batch ÷ seconds ÷ 10¹², also of integers
	TFLOPS float64 `json:"tflops"`
	// `compute`, `l2`, `mall`, `dram`, `latency`, `l1`, `shared_memory`, `issue` or `unknown`
	Bound string `json:"bound"`
	// the sentence of the text output, for one problem
	Why string `json:"why,omitempty"`
	// the clock of the model's cycles, and its rung
	ClockHz   float64   `json:"clock_hz"`
	ClockRung arch.Rung `json:"clock_rung"`
	// low and high end of the time ([how](evaluating.md#intervals))
	Interval *[2]float64 `json:"interval_seconds,omitempty"`
	// the probability that the measured time lies in the interval
	IntervalLevel float64 `json:"interval_level,omitempty"`
	// the width of the interval relative to a validated problem's, if the sizes are outside
	IntervalWidened float64 `json:"interval_widened,omitempty"`
}

// Mapping is a launch order over several dies.
type Mapping struct {
	// the rows of tiles that are walked before the next column
	GroupM int `json:"group_m"`
	// the dies over which consecutive workgroups are distributed
	XCDs int `json:"xcds"`
	// the workgroups per die at a time, 0 for the default
	Chunk int `json:"chunk"`
}

// Contraction is a contraction, and how GEMMs compute it. Indices are listed with the longest stride first.
type Contraction struct {
	// the contraction in einsum's letters
	Einsum string `json:"einsum"`
	// the indices by class
	FreeA string `json:"free_a"`
	FreeB string `json:"free_b"`
	Batch string `json:"batch"`
	Sum   string `json:"sum"`
	ContractionPlan
	// the other ways to compute it, the fastest first
	Instead []*ContractionPlan `json:"instead,omitempty"`
}

// ContractionPlan is one way to compute a contraction.
type ContractionPlan struct {
	// whether one kernel on the tensors as they are is all
	Direct bool `json:"direct"`
	// only if the kernel looks elements up: the nested indices
	Nest string `json:"nest,omitempty"`
	// the kernel's family
	Kernel string `json:"kernel"`
	// the indices that the dimensions of the kernel consist of
	M     string `json:"m"`
	N     string `json:"n"`
	K     string `json:"k"`
	GEMMs string `json:"batch_of_gemm"`
	// whether A and B change places
	Swapped bool `json:"swapped"`
	// the indices outside of the GEMM
	Loop string `json:"loop"`
	// the GEMMs in turn
	Calls int `json:"calls"`
	// how many of these GEMMs add up in one part of C
	Adding int `json:"adding"`
	// the tensors that are copied
	Copied []string `json:"copied"`
	// the bytes that copies move, and of C that are read again
	Moved float64 `json:"moved_bytes"`
	// the predicted time of all of it (`predicted` is one GEMM)
	Seconds float64 `json:"seconds"`
}

// LogicPick is what a library logic says about a problem.
type LogicPick struct {
	// the file of the logic
	File string `json:"file"`
	// what answered: `exact`, `range`, `nearest` or `model`
	Layer logic.Layer `json:"layer"`
	// the name of the kernel, empty if the logic leaves the answer to the model and its kernels have no names
	Kernel string `json:"kernel"`
}
