package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/unit"
)

// errSyntax marks a line that is not a JSON object, such as the end of a file that was cut off while it was written.
var errSyntax = errors.New("no JSON object")

// ParseLine reads one line. Unknown keys, keys that are there twice or in another case, impossible values, and a median
// or MAD that does not follow from the samples are errors.
func ParseLine(text []byte) (Conditions, Measurement, error) {
	var l line
	if err := strictjson.Unmarshal(text, &l); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
			errors.Is(err, strictjson.ErrTrailing) {
			return Conditions{}, Measurement{}, fmt.Errorf("%w (%w)", errSyntax, err)
		}
		return Conditions{}, Measurement{}, l.explain(text, err)
	}
	m, err := l.measurement()
	return l.conditions(), m, err
}

// explain says why a line was not decoded. Another schema version is the first reason.
func (l *line) explain(text []byte, err error) error {
	var v struct{ Schema int }
	if json.Unmarshal(text, &v) == nil && v.Schema != Schema {
		return schemaError(v.Schema)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s is a %s, which it cannot be", kind.Field, kind.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func schemaError(got int) error {
	return fmt.Errorf("schema is %d, and this version of origami reads %d", got, Schema)
}

func (l *line) conditions() Conditions {
	return Conditions{
		Arch: l.Arch, Device: l.Device, DeviceName: l.DeviceName, DriverName: l.DriverName, Kernel: l.Kernel,
		WarmL2: l.WarmL2, Input: l.Input, Executor: l.Executor, ExecutorVersion: l.ExecutorVersion,
	}
}

// measurement checks a line and converts it.
func (l *line) measurement() (Measurement, error) {
	m := Measurement{
		Phase: l.Phase, Block: l.Block, Arms: l.Arms, Null: l.NullArm, Status: l.Status, Fault: l.Fault,
		Detail: l.Detail, Library: l.Library, Host: l.Host, GPU: l.GPU,
		ClockMin: l.ClockMin, ClockMax: l.ClockMax, Environment: l.Environment,
		Samples: append([]unit.Seconds{}, l.Samples...),
	}
	for _, read := range []func(*Measurement) error{
		l.header, l.lengths, l.problem, l.config, l.samples, l.clock, l.numerics,
	} {
		if err := read(&m); err != nil {
			return Measurement{}, err
		}
	}
	if l.Resources != nil {
		m.Resources = *l.Resources
	}
	return m, nil
}

// maxBlocks bounds the blocks of a problem, so that a line cannot exhaust the memory.
const maxBlocks = 1 << 16

// What is read of a line is bounded, at several times what is written: all lines of a folder are held in memory.
const (
	maxText    = 4096 // bytes of a text
	maxSamples = 10000
)

// lengths checks the sizes of texts and lists.
func (l *line) lengths(*Measurement) error {
	texts := []struct{ name, text string }{
		{"detail", l.Detail}, {"library", l.Library}, {"host_software", l.Host}, {"arch", l.Arch}, {"device", l.Device},
		{"device_name", l.DeviceName}, {"driver_device_name", l.DriverName}, {"kernel", l.Kernel}, {"input", l.Input},
		{"executor", l.Executor}, {"executor_version", l.ExecutorVersion}, {"gpu", l.GPU},
	}
	if n := l.Numerics; n != nil {
		texts = append(texts, struct{ name, text string }{"reference", n.Reference})
	}
	if e := l.Environment; e != nil {
		texts = append(texts, []struct{ name, text string }{
			{"driver", e.Driver}, {"runtime", e.Runtime}, {"throttle_reasons", strings.Join(e.ThrottleReasons, "")},
		}...)
		if len(e.ThrottleReasons) > maxText {
			return fmt.Errorf("throttle_reasons has %d entries, and at most %d are read", len(e.ThrottleReasons), maxText)
		}
	}
	for _, t := range texts {
		if len(t.text) > maxText {
			return fmt.Errorf("%s has %d bytes, and at most %d are read", t.name, len(t.text), maxText)
		}
	}
	if len(l.Samples) > maxSamples {
		return fmt.Errorf("samples_seconds has %d times, and at most %d are read", len(l.Samples), maxSamples)
	}
	return nil
}

// header checks version, conditions, phase and status.
func (l *line) header(*Measurement) error {
	if l.Schema != Schema {
		return schemaError(l.Schema)
	}
	for _, f := range []struct{ name, value string }{
		{"arch", l.Arch}, {"device", l.Device}, {"kernel", l.Kernel}, {"input", l.Input},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is missing", f.name)
		}
	}
	switch l.Phase {
	case Sweep, Check:
		if l.Block != 0 || l.Arms != 0 || l.NullArm {
			return errors.New("block, arms and null_arm belong to phase final")
		}
	case Final:
		if l.Block < 1 || l.Block > maxBlocks || l.Arms < 1 {
			return fmt.Errorf("block %d of %d arms is not possible", l.Block, l.Arms)
		}
	default:
		return fmt.Errorf("phase %q is none of sweep, final, check", l.Phase)
	}
	switch l.Status {
	case OK:
		if len(l.Samples) == 0 {
			return errors.New("status is ok, and there are no samples")
		}
	case Wrong, NotBuilt, Failed, Timeout:
	default:
		return fmt.Errorf("status %q is none of ok, wrong_numerics, not_built, failed, timeout", l.Status)
	}
	switch {
	case l.Fault == "":
	case l.Fault != FaultKernel:
		return fmt.Errorf("fault %q is not %s", l.Fault, FaultKernel)
	case l.Status != Failed && l.Status != Timeout:
		return fmt.Errorf("status %s has no fault", l.Status)
	}
	return nil
}

func (l *line) problem(m *Measurement) error {
	p, err := l.Problem.Problem()
	m.Problem = p
	return err
}

func (l *line) config(m *Measurement) error {
	c := l.Config
	if (c == nil) == (l.Library == "") {
		return errors.New("there must be either a config or a library")
	}
	if c == nil {
		return nil
	}
	m.Config = *c
	m.Config.Kernel = l.Kernel
	return m.Config.ValidateNumbers()
}

func (l *line) samples(m *Measurement) error {
	for _, s := range l.Samples {
		if v := float64(s); !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("samples_seconds has %v, which is not a time", v)
		}
	}
	m.summarise()
	if !near(float64(m.Median), l.Median) || !near(m.RelativeMAD, l.RelativeMAD) {
		return fmt.Errorf("median_seconds %v and spread %v do not follow from the samples (%v, %v)",
			l.Median, l.RelativeMAD, float64(m.Median), m.RelativeMAD)
	}
	return nil
}

// near allows for another order of operations.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func (l *line) clock(m *Measurement) error {
	if l.ClockMin < 0 || l.ClockMax < l.ClockMin || math.IsInf(float64(l.ClockMax), 0) || l.ClockMoved != m.ClockMoved() {
		return errors.New("clock_min_hz, clock_max_hz and clock_moved contradict each other")
	}
	return nil
}

func (l *line) numerics(m *Measurement) error {
	n := l.Numerics
	if n == nil {
		return nil
	}
	m.Numerics = &exec.Numerics{
		MaxError: math.Inf(1), Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong, OutOfBounds: n.OutOfBounds,
		Reference: n.Reference,
	}
	if n.MaxError != nil {
		m.Numerics.MaxError = *n.MaxError
	}
	if m.Numerics.OK() != (l.Status != Wrong) {
		return fmt.Errorf("status %s contradicts the numerics", l.Status)
	}
	return nil
}
