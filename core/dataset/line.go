package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/unit"
)

// Schema is the version of the line format, and the only version that is read.
const Schema = 1

// line is a measurement as a line of JSON, as docs/data-sets.md describes it. The keys name the units.
type line struct {
	Schema int `json:"schema"`
	Conditions
	Measurement
	Problem  gemm.Record `json:"problem"`
	Moved    bool        `json:"clock_moved,omitempty"`
	Numerics *numerics   `json:"numerics,omitempty"`
	Sum      string      `json:"sum,omitempty"` // of the text before this key
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
	text, err := lineOf(c, m)
	if err != nil {
		return dst, err
	}
	got, again, err := ParseLine(text)
	if err != nil {
		return dst, err
	}
	if got != c || again.Library != m.Library {
		return dst, errors.New("a name in it is no UTF-8")
	}
	return append(append(dst, text...), '\n'), nil
}

// lineOf writes a line without its line feed.
func lineOf(c Conditions, m *Measurement) ([]byte, error) {
	l := line{Schema: Schema, Conditions: c, Measurement: *m, Problem: m.Problem.Record(), Moved: m.ClockMoved()}
	if n := m.Numerics; n != nil {
		l.Numerics = &numerics{Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong, OutOfBounds: n.OutOfBounds,
			Reference: n.Reference}
		if !math.IsNaN(n.MaxError) && !math.IsInf(n.MaxError, 0) {
			l.Numerics.MaxError = &n.MaxError
		}
	}
	if e := m.Environment; e != nil {
		recorded := e.Recorded()
		l.Environment = &recorded
	}
	text, err := limit.JSONLine(&l)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSuffix(text, []byte("}\n"))
	return append(text, sumOf(text)...), nil
}

// sumOf returns the end of a line: its checksum, which tells any one byte that was changed.
func sumOf(text []byte) string {
	return fmt.Sprintf(`,"sum":"%08x"}`, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// errSyntax marks a line that is not a JSON object, such as the end of a file that was cut off while it was written.
var errSyntax = errors.New("no JSON object")

// ParseLine reads one line. Unknown keys, keys that are there twice or in another case, impossible values, a checksum
// of another text, and a median or MAD that does not follow from the samples are errors.
func ParseLine(text []byte) (Conditions, Measurement, error) {
	l, err := parseLine(text)
	return l.Conditions, l.Measurement, err
}

func parseLine(text []byte) (l line, err error) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	if err := strictjson.Unmarshal(text, &l); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
			errors.Is(err, strictjson.ErrTrailing) {
			return line{}, fmt.Errorf("%w (%w)", errSyntax, err)
		}
		return line{}, l.explain(text, err)
	}
	if at := len(text) - len(sumOf(nil)); l.Sum != "" && (at < 0 || string(text[at:]) != sumOf(text[:at])) {
		return line{}, errors.New("it was changed: the line is not that of its checksum")
	}
	for _, check := range []func() error{l.header, l.numerics, l.lengths, l.problem, l.config, l.samples, l.clock} {
		if err := check(); err != nil {
			return line{}, err
		}
	}
	return l, nil
}

// explain says why a line was not decoded. Another schema version is the first reason.
func (l *line) explain(text []byte, err error) error {
	var v struct{ Schema int }
	if json.Unmarshal(text, &v) == nil && v.Schema != Schema {
		return schemaError(v.Schema)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := strings.TrimPrefix(strings.TrimPrefix(kind.Field, "Measurement."), "Conditions.")
		return fmt.Errorf("%s is a %s, which it cannot be", field, kind.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func schemaError(got int) error {
	return fmt.Errorf("schema is %d, and this version of origami reads %d", got, Schema)
}

// maxBlocks bounds the blocks of a problem, so that a line cannot exhaust the memory.
const maxBlocks = 1 << 16

// What is read of a line is bounded, at several times what is written: all lines of a folder are held in memory.
const (
	maxText    = 4096 // bytes of a text
	maxSamples = 10000
)

// lengths checks the sizes of texts and lists.
func (l *line) lengths() error {
	conditions := l.Conditions.texts()
	texts := append(l.Measurement.texts(), conditions[:]...)
	if e := l.Environment; e != nil {
		reasons := strings.Join(e.ThrottleReasons, "")
		texts = append(texts, keyed{"throttle_reasons", &reasons})
		if len(e.ThrottleReasons) > maxText {
			return fmt.Errorf("throttle_reasons has %d entries, and at most %d are read", len(e.ThrottleReasons), maxText)
		}
	}
	for _, t := range texts {
		if len(*t.text) > maxText {
			return fmt.Errorf("%s has %d bytes, and at most %d are read", t.key, len(*t.text), maxText)
		}
	}
	if len(l.Samples) > maxSamples {
		return fmt.Errorf("samples_seconds has %d times, and at most %d are read", len(l.Samples), maxSamples)
	}
	return nil
}

// header checks version, conditions, phase and status.
func (l *line) header() error {
	if l.Schema != Schema {
		return schemaError(l.Schema)
	}
	if missing := l.missing(); missing != "" {
		return fmt.Errorf("%s is missing", missing)
	}
	switch l.Phase {
	case Sweep, Check:
		if l.Block != 0 || l.Arms != 0 || l.Null {
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

func (l *line) problem() (err error) {
	l.Measurement.Problem, err = l.Problem.Problem()
	return err
}

func (l *line) config() error {
	c := &l.Config
	if (*c == gemm.Config{}) == (l.Library == "") {
		return errors.New("there must be either a config or a library")
	}
	if l.Library != "" {
		return nil
	}
	c.Kernel = l.Kernel
	return c.ValidateNumbers()
}

func (l *line) samples() error {
	for _, s := range l.Samples {
		if v := float64(s); !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("samples_seconds has %v, which is not a time", v)
		}
	}
	median, spread := float64(l.Median), l.RelativeMAD
	l.Samples = append([]unit.Seconds{}, l.Samples...) // without more capacity
	l.summarise()
	if median == 0 && spread == 0 {
		return nil // they are left out
	}
	if !near(float64(l.Median), median) || !near(l.RelativeMAD, spread) {
		return fmt.Errorf("median_seconds %v and spread %v do not follow from the samples (%v, %v)",
			median, spread, float64(l.Median), l.RelativeMAD)
	}
	return nil
}

// near allows for another order of operations.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func (l *line) clock() error {
	if l.ClockMin < 0 || l.ClockMax < l.ClockMin || math.IsInf(float64(l.ClockMax), 0) || l.Moved != l.ClockMoved() {
		return errors.New("clock_min_hz, clock_max_hz and clock_moved contradict each other")
	}
	return nil
}

func (l *line) numerics() error {
	n := l.Numerics
	if n == nil {
		return nil
	}
	found := &exec.Numerics{MaxError: math.Inf(1), Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong,
		OutOfBounds: n.OutOfBounds, Reference: n.Reference}
	if n.MaxError != nil {
		found.MaxError = *n.MaxError
	}
	if l.Measurement.Numerics = found; found.OK() != (l.Status != Wrong) {
		return fmt.Errorf("status %s contradicts the numerics", l.Status)
	}
	return nil
}
