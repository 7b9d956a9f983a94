package dataset

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Status says what became of a configuration.
type Status string

// The statuses. Only OK has a time that counts.
const (
	OK       Status = "ok"
	Wrong    Status = "wrong_numerics" // it computes something else; it was not timed
	NotBuilt Status = "not_built"      // it does not compile for this problem, or does not fit the device
	Failed   Status = "failed"         // running it failed, or took its process along
	Timeout  Status = "timeout"        // it did not end in time
)

// Phase says what a measurement is for.
type Phase string

// The phases.
const (
	// Sweep is one pass over all candidates, each measured by itself.
	Sweep Phase = "sweep"
	// Final is a second look at a few of them and the libraries, run in turns, so that they are comparable.
	Final Phase = "final"
)

// Measurement is one configuration on one problem.
type Measurement struct {
	Problem gemm.Problem
	// Config is the configuration, Config.Kernel the family. A vendor's library has nothing but its Kernel.
	Config gemm.Config
	Phase  Phase
	// Block numbers the blocks of final measurements of a problem from 1, and Arms is how many measurements belong to it.
	// Null marks the second entry of the model's pick in its block: it differs from the first by nothing but chance.
	Block, Arms int
	Null        bool

	Status Status
	// Detail says why there is no time, in one line.
	Detail string
	// Samples are the timed runs in order; only their median is known where they are missing. Runs counts them.
	Samples []unit.Seconds
	Runs    int
	Median  unit.Seconds
	// Spread is the median absolute deviation of the samples ÷ their median.
	Spread float64
	// ClockMin and ClockMax are the range of the clock over the samples, 0 if unknown.
	ClockMin, ClockMax unit.Hertz

	Resources exec.Resources
	// Numerics is the outcome of the result check, nil where there was none.
	Numerics *exec.Numerics
	// Environment is the device's state after the measurement, nil if it was not read.
	Environment *exec.Environment
	// Host is the software that measured.
	Host string
}

// IsLibrary reports whether a configuration stands for a vendor's library.
func IsLibrary(c gemm.Config) bool { return c.BlockM == 0 }

// IsLibrary reports whether a vendor's library was measured.
func (m *Measurement) IsLibrary() bool { return IsLibrary(m.Config) }

// clockTolerance is how far the clock may move within one measurement: the run-to-run spread of a kernel at a steady
// clock is about 1 %, so a move of twice that would decide between neighbours.
const clockTolerance = 0.02

// ClockMoved reports that (max − min) ÷ max of the clock over the samples exceeds 2 %.
func (m *Measurement) ClockMoved() bool {
	return m.ClockMax > 0 && float64((m.ClockMax-m.ClockMin)/m.ClockMax) > clockTolerance
}

// SetSamples enters timed runs and what follows from them.
func (m *Measurement) SetSamples(samples []exec.Sample) {
	m.Samples, m.ClockMin, m.ClockMax = make([]unit.Seconds, len(samples)), 0, 0
	for i, s := range samples {
		m.Samples[i] = s.Time
		if s.Clock > 0 {
			m.ClockMax = max(m.ClockMax, s.Clock)
			if m.ClockMin == 0 || s.Clock < m.ClockMin {
				m.ClockMin = s.Clock
			}
		}
	}
	m.summarise()
}

func (m *Measurement) summarise() {
	var deviation unit.Seconds
	m.Runs = len(m.Samples)
	m.Median, deviation = MedianMAD(m.Samples)
	m.Spread = 0
	if m.Median > 0 {
		m.Spread = float64(deviation / m.Median)
	}
}

// MedianMAD returns the median of some times and the median of their absolute deviations from it, 0 and 0 of nothing.
func MedianMAD(times []unit.Seconds) (median, deviation unit.Seconds) {
	if len(times) == 0 {
		return 0, 0
	}
	var room [64]unit.Seconds // enough for what is measured at a time, without an allocation
	sorted := append(room[:0], times...)
	slices.Sort(sorted)
	median = middle(sorted)
	for i, t := range sorted {
		sorted[i] = unit.Seconds(math.Abs(float64(t - median)))
	}
	slices.Sort(sorted)
	return median, middle(sorted)
}

// middle returns the mean of the one or two middle elements of a sorted list.
func middle(sorted []unit.Seconds) unit.Seconds {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1] + (sorted[n/2]-sorted[n/2-1])/2
}
