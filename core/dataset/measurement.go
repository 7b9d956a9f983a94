package dataset

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Status says how measuring a configuration ended.
type Status string

// The statuses. Only OK has a time that counts.
const (
	OK       Status = "ok"
	Wrong    Status = "wrong_numerics" // the result check failed, so the kernel was not timed
	NotBuilt Status = "not_built"      // it does not compile for this problem, or does not fit the device
	Failed   Status = "failed"         // running it failed, or ended the executor's process
	Timeout  Status = "timeout"        // it did not end in time
)

// Retriable reports whether measuring again could end otherwise: the kernel was built, and did not run to its end.
func (s Status) Retriable() bool { return s == Failed || s == Timeout }

// Fault says whose fault it is that a measurement has the status Failed or Timeout.
type Fault string

// FaultKernel is the only fault that is recorded: the executor reported that the kernel does not run, or the kernel
// ended the executor's process, or hung, each time that it ran alone. Older versions recorded no fault, and failures of
// the executor too.
const FaultKernel Fault = "kernel"

// Phase says which pass a measurement belongs to.
type Phase string

// The phases.
const (
	// Sweep is one pass over all candidates, each measured by itself.
	Sweep Phase = "sweep"
	// Final is a second pass over the pick, a few of the fastest candidates and the libraries. They run in turns,
	// so that their times are comparable.
	Final Phase = "final"
	// Check is a known kernel, timed now and then to see that a GPU still is as fast as it was, and as the others. It
	// counts in no sweep: see Dataset.Checks.
	Check Phase = "check"
)

// Measurement is one configuration, or one vendor library, on one problem. docs/data-sets.md has its keys.
type Measurement struct {
	Problem gemm.Problem `json:"-"`
	// Config is the configuration; Config.Kernel is its kernel family. It is zero for a library.
	Config gemm.Config `json:"config,omitzero"`
	// Library is the name of the vendor library that was measured ("cublas"), empty for a configuration.
	Library string `json:"library,omitempty"`
	Phase   Phase  `json:"phase"`
	// Block numbers the blocks of final measurements of a problem from 1. Arms is the number of measurements in the
	// block. Null marks the null arm: the pick is measured twice in its block, and its two times differ by noise
	// alone.
	Block int  `json:"block,omitempty"`
	Arms  int  `json:"arms,omitempty"`
	Null  bool `json:"null_arm,omitempty"`

	Status Status `json:"status"`
	// Fault is empty for other statuses, and for files of older versions.
	Fault Fault `json:"fault,omitempty"`
	// Detail says why there is no time, in one line.
	Detail string `json:"detail,omitempty"`
	// Samples are the timed runs in order, and Runs is their number. The CSV layout has only Runs and Median.
	Samples []unit.Seconds `json:"samples_seconds,omitempty"`
	Runs    int            `json:"-"`
	Median  unit.Seconds   `json:"median_seconds,omitempty"`
	// RelativeMAD is the median absolute deviation of the samples ÷ their median.
	RelativeMAD float64 `json:"spread,omitempty"`
	// ClockMin and ClockMax are the range of the clock over the samples, 0 if unknown.
	ClockMin unit.Hertz `json:"clock_min_hz,omitempty"`
	ClockMax unit.Hertz `json:"clock_max_hz,omitempty"`

	Resources exec.Resources `json:"resources,omitzero"`
	// Numerics is the outcome of the result check, nil if there was none.
	Numerics *exec.Numerics `json:"-"`
	// Environment is the state of the device after the measurement, nil if it was not read.
	Environment *exec.Environment `json:"environment,omitempty"`
	// Host is the software that measured.
	Host string `json:"host_software,omitempty"`
	// GPU is the number of the GPU on its machine, where measurements of several GPUs may meet, or where it is if it is
	// another machine's; empty otherwise.
	GPU string `json:"gpu,omitempty"`
}

// Label returns the name of the library or the text of the configuration.
func (m *Measurement) Label() string {
	if m.Library != "" {
		return m.Library
	}
	return m.Config.String()
}

// clockTolerance is how far the clock may move within one measurement. At a steady clock the times of a kernel vary by
// about 1 %; a clock that moves by twice that would change the order of candidates of similar speed.
const clockTolerance = 0.02

// ClockMoved reports whether (max − min) ÷ max of the clock over the samples exceeds 2 %.
func (m *Measurement) ClockMoved() bool {
	return m.ClockMax > 0 && float64((m.ClockMax-m.ClockMin)/m.ClockMax) > clockTolerance
}

// SetSamples enters timed runs and the numbers that follow from them.
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

// summarise computes Runs, Median and RelativeMAD from the samples.
func (m *Measurement) summarise() {
	var mad unit.Seconds
	m.Runs = len(m.Samples)
	m.Median, mad = stats.MedianMAD(m.Samples)
	m.RelativeMAD = 0
	if m.Median > 0 {
		m.RelativeMAD = float64(mad / m.Median)
	}
}

// The limits of the texts of a measurement, in bytes. An executor chooses these texts, and a line must stay far below
// what is read of it.
const (
	// MaxName bounds names: of devices, drivers, references, versions.
	MaxName = 256
	// maxDetail bounds the part of an error or of a compiler's log that is kept.
	maxDetail = 2000
	// maxReasons bounds the number of throttle reasons, maxReason each.
	maxReasons, maxReason = 32, 100
)

// Text returns a text as it can be recorded: in UTF-8, and cut to a number of bytes, with an ellipsis at its end then.
func Text(text string, most int) string {
	const ellipsis = " …"
	if len(text) > most {
		end := most - len(ellipsis)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + ellipsis
	}
	return strings.ToValidUTF8(text, "?")
}

// texts lists the texts of a measurement.
func (m *Measurement) texts() []keyed {
	all := []keyed{{"detail", &m.Detail}, {"host_software", &m.Host}, {"gpu", &m.GPU}, {"library", &m.Library}}
	if n := m.Numerics; n != nil {
		all = append(all, keyed{"reference", &n.Reference})
	}
	if e := m.Environment; e != nil {
		all = append(all, keyed{"driver", &e.Driver}, keyed{"runtime", &e.Runtime})
	}
	return all
}

// Bound cuts the texts of a measurement to their limits.
func (m *Measurement) Bound() {
	if m.Numerics != nil {
		n := *m.Numerics
		m.Numerics = &n
	}
	if m.Environment != nil {
		e := *m.Environment
		e.ThrottleReasons = slices.Clone(e.ThrottleReasons[:min(len(e.ThrottleReasons), maxReasons)])
		for i, reason := range e.ThrottleReasons {
			e.ThrottleReasons[i] = Text(reason, maxReason)
		}
		m.Environment = &e
	}
	m.Detail = Text(m.Detail, maxDetail)
	for _, t := range m.texts()[1:] {
		*t.text = Text(*t.text, MaxName)
	}
}
