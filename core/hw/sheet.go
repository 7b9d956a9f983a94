package hw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
)

// Sheet is one device as configs/*.yaml describes it.
type Sheet struct {
	// File is the name that errors point at. It is not part of the YAML.
	File string `yaml:"-"`

	// Arch is the architecture id (sm89, gfx942), Device the device id within it (rtx4090, mi300x).
	Arch   string `yaml:"arch"`
	Device string `yaml:"device"`
	// Name is the product's name, Vendor its maker.
	Name   string `yaml:"name"`
	Vendor string `yaml:"vendor"`
	// Aliases are other names that the command line accepts for this device.
	Aliases []string `yaml:"aliases"`
	// Default marks the device that the bare architecture id means.
	Default bool `yaml:"default"`

	// Derived and Calibrated are the two lower tiers, by parameter name.
	Derived    map[string]Number `yaml:"derived"`
	Calibrated map[string]Number `yaml:"calibrated"`
	// Atoms are the matrix instructions.
	Atoms []Atom `yaml:"atoms"`
}

// Atom is one matrix instruction: D[m×n] += A[m×k]·B[k×n].
type Atom struct {
	// Type is the operand type in the architecture's own vocabulary (fp16, xf32, f8, …).
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

// DecodeSheet reads a device file strictly: unknown fields, missing provenance, unknown methods, and dates that are not
// YYYY-MM-DD are errors that name the file and, where YAML knows it, the line.
func DecodeSheet(file string, data []byte) (*Sheet, error) {
	sheet := &Sheet{File: file}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(sheet); err != nil {
		return nil, diag.Inputf("not a device file: %v", err).At("%s", file).Do("see configs/README.md for the fields")
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, diag.Inputf("a second YAML document follows the first").At("%s", file).Do("write one device per file")
	}
	for _, field := range []struct{ name, value string }{{"arch", sheet.Arch}, {"device", sheet.Device}, {"name", sheet.Name}, {"vendor", sheet.Vendor}} {
		if field.value == "" {
			return nil, diag.Inputf("%s is missing", field.name).At("%s", file).Do("see configs/README.md for the fields")
		}
	}
	// A second reading tells a value that is absent from one that is zero.
	var given struct {
		Derived, Calibrated map[string]struct{ Value *float64 }
	}
	if err := yaml.Unmarshal(data, &given); err != nil {
		return nil, diag.Inputf("not a device file: %v", err).At("%s", file).Do("see configs/README.md for the fields")
	}
	for _, tier := range []struct {
		name    string
		numbers map[string]Number
		given   map[string]struct{ Value *float64 }
	}{{"derived", sheet.Derived, given.Derived}, {"calibrated", sheet.Calibrated, given.Calibrated}} {
		for _, name := range sortedKeys(tier.numbers) {
			n := tier.numbers[name]
			err := checkProvenance(n.Source, n.Method, n.Date)
			switch {
			case tier.given[name].Value == nil:
				err = errors.New("has no value")
			case n.Unit == "":
				err = errors.New("has no unit")
			}
			if err != nil {
				return nil, diag.Inputf("%s.%s %v", tier.name, name, err).At("%s", file).Do("every number needs value, unit, source, method and date")
			}
			if tier.name == "calibrated" && n.Method != Microbenchmark {
				return nil, diag.Inputf("calibrated.%s has method %s", name, n.Method).At("%s", file).Do("only microbenchmark figures are calibrated; move it to derived:")
			}
		}
	}
	for i, a := range sheet.Atoms {
		if a.Type == "" || a.M < 1 || a.N < 1 || a.K < 1 || !(a.Cycles > 0) || math.IsInf(a.Cycles, 0) {
			return nil, diag.Inputf("atoms[%d] needs type, m, n, k and cycles, all positive", i).At("%s", file).Do("see configs/README.md for the fields")
		}
		if err := checkProvenance(a.Source, a.Method, a.Date); err != nil {
			return nil, diag.Inputf("atoms[%d] %v", i, err).At("%s", file).Do("every number needs source, method and date")
		}
	}
	return sheet, nil
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
