package dataset

import (
	"bytes"
	"errors"
	"math"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
)

// Schema is the version of the line format, and the only version that is read.
const Schema = 1

// line is a measurement as a line of JSON, as docs/measuring.md describes it. The keys name the units.
type line struct {
	Schema          int               `json:"schema"`
	Phase           Phase             `json:"phase"`
	Block           int               `json:"block,omitempty"`
	Arms            int               `json:"arms,omitempty"`
	NullArm         bool              `json:"null_arm,omitempty"`
	Status          Status            `json:"status"`
	Fault           Fault             `json:"fault,omitempty"`
	Detail          string            `json:"detail,omitempty"`
	Arch            string            `json:"arch"`
	Device          string            `json:"device"`
	DeviceName      string            `json:"device_name,omitempty"`
	DriverName      string            `json:"driver_device_name,omitempty"`
	Kernel          string            `json:"kernel"`
	Problem         gemm.Record       `json:"problem"`
	Config          *gemm.Config      `json:"config,omitempty"`
	Library         string            `json:"library,omitempty"`
	WarmL2          bool              `json:"warm_l2"`
	Input           string            `json:"input"`
	Median          float64           `json:"median_seconds,omitempty"`
	RelativeMAD     float64           `json:"spread,omitempty"`
	Samples         []unit.Seconds    `json:"samples_seconds,omitempty"`
	ClockMin        unit.Hertz        `json:"clock_min_hz,omitempty"`
	ClockMax        unit.Hertz        `json:"clock_max_hz,omitempty"`
	ClockMoved      bool              `json:"clock_moved,omitempty"`
	Resources       *exec.Resources   `json:"resources,omitempty"`
	Numerics        *numerics         `json:"numerics,omitempty"`
	Environment     *exec.Environment `json:"environment,omitempty"`
	Executor        string            `json:"executor"`
	ExecutorVersion string            `json:"executor_version"`
	Host            string            `json:"host_software,omitempty"`
	GPU             string            `json:"gpu,omitempty"`
}

type numerics struct {
	// MaxError is null if an element is not a number.
	MaxError    *float64 `json:"max_error"`
	Tolerance   float64  `json:"tolerance"`
	Checked     int64    `json:"checked_elements"`
	Wrong       int64    `json:"wrong_elements"`
	OutOfBounds int64    `json:"out_of_bounds_bytes"`
	Reference   string   `json:"reference"`
}

// AppendLine appends a measurement under its conditions as one line, with its line feed. It returns an error for a
// measurement that could not be read back.
func AppendLine(dst []byte, c Conditions, m *Measurement) ([]byte, error) {
	l := newLine(c, m)
	text, err := limit.JSONLine(&l)
	if err != nil {
		return dst, err
	}
	got, again, err := ParseLine(bytes.TrimSuffix(text, []byte("\n")))
	if err != nil {
		return dst, err
	}
	if got != c || again.Library != m.Library {
		return dst, errors.New("a name in it is no UTF-8")
	}
	return append(dst, text...), nil
}

func newLine(c Conditions, m *Measurement) line {
	l := line{
		Schema: Schema, Phase: m.Phase, Block: m.Block, Arms: m.Arms, NullArm: m.Null,
		Status: m.Status, Fault: m.Fault, Detail: m.Detail,
		Arch: c.Arch, Device: c.Device, DeviceName: c.DeviceName, DriverName: c.DriverName, Kernel: c.Kernel,
		Problem: m.Problem.Record(),
		Library: m.Library, WarmL2: c.WarmL2, Input: c.Input, Median: float64(m.Median), RelativeMAD: m.RelativeMAD,
		Samples: m.Samples, ClockMin: m.ClockMin, ClockMax: m.ClockMax, ClockMoved: m.ClockMoved(),
		Executor: c.Executor, ExecutorVersion: c.ExecutorVersion, Host: m.Host, GPU: m.GPU,
	}
	if m.Library == "" {
		l.Config = &m.Config
	}
	if r := m.Resources; r != (exec.Resources{}) {
		l.Resources = &r
	}
	if n := m.Numerics; n != nil {
		l.Numerics = &numerics{
			Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong, OutOfBounds: n.OutOfBounds,
			Reference: n.Reference,
		}
		if !math.IsNaN(n.MaxError) && !math.IsInf(n.MaxError, 0) {
			l.Numerics.MaxError = &n.MaxError
		}
	}
	if e := m.Environment; e != nil {
		recorded := e.Recorded()
		l.Environment = &recorded
	}
	return l
}
