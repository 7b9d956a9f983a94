package hw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
)

// FilePlace is the place of errors in a device file of a user's. A caller that knows the file replaces it.
const FilePlace = "device file"

// Header identifies the device of a file.
type Header struct {
	// File is the file name for errors. It is not part of the YAML.
	File string `yaml:"-"`

	// Arch is the architecture id (sm89, gfx942). Device is the device id (rtx4090, mi300x).
	Arch   string `yaml:"arch"`
	Device string `yaml:"device"`
	// Name is the product name.
	Name   string `yaml:"name"`
	Vendor string `yaml:"vendor"`
	// Aliases are other names that the command line accepts for this device.
	Aliases []string `yaml:"aliases,omitempty"`
	// Default marks the device of its architecture that is used if none is named.
	Default bool `yaml:"default,omitempty"`
	// Here marks the file of one GPU that `origami here` measured. The device may be one that the program has a file of:
	// the numbers here then fill what that lacks.
	Here bool `yaml:"here,omitempty"`
}

// Sheet is the content of a device file, configs/*.yaml.
type Sheet struct {
	Header
	// Derived and Calibrated are the two lower tiers, by parameter name.
	Derived, Calibrated map[string]Number
	// Atoms are the matrix instructions.
	Atoms []Atom
	// Fitted are numbers of a model that were fitted to measurements of this device, nil if there are none.
	Fitted *Fitted
	// Times are rows of residual.Measured, as JSON has them: what kernels took on this very GPU.
	Times []map[string]any
}

// WithLive returns a copy of the sheet in which values from the driver of this machine replace derived numbers that
// differ. Attributes are by parameter name, in the unit of its spec. Attributes that no spec declares are ignored.
func (s *Sheet) WithLive(specs []Spec, attributes map[string]float64) *Sheet {
	live := *s
	live.Derived = maps.Clone(s.Derived)
	if live.Derived == nil {
		live.Derived = map[string]Number{}
	}
	for _, spec := range specs {
		value, ok := attributes[spec.Name]
		if !ok {
			continue
		}
		if n, ok := s.Derived[spec.Name]; ok {
			if known, err := unit.Convert(n.Value, n.Unit, spec.Unit); err == nil && known == value {
				continue
			}
		}
		live.Derived[spec.Name] = Number{Value: value, Unit: spec.Unit, Source: LiveSource, Method: Driver}
	}
	return &live
}

// SheetOf returns a sheet with the parameters of a device. Numbers without a date get day. An override becomes an
// assumption of the user's. live is the source of numbers that the driver of this machine reports.
func SheetOf(h Header, params Set, day, live string) *Sheet {
	s := &Sheet{Header: h, Derived: map[string]Number{}, Calibrated: map[string]Number{}}
	for _, p := range params {
		n := p.Number
		if p.Live() {
			n.Source, n.Date = live, day
		} else if n.Date == "" {
			n.Date = day
		}
		switch p.Tier {
		case Calibrated:
			s.Calibrated[p.Name] = n
		case Override:
			n.Source, n.Method = "an override of the user's", Assumed
			s.Derived[p.Name] = n
		case Derived:
			s.Derived[p.Name] = n
		}
	}
	return s
}

// document is the YAML form of a Sheet.
type document struct {
	Header     `yaml:",inline"`
	Derived    map[string]writtenNumber `yaml:"derived"`
	Calibrated map[string]writtenNumber `yaml:"calibrated"`
	Atoms      []Atom                   `yaml:"atoms"`
	Fitted     *writtenFitted           `yaml:"fitted,omitempty"`
	Times      []flowMap                `yaml:"times,omitempty"`
}

// writtenNumber is the YAML form of a Number. It distinguishes a missing value from zero.
type writtenNumber struct {
	Value  *float64 `yaml:"value"`
	Unit   string   `yaml:"unit"`
	Source string   `yaml:"source"`
	Method Method   `yaml:"method"`
	Date   string   `yaml:"date"`
	Clock  float64  `yaml:"clock_hz,omitempty"`
	Spread float64  `yaml:"spread,omitempty"`
}

// Atom is one matrix instruction: D[m×n] += A[m×k]·B[k×n].
type Atom struct {
	// Type is the operand type in the vendor's terms (fp16, xf32, f8, …).
	Type string `yaml:"type"`
	M    int    `yaml:"m"`
	N    int    `yaml:"n"`
	K    int    `yaml:"k"`
	// Cycles is the latency of one instruction in SM or CU cycles.
	Cycles float64 `yaml:"cycles"`
	Source string  `yaml:"source"`
	Method Method  `yaml:"method"`
	Date   string  `yaml:"date"`
}

// DecodeSheet reads a device file strictly. Unknown fields, missing provenance, unknown methods and dates that are not
// YYYY-MM-DD are errors. An error names the file and, if the YAML decoder reports it, the line.
func DecodeSheet(file string, data []byte) (*Sheet, error) {
	var doc document
	if err := decodeStrictly(file, data, &doc); err != nil {
		return nil, err
	}
	if err := doc.check(); err != nil {
		return nil, err.At("%s", file)
	}
	sheet := &Sheet{Header: doc.Header, Atoms: doc.Atoms}
	sheet.File = file
	for _, row := range doc.Times {
		sheet.Times = append(sheet.Times, row)
	}
	var err error
	if sheet.Fitted, err = doc.Fitted.fitted(); err != nil {
		return nil, diag.Inputf("fitted: %v", err).At("%s", file).Do("see configs/README.md for the fields")
	}
	if sheet.Derived, err = numbers(file, "derived", doc.Derived); err != nil {
		return nil, err
	}
	if sheet.Calibrated, err = numbers(file, "calibrated", doc.Calibrated); err != nil {
		return nil, err
	}
	for i, a := range sheet.Atoms {
		if a.Type == "" || a.M < 1 || a.N < 1 || a.K < 1 || !(a.Cycles > 0) || math.IsInf(a.Cycles, 0) {
			return nil, diag.Inputf("atoms[%d] needs type, m, n, k and cycles, all positive", i).
				At("%s", file).Do("see configs/README.md for the fields")
		}
		if err := checkProvenance(a.Source, a.Method, a.Date); err != nil {
			return nil, diag.Inputf("atoms[%d] %v", i, err).
				At("%s", file).Do("every number needs source, method and date")
		}
	}
	return sheet, nil
}

// DecodeHeader reads the part of a device file before its numbers, which takes a tenth of the time of DecodeSheet. It
// ignores header fields after the numbers. A test ensures that the files in configs/ have none.
func DecodeHeader(file string, data []byte) (Header, error) {
	head := data
	for _, section := range []string{"\nderived:", "\ncalibrated:", "\natoms:", "\nfitted:", "\nchecked:"} {
		head, _, _ = bytes.Cut(head, []byte(section))
	}
	h, plain := plainHeader(string(head))
	if !plain {
		h = Header{}
		if err := decodeStrictly(file, head, &h); err != nil {
			return Header{}, err
		}
	}
	if err := h.check(); err != nil {
		return Header{}, err.At("%s", file)
	}
	h.File = file
	return h, nil
}

func (h *Header) check() *diag.Error {
	for _, field := range []struct{ name, value string }{
		{"arch", h.Arch}, {"device", h.Device}, {"name", h.Name}, {"vendor", h.Vendor},
	} {
		if field.value == "" {
			return diag.Inputf("%s is missing", field.name).Do("see configs/README.md for the fields")
		}
	}
	return nil
}

func decodeStrictly(file string, data []byte, into any) error {
	if len(data) > int(limit.Device) {
		return diag.Inputf("it is larger than %v, the most that is read of such a file", limit.Device).At("%s", file).
			Do("write one device per file")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		return diag.Inputf("not a device file: %v", err).At("%s", file).Do("see configs/README.md for the fields")
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return diag.Inputf("a second YAML document follows the first").At("%s", file).Do("write one device per file")
	}
	return nil
}

// numbers checks one tier of a file.
func numbers(file, tier string, written map[string]writtenNumber) (map[string]Number, error) {
	out := make(map[string]Number, len(written))
	for _, name := range slices.Sorted(maps.Keys(written)) {
		w := written[name]
		err := checkProvenance(w.Source, w.Method, w.Date)
		switch {
		case w.Value == nil:
			err = errors.New("has no value")
		case w.Unit == "":
			err = errors.New("has no unit")
		case !(w.Clock >= 0 && w.Clock < 1e12) || !(w.Spread >= 0 && w.Spread < 1):
			err = fmt.Errorf("has a clock_hz of %v and a spread of %v", w.Clock, w.Spread)
		}
		if err != nil {
			return nil, diag.Inputf("%s.%s %v", tier, name, err).
				At("%s", file).Do("every number needs value, unit, source, method and date")
		}
		if tier == "calibrated" && w.Method != Microbenchmark {
			return nil, diag.Inputf("calibrated.%s has method %s", name, w.Method).
				At("%s", file).Do("only microbenchmark figures are calibrated; move it to derived:")
		}
		out[name] = Number{Value: *w.Value, Unit: w.Unit, Source: w.Source, Method: w.Method, Date: w.Date,
			Clock: unit.Hertz(w.Clock), Spread: w.Spread}
	}
	return out, nil
}

// EncodeSheet writes a device file that DecodeSheet reads as the same sheet.
func EncodeSheet(s *Sheet) ([]byte, error) {
	doc := document{Header: s.Header, Derived: written(s.Derived), Calibrated: written(s.Calibrated), Atoms: s.Atoms}
	for _, row := range s.Times {
		doc.Times = append(doc.Times, row)
	}
	var err error
	if doc.Fitted, err = writeFitted(s.Fitted); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return nil, err
	}
	_, err = DecodeSheet(s.File, text.Bytes())
	return text.Bytes(), err
}

func written(numbers map[string]Number) map[string]writtenNumber {
	out := make(map[string]writtenNumber, len(numbers))
	for name, n := range numbers {
		out[name] = writtenNumber{&n.Value, n.Unit, n.Source, n.Method, n.Date, float64(n.Clock), n.Spread}
	}
	return out
}

func checkProvenance(source string, method Method, date string) error {
	if source == "" {
		return errors.New("has no source")
	}
	switch method {
	case Datasheet, Driver, ISA, Microbenchmark, Library, Formula, Assumed:
	case "":
		return errors.New("has no method")
	default:
		return fmt.Errorf("has unknown method %q", method)
	}
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return fmt.Errorf("has date %q, which is not YYYY-MM-DD", date)
	}
	return nil
}
