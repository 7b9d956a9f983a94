package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/diag"
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

// lines reads a file with a measurement per line.
func (r *reader) lines(file string, d *Dataset) error {
	var truncated *Truncated // the line before, which must be the last
	cut := func(fix string) error {
		return diag.Inputf("%s", truncated.Why).At("%s", truncated.Where).Do("%s", fix)
	}
	err := r.each(file, func(where string, offset int64, l *parsedLine) error {
		if truncated != nil {
			return cut("restore the file, or remove the line")
		}
		why, err := r.line(l, where, d)
		if why != "" {
			truncated = &Truncated{Where: where, Why: why, Keep: offset}
		}
		return err
	})
	switch {
	case err != nil || truncated == nil:
		return err
	case r.recovers && file == Log:
		r.truncated = truncated
		return nil
	}
	return cut("the command that measured goes on from here and drops it; or remove the line")
}

// each calls use for each line of a file, with where it is and how many bytes are before it. Lines are parsed beside
// each other, since that takes nearly all of the time, and used in their order.
func (r *reader) each(file string, use func(where string, offset int64, l *parsedLine) error) error {
	f, closer, err := r.open(file, limit.Records)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	in, place, offset, n := limit.NewLines(f), path.Join(r.name, file), int64(0), 0
	for {
		lines, end := next(in)
		var workers sync.WaitGroup
		cores := runtime.GOMAXPROCS(0)
		for part := range slices.Chunk(lines, len(lines)/cores+1) {
			workers.Go(func() {
				for i := range part {
					l := &part[i]
					l.line, l.err = parseLine(bytes.TrimSuffix(l.text, []byte("\n")))
				}
			})
		}
		workers.Wait()
		for i := range lines {
			n++
			if err := use(fmt.Sprintf("%s:%d", place, n), offset, &lines[i]); err != nil {
				return err
			}
			offset += int64(len(lines[i].text))
		}
		switch {
		case errors.Is(end, io.EOF):
			return nil
		case errors.Is(end, limit.ErrLongLine):
			return diag.Inputf("the line is longer than %d bytes", limit.Line).At("%s:%d", place, n+1).Do("restore the file")
		case end != nil:
			return r.unreadable(file, end)
		}
	}
}

// parsedLine is a line, and what it says.
type parsedLine struct {
	text []byte
	line
	err error
}

// whole reports whether a line has a line feed.
func (l *parsedLine) whole() bool { return bytes.HasSuffix(l.text, []byte("\n")) }

// mostBytes and mostLines are about how many bytes and lines are parsed at once. Lines may be short.
const mostBytes, mostLines = 1 << 20, 1024

// next reads some lines. end is why none follows, nil if one may.
func next(in *limit.Lines) (lines []parsedLine, end error) {
	for size := 0; size < mostBytes && len(lines) < mostLines && end == nil; {
		var text []byte
		if text, end = in.Next(); len(text) > 0 && (end == nil || errors.Is(end, io.EOF)) {
			lines = append(lines, parsedLine{text: bytes.Clone(text)})
		}
		size += len(text)
	}
	return lines, end
}

// line enters a line into a data set. truncated says why the line looks cut off, "" if it does not.
func (r *reader) line(l *parsedLine, where string, d *Dataset) (truncated string, err error) {
	switch {
	case !l.whole():
		return "the last line is cut off", nil
	case errors.Is(l.err, errSyntax):
		return "the line is " + l.err.Error(), nil
	case l.err != nil:
		return "", diag.Inputf("%v", l.err).At("%s", where).Do("%s", seeFormat)
	}
	stated := DescriptionFile
	if !r.described {
		stated = "the first line"
		if d.Len() == 0 {
			d.Conditions = l.Conditions
		}
	}
	if what := l.Difference(d.Conditions); what != "" {
		return "", diag.Inputf("%s in %s", what, stated).At("%s", where).
			Do("keep measurements under other conditions in another folder")
	}
	r.share(&l.Measurement)
	if err := d.Add(l.Measurement); err != nil {
		return "", diag.Within(where, err)
	}
	return "", nil
}

// share keeps a text once that many measurements have, such as a driver's version.
func (r *reader) share(m *Measurement) {
	if r.texts == nil {
		r.texts = map[string]string{}
	}
	for _, t := range m.texts() {
		if shared, there := r.texts[*t.text]; there {
			*t.text = shared
		} else if *t.text != "" {
			r.texts[*t.text] = *t.text
		}
	}
}

// Verified is what a look at every line of a data set found.
type Verified struct {
	Files    int      `json:"files"`            // of measurements
	Lines    int      `json:"lines"`            // of these files
	Unsummed int      `json:"without_checksum"` // lines of them without a checksum, which another program wrote
	Damaged  []string `json:"damaged"`          // the lines that are not as they were written, and why
}

// Verify looks at every line of a data set, also behind one that is damaged. name is what the folder is called.
func Verify(name string, files fs.FS) (Verified, error) {
	v, r := Verified{Damaged: []string{}}, reader{name: name, files: files}
	d, err := r.describe()
	if err != nil {
		return v, err
	}
	found, err := Measurements(name, files)
	if err != nil {
		return v, err
	}
	for _, file := range found {
		if v.Files++; strings.HasPrefix(file, tables) {
			continue // its rows have no checksum
		}
		err := r.each(file, func(where string, _ int64, l *parsedLine) error {
			v.Lines++
			why := l.err
			if what := l.Difference(d.Conditions); why == nil && what != "" {
				why = fmt.Errorf("%s in %s", what, DescriptionFile)
			}
			switch {
			case why == nil && !l.whole():
				why = errors.New("the last line is cut off")
			case why == nil && l.Sum == "":
				v.Unsummed++
			}
			if why != nil {
				v.Damaged = append(v.Damaged, fmt.Sprintf("%s: %v", where, why))
			}
			return nil
		})
		if err != nil {
			v.Damaged = append(v.Damaged, err.Error())
		}
	}
	if len(v.Damaged) > 0 {
		return v, nil
	}
	if d, err = Read(name, files); err != nil { // what several lines say together, and tables
		v.Damaged = append(v.Damaged, err.Error())
	} else if v.Lines == 0 {
		v.Lines, v.Unsummed = d.Len(), d.Len()
	}
	return v, nil
}
