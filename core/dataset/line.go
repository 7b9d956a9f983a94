package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Schema is the version of the line format. A reader knows exactly one.
const Schema = 1

// line is a measurement as a line of JSON; docs/measuring.md describes it. Units are in the names of the keys.
type line struct {
	Schema          int          `json:"schema"`
	Phase           Phase        `json:"phase"`
	Block           int          `json:"block,omitempty"`
	Arms            int          `json:"arms,omitempty"`
	NullArm         bool         `json:"null_arm,omitempty"`
	Status          Status       `json:"status"`
	Detail          string       `json:"detail,omitempty"`
	Arch            string       `json:"arch"`
	Device          string       `json:"device"`
	DeviceName      string       `json:"device_name,omitempty"`
	DriverName      string       `json:"driver_device_name,omitempty"`
	Kernel          string       `json:"kernel"`
	Problem         problem      `json:"problem"`
	Config          *gemm.Config `json:"config,omitempty"`
	Library         string       `json:"library,omitempty"`
	WarmL2          bool         `json:"warm_l2"`
	Input           string       `json:"input"`
	Median          float64      `json:"median_seconds,omitempty"`
	Spread          float64      `json:"spread,omitempty"`
	Samples         []float64    `json:"samples_seconds,omitempty"`
	ClockMin        float64      `json:"clock_min_hz,omitempty"`
	ClockMax        float64      `json:"clock_max_hz,omitempty"`
	ClockMoved      bool         `json:"clock_moved,omitempty"`
	Resources       *resources   `json:"resources,omitempty"`
	Numerics        *numerics    `json:"numerics,omitempty"`
	Environment     *environment `json:"environment,omitempty"`
	Executor        string       `json:"executor"`
	ExecutorVersion string       `json:"executor_version"`
	Host            string       `json:"host_software,omitempty"`
}

type problem struct {
	M      int    `json:"m"`
	N      int    `json:"n"`
	K      int    `json:"k"`
	Batch  int    `json:"batch"`
	TransA bool   `json:"trans_a"`
	TransB bool   `json:"trans_b"`
	DType  string `json:"dtype"`
}

type resources struct {
	Registers   int     `json:"registers"`
	SpillBytes  float64 `json:"spill_bytes"`
	SharedBytes float64 `json:"shared_bytes"`
	CTAsPerSM   int     `json:"ctas_per_sm"`
}

type numerics struct {
	// MaxError is null where an element is not a number.
	MaxError    *float64 `json:"max_error"`
	Tolerance   float64  `json:"tolerance"`
	Checked     int64    `json:"checked_elements"`
	Wrong       int64    `json:"wrong_elements"`
	OutOfBounds int64    `json:"out_of_bounds_bytes"`
	Reference   string   `json:"reference"`
}

type environment struct {
	Time            time.Time `json:"time"`
	Driver          string    `json:"driver,omitempty"`
	Runtime         string    `json:"runtime,omitempty"`
	Clock           float64   `json:"clock_hz,omitempty"`
	Power           float64   `json:"power_watts,omitempty"`
	PowerLimit      float64   `json:"power_limit_watts,omitempty"`
	Temperature     float64   `json:"temperature_celsius,omitempty"`
	ThrottleReasons []string  `json:"throttle_reasons,omitempty"`
}

// AppendLine appends a measurement under its conditions as one line, with its line feed. The error says what in the
// measurement cannot be written.
func AppendLine(dst []byte, c Conditions, m *Measurement) ([]byte, error) {
	l := line{
		Schema: Schema, Phase: m.Phase, Block: m.Block, Arms: m.Arms, NullArm: m.Null, Status: m.Status, Detail: m.Detail,
		Arch: c.Arch, Device: c.Device, DeviceName: c.DeviceName, DriverName: c.DriverName, Kernel: c.Kernel, WarmL2: c.WarmL2, Input: c.Input,
		Problem: problem{m.Problem.M, m.Problem.N, m.Problem.K, m.Problem.Batch, m.Problem.TransA(), m.Problem.TransB(), m.Problem.DType.String()},
		Median:  float64(m.Median), Spread: m.Spread, ClockMin: float64(m.ClockMin), ClockMax: float64(m.ClockMax), ClockMoved: m.ClockMoved(),
		Executor: c.Executor, ExecutorVersion: c.ExecutorVersion, Host: m.Host,
	}
	if m.IsLibrary() {
		l.Library = m.Config.Kernel
	} else {
		l.Config = &m.Config
	}
	for _, s := range m.Samples {
		l.Samples = append(l.Samples, float64(s))
	}
	if r := m.Resources; r != (exec.Resources{}) {
		l.Resources = &resources{r.Registers, float64(r.SpillBytes), float64(r.SharedMemory), r.CTAsPerSM}
	}
	if n := m.Numerics; n != nil {
		l.Numerics = &numerics{Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong, OutOfBounds: n.OutOfBounds, Reference: n.Reference}
		if !math.IsNaN(n.MaxError) && !math.IsInf(n.MaxError, 0) {
			l.Numerics.MaxError = &n.MaxError
		}
	}
	if e := m.Environment; e != nil {
		l.Environment = &environment{
			e.Time.UTC(), e.Driver, e.Runtime, known(float64(e.Clock)), known(e.PowerWatts), known(e.PowerLimitWatts), known(e.TemperatureC), e.ThrottleReasons,
		}
	}
	// What cannot be read back must not be written.
	if _, err := l.measurement(); err != nil {
		return dst, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&l); err != nil {
		return dst, err
	}
	return append(dst, b.Bytes()...), nil
}

// known returns a reading, 0 for one that a sensor does not have.
func known(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// errSyntax marks a line that is no JSON object at all, as the end of a file is that was cut off while it was written.
var errSyntax = errors.New("no JSON object")

// ParseLine reads one line. Every key is checked: unknown ones, impossible values, and a summary that does not follow
// from its samples are errors.
func ParseLine(text []byte) (Conditions, Measurement, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return Conditions{}, Measurement{}, fmt.Errorf("%w (%w)", errSyntax, err)
		}
		return Conditions{}, Measurement{}, l.newer(text, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Conditions{}, Measurement{}, fmt.Errorf("%w (there is more behind it)", errSyntax)
	}
	m, err := l.measurement()
	return l.conditions(), m, err
}

// newer prefers the version as the reason why a line is not understood.
func (l *line) newer(text []byte, err error) error {
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
		Arch: l.Arch, Device: l.Device, DeviceName: l.DeviceName, DriverName: l.DriverName, Kernel: l.Kernel, WarmL2: l.WarmL2, Input: l.Input,
		Executor: l.Executor, ExecutorVersion: l.ExecutorVersion,
	}
}

// measurement checks a line and converts it.
func (l *line) measurement() (Measurement, error) {
	m := Measurement{
		Phase: l.Phase, Block: l.Block, Arms: l.Arms, Null: l.NullArm, Status: l.Status, Detail: l.Detail,
		ClockMin: unit.Hertz(l.ClockMin), ClockMax: unit.Hertz(l.ClockMax), Host: l.Host,
	}
	fail := func(format string, args ...any) (Measurement, error) {
		return Measurement{}, fmt.Errorf(format, args...)
	}
	if l.Schema != Schema {
		return Measurement{}, schemaError(l.Schema)
	}
	for _, f := range []struct{ name, value string }{{"arch", l.Arch}, {"device", l.Device}, {"kernel", l.Kernel}, {"input", l.Input}} {
		if f.value == "" {
			return fail("%s is missing", f.name)
		}
	}
	switch l.Phase {
	case Sweep:
		if l.Block != 0 || l.Arms != 0 || l.NullArm {
			return fail("block, arms and null_arm belong to phase final")
		}
	case Final:
		if l.Block < 1 || l.Block > maxBlocks || l.Arms < 1 {
			return fail("block %d of %d arms is none", l.Block, l.Arms)
		}
	default:
		return fail("phase %q is none of sweep, final", l.Phase)
	}
	switch l.Status {
	case OK:
		if len(l.Samples) == 0 {
			return fail("status is ok, and there are no samples")
		}
	case Wrong, NotBuilt, Failed, Timeout:
	default:
		return fail("status %q is none of ok, wrong_numerics, not_built, failed, timeout", l.Status)
	}

	p := l.Problem
	dtype, err := gemm.ParseDType(p.DType)
	if err != nil {
		return Measurement{}, err
	}
	m.Problem = gemm.Problem{M: p.M, N: p.N, K: p.K, Batch: p.Batch, DType: dtype}
	m.Problem.SetTrans(p.TransA, p.TransB)
	if err := m.Problem.Validate(); err != nil {
		return Measurement{}, err
	}
	switch {
	case (l.Config == nil) == (l.Library == ""):
		return fail("there must be either a config or a library")
	case l.Config == nil:
		m.Config = gemm.Config{Kernel: l.Library}
	default:
		m.Config = *l.Config
		m.Config.Kernel = l.Kernel
		if err := m.Config.ValidateNumbers(); err != nil {
			return Measurement{}, err
		}
	}

	m.Samples = make([]unit.Seconds, len(l.Samples))
	for i, s := range l.Samples {
		if !(s > 0) || math.IsInf(s, 0) {
			return fail("samples_seconds has %v, which is not a time", s)
		}
		m.Samples[i] = unit.Seconds(s)
	}
	m.summarise()
	if !near(float64(m.Median), l.Median) || !near(m.Spread, l.Spread) {
		return fail("median_seconds %v and spread %v do not follow from the samples (%v, %v)", l.Median, l.Spread, float64(m.Median), m.Spread)
	}
	if l.ClockMin < 0 || l.ClockMax < l.ClockMin || math.IsInf(l.ClockMax, 0) || l.ClockMoved != m.ClockMoved() {
		return fail("clock_min_hz, clock_max_hz and clock_moved contradict each other")
	}
	if r := l.Resources; r != nil {
		m.Resources = exec.Resources{Registers: r.Registers, SpillBytes: unit.Bytes(r.SpillBytes), SharedMemory: unit.Bytes(r.SharedBytes), CTAsPerSM: r.CTAsPerSM}
	}
	if n := l.Numerics; n != nil {
		m.Numerics = &exec.Numerics{MaxError: math.Inf(1), Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong, OutOfBounds: n.OutOfBounds, Reference: n.Reference}
		if n.MaxError != nil {
			m.Numerics.MaxError = *n.MaxError
		}
		if m.Numerics.OK() != (l.Status != Wrong) {
			return fail("status %s contradicts the numerics", l.Status)
		}
	}
	if e := l.Environment; e != nil {
		m.Environment = &exec.Environment{
			Time: e.Time, Driver: e.Driver, Runtime: e.Runtime, Clock: unit.Hertz(e.Clock), PowerWatts: e.Power, PowerLimitWatts: e.PowerLimit,
			TemperatureC: e.Temperature, ThrottleReasons: e.ThrottleReasons,
		}
	}
	return m, nil
}

// maxBlocks bounds the blocks of a problem, so that a line cannot exhaust the memory.
const maxBlocks = 1 << 16

// near allows for another order of operations.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }
