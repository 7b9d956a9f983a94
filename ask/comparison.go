package ask

import (
	"errors"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Comparison is what several architectures make of one problem.
type Comparison struct {
	// as in `select`
	Problem gemm.Record `json:"problem"`
	Labels  Fields      `json:"labels,omitempty"`
	// empty if the sides have several
	Model string `json:"model"`
	// as in `select`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	// one per `--arch`, in the given order. A side that failed has `arch`, `device`, `what_if` and `error` only
	Entries []Side `json:"entries"`
	// predicted time ÷ the first side's
	Ratio []*Number `json:"ratio_to_first"`
	// the probability that a side is faster, as `odds[side][other]`
	Odds [][]*Number `json:"odds"`
	// how often published times confirm the faster one, as `recorded[side][other]`
	Recorded [][]*Recorded `json:"recorded"`
	// the side with the shortest time; `null` if fewer than two have a time, or two are equal to 0.05 %. Places count
	// from 0
	Fastest *Fastest `json:"fastest"`
}

// Recorded is how often the family `library` named the faster of two devices: of the shapes that were timed on both,
// with the type, the scheme of scales and the class of shape of the problem.
type Recorded struct {
	// the shapes where the published times differ by more than 10 %
	Decided int `json:"decided"`
	// those where the model names the faster device
	Right int `json:"right"`
}

// Side is what one side answers: Compared or Failed.
type Side interface{ side() }

func (*Compared) side() {}
func (*Failed) side()   {}

// Compared is the answer of one side.
type Compared struct {
	Answer
	// the hardware numbers behind the name in `--arch`, if any
	WhatIf string `json:"what_if,omitempty"`
	// what the most similar predictions were checked on
	Checked *Checked `json:"checked"`
	// where the pick is under the roofs
	Roofline Roofs `json:"roofline"`
	// the memory levels of the device, and what else its kernels have to fit
	Hardware Hardware `json:"hardware"`
	// the launch's part of the time
	Launch *Number `json:"launch_seconds"`
	// with `--price`: operations per dollar
	PerDollar *Number `json:"flop_per_dollar,omitempty"`
	// with `--watts`: operations per joule
	PerJoule *Number `json:"flop_per_joule,omitempty"`
	// as in `rank`
	Terms Fields `json:"terms" of:"Term"`
}

// Hardware is the memory hierarchy of a device, and what else its kernels have to fit.
type Hardware struct {
	// the memory levels, near to far
	Levels []MemoryLevel `json:"levels"`
	// the dies over which workgroups are distributed
	Chiplets int `json:"chiplets"`
	// the shape of the matrix instruction; empty for a type that has none
	Instruction string `json:"instruction,omitempty"`
	// the registers that a thread can have
	Registers int `json:"registers_per_thread,omitempty"`
	// the shared memory that a CTA (workgroup) can have
	SharedMemory float64 `json:"shared_memory_bytes,omitempty"`
}

// MemoryLevel is a level of the memory hierarchy.
type MemoryLevel struct {
	// `L2`, `MALL`, `DRAM`
	Name string `json:"name"`
	// the capacity of one partition, and how many there are; absent for the last level
	Capacity   float64 `json:"capacity_bytes,omitempty"`
	Partitions int     `json:"partitions,omitempty"`
	// the bandwidth of all units together, by the data sheet, or else as measured
	Bandwidth float64 `json:"bytes_per_second,omitempty"`
}

// Failed is a side without an answer.
type Failed struct {
	// ids, as in `--arch arch@device`
	Arch   string `json:"arch"`
	Device string `json:"device"`
	// the hardware numbers behind the name in `--arch`, if any
	WhatIf string `json:"what_if,omitempty"`
	// why there is no answer
	Error Error `json:"error"`
}

// Fastest is the side with the shortest time.
type Fastest struct {
	// its place in `entries`
	Entry int `json:"entry"`
	// the next time ÷ its time
	Lead Number `json:"lead"`
	// whether it is faster than each other one with a probability of at least 95 %
	Clear bool `json:"clear"`
	// the probability that it is faster than its likeliest rival
	Odds *Number `json:"odds"`
}

// Checked is the data set behind the stated error of a prediction.
type Checked struct {
	// the name of the data set
	DataSet string `json:"data_set"`
	// the type that was timed, if another that costs the same
	TimedType string `json:"timed_type,omitempty"`
	// its sizes
	Sizes int `json:"sizes,omitempty"`
	// its times; a size may have several, of other types or conditions
	Times int `json:"times,omitempty"`
	// the median error of the model on it
	MedianError float64 `json:"median_error,omitempty"`
}

// Roofs are a prediction against the peaks of the device. A number is `null` if it is unknown, and a share also for a
// model that does not predict times.
type Roofs struct {
	// operations by bytes of the operands and the output
	Intensity *Number `json:"flop_per_byte"`
	// peak ÷ bandwidth of DRAM
	Ridge *Number `json:"ridge_flop_per_byte"`
	// the rate ÷ the peak
	Peak *Number `json:"of_peak"`
	// the bytes per second ÷ the bandwidth of DRAM
	DRAM *Number `json:"of_dram_peak"`
	// the shortest time that these two allow ÷ the time; operands that stay in a cache do not count
	Roof *Number `json:"of_roof"`
}

// Failure is what stands in the place of an answer.
type Failure struct {
	// why there is no answer
	Error Error `json:"error"`
}

// Error is an error as a plain value.
type Error struct {
	// what kind of error it is
	Kind string `json:"kind"`
	// what was wrong
	What string `json:"what"`
	// where
	Where string `json:"where,omitempty"`
	// what to do
	Fix string `json:"fix,omitempty"`
	// how many faults the error stands for, if they are counted
	Count int `json:"count,omitempty"`
}

// Counted is an error that stands for many.
type Counted struct {
	Count int
	Err   error
}

// Error implements error.
func (c *Counted) Error() string { return c.Err.Error() }

// Unwrap returns the error with the text.
func (c *Counted) Unwrap() error { return c.Err }

// ErrorOf returns an error as a plain value.
func ErrorOf(err error) Error {
	d := &diag.Error{What: err.Error()}
	_ = errors.As(err, &d)
	d = d.Bounded()
	out := Error{Kind: d.Kind.String(), What: d.What, Where: d.Where, Fix: d.Fix}
	if counted := (*Counted)(nil); errors.As(err, &counted) {
		out.Count = counted.Count
	}
	return out
}
