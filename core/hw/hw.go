// Package hw defines hardware parameters and their provenance. Every number has a unit, a source, a method and a date.
// A number comes from the highest of three tiers that has it:
//
//  1. Derived: data sheets, driver properties, or a documented formula over these;
//  2. Calibrated: microbenchmarks of the device, from the table in configs/;
//  3. Override: a JSON file that the user names.
package hw

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/unit"
)

// Tier is the origin of a resolved number. A higher tier replaces a lower one.
type Tier uint8

// The tiers, from low to high.
const (
	Derived Tier = iota + 1
	Calibrated
	Override
)

// String returns the tier's name.
func (t Tier) String() string {
	if t >= Derived && t <= Override {
		return [...]string{Derived: "derived", Calibrated: "calibrated", Override: "override"}[t]
	}
	return fmt.Sprintf("tier(%d)", uint8(t))
}

// Method is the way in which a number was obtained.
type Method string

// The methods that a device file may name.
const (
	Datasheet      Method = "datasheet"      // published by the vendor
	Driver         Method = "driver"         // reported by the driver
	ISA            Method = "isa"            // fixed by the instruction set
	Microbenchmark Method = "microbenchmark" // measured on the device
	Library        Method = "library"        // compiled into the library whose model origami reproduces
	Formula        Method = "formula"        // computed from other numbers; the source gives the formula
	Assumed        Method = "assumed"        // no figure exists; the source gives the reason for the choice
	User           Method = "user"           // from an override
)

// Number is a value with its provenance.
type Number struct {
	Value  float64
	Unit   string
	Source string
	Method Method
	Date   string // YYYY-MM-DD
	// Clock is the clock while the number was measured, Spread the coefficient of variation of its rounds. They are 0 if
	// unknown.
	Clock  unit.Hertz
	Spread float64
}

// Param is a resolved parameter: the Number of the highest tier that has one.
type Param struct {
	Name string
	Number
	Tier Tier

	nominal float64 // Set.Nominal, if it is not Value
	read    *bool   // Reads is told here that Lookup returned the parameter
}

// Spec declares a parameter that a model needs: its name, the unit that the model computes in, and its valid values.
type Spec struct {
	Name string
	Unit string
	// Doc describes the parameter in a few words.
	Doc string
	// Integer marks counts and sizes, which must be whole numbers.
	Integer bool
	// AllowZero permits 0. Otherwise the value must be positive. A negative value is never valid.
	AllowZero bool
	// Max is the largest valid value; 0 means no limit.
	Max float64
	// Optional parameters may be missing from every tier, and then from the Set too.
	Optional bool
	// Calibrates marks the parameters that need a microbenchmark of the device. If all of them come from the calibrated
	// tier or above, the rung of an answer is "calibrated".
	Calibrates bool
}

// LiveSource is the source of a number that the driver of this machine reports.
const LiveSource = "driver of this machine"

// Live reports whether the number comes from the driver of this machine.
func (p *Param) Live() bool { return p.Source == LiveSource }

const scaledFrom = "scaled from "

// Scaled marks a number as scaled from the number of another device. The previous source of the number, the formula,
// becomes part of the new source.
func (n Number) Scaled(device string) Number {
	n.Source = scaledFrom + device + ": " + n.Source
	return n
}

// ScaledFrom returns the device from which the number was scaled, as "arch@device". It is empty for other numbers.
func (p *Param) ScaledFrom() string {
	if rest, ok := strings.CutPrefix(p.Source, scaledFrom); ok {
		device, _, _ := strings.Cut(rest, ": ")
		return device
	}
	return ""
}

// Set is the result of Resolve: every declared parameter that has a value, in the order of the specs.
type Set []Param

// Lookup returns a parameter. ok is false if the parameter is optional and has no value.
func (s Set) Lookup(name string) (p Param, ok bool) {
	for i := range s {
		if s[i].Name == name {
			if s[i].read != nil {
				*s[i].read = true
			}
			return s[i], true
		}
	}
	return Param{}, false
}

// Reads calls use with the set and returns the parameters that use looks up.
func (s Set) Reads(use func(Set)) []string {
	traced, read := slices.Clone(s), make([]bool, len(s))
	for i := range traced {
		traced[i].read = &read[i]
	}
	use(traced)
	var names []string
	for i := range s {
		if read[i] {
			names = append(names, s[i].Name)
		}
	}
	return names
}

func (s Set) required(name string) Param {
	p, ok := s.Lookup(name)
	if !ok {
		panic("hw: parameter " + name + " was not declared as required")
	}
	return p
}

// Get returns the value of a required parameter. It panics on any other name, which is a bug in the model.
func (s Set) Get(name string) float64 { return s.required(name).Value }

// Nominal returns the value that a required parameter has without an override of it.
func (s Set) Nominal(name string) float64 {
	p := s.required(name)
	if p.nominal != 0 {
		return p.nominal
	}
	return p.Value
}

// Unlike returns the names of the parameters that have another value in another set, or none.
func (s Set) Unlike(other Set) (names []string) {
	for i := range s {
		if p, ok := other.Lookup(s[i].Name); !ok || p.Value != s[i].Value {
			names = append(names, s[i].Name)
		}
	}
	return names
}

// Int returns Get as an int, for parameters whose spec says Integer.
func (s Set) Int(name string) int { return int(s.Get(name)) }

// Calibrated reports whether every parameter marked Calibrates comes from the calibrated tier or above. It is false if
// no parameter is marked.
func (s Set) Calibrated(specs []Spec) bool {
	marked := false
	for _, spec := range specs {
		if !spec.Calibrates {
			continue
		}
		marked = true
		if p, ok := s.Lookup(spec.Name); !ok || p.Tier < Calibrated {
			return false
		}
	}
	return marked
}

// Resolve gives every declared parameter its value from the highest tier that has it. It converts numbers to the spec's
// unit and checks them against its bounds and against the range of the unit. An error names the parameter and its
// place.
//
// derive, which may be nil, computes numbers of the derived tier that the sheet lacks, for example bandwidth per cycle
// from bandwidth and clock. Resolve calls it in the order of specs, with the parameters resolved so far.
func Resolve(
	specs []Spec, sheet *Sheet, derive func(name string, known Set) (Number, bool), overrides map[string]OverrideValue,
) (Set, error) {
	declared := make([]string, len(specs))
	byName := make(map[string]Spec, len(specs))
	for i, spec := range specs {
		declared[i], byName[spec.Name] = spec.Name, spec
	}
	for _, tier := range []map[string]Number{sheet.Derived, sheet.Calibrated} {
		for _, name := range slices.Sorted(maps.Keys(tier)) {
			if _, ok := byName[name]; !ok {
				return nil, unknownParameter(name, sheet, declared).At("%s", sheet.File)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if _, ok := byName[name]; !ok {
			return nil, unknownParameter(name, sheet, declared).At(OverridePlace)
		}
	}

	set := make(Set, 0, len(specs))
	for _, spec := range specs {
		param, ok := Param{Name: spec.Name}, false
		if o, has := overrides[spec.Name]; has {
			number := Number{Value: o.Value, Unit: o.Unit, Source: "hardware override", Method: User}
			if number.Unit == "" {
				number.Unit = spec.Unit
			}
			param.Number, param.Tier, ok = number, Override, true
		} else if number, has := sheet.Calibrated[spec.Name]; has {
			param.Number, param.Tier, ok = number, Calibrated, true
		} else if number, has := sheet.Derived[spec.Name]; has {
			param.Number, param.Tier, ok = number, Derived, true
		} else if derive != nil {
			param.Number, ok = derive(spec.Name, set)
			param.Tier = Derived
		}
		where := sheet.File
		if param.Tier == Override {
			where = OverridePlace
		}
		if !ok && spec.Optional {
			continue
		}
		if !ok {
			return nil, diag.Inputf("%s@%s has no value for %s (%s)", sheet.Arch, sheet.Device, spec.Name, spec.Doc).
				At("%s", where).
				Do("give it as an override, or in the device file with unit, source, method and date").
				Coded(diag.CodeMissingParameter, sheet.Arch)
		}
		if err := spec.normalise(&param.Number); err != nil {
			return nil, diag.Inputf("%s of %s: %v", spec.Name, sheet.Arch, err).
				At("%s", where).Do("give %s in %s", spec.Name, spec.Unit)
		}
		set = append(set, param)
	}
	return set, nil
}

// Rescaled returns the parameters of a device that differs by overrides from a device with the parameters like. An
// override changes a fact, such as the number of SMs, and scale gives the parameters that follow from it: their values
// on the device with these facts, from those on the known device. It is called in the order of the set, with the
// parameters rescaled so far. Parameters with an override keep it.
func (s Set) Rescaled(like Set, scale func(name string, known, like Set) (Number, bool)) Set {
	out := slices.Clone(s)
	for i := range out {
		p := &out[i]
		was, ok := like.Lookup(p.Name)
		if !ok {
			continue
		}
		nominal := was.Value
		n, ok := scale(p.Name, out, like)
		if ok && n.Value != was.Value {
			nominal = n.Value
		}
		switch {
		case nominal == p.Value:
		case p.Tier == Override:
			p.nominal = nominal
		default:
			p.Value, p.Source = nominal, was.Source+"; with the overrides scaled "+n.Source
		}
	}
	return out
}

// normalise converts a number to the spec's unit and checks its bounds.
func (s Spec) normalise(n *Number) error {
	value, err := unit.Convert(n.Value, n.Unit, s.Unit)
	if err != nil {
		return err
	}
	low, high := unit.Range(s.Unit)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return fmt.Errorf("value %v is not finite", n.Value)
	case value < 0:
		return fmt.Errorf("value %v %s is negative", n.Value, n.Unit)
	case value == 0 && !s.AllowZero:
		return fmt.Errorf("value is zero")
	case s.Max > 0 && value > s.Max:
		return fmt.Errorf("value %v %s is above %v", n.Value, n.Unit, s.Max)
	case s.Integer && (value != math.Trunc(value) || value > 1<<53):
		return fmt.Errorf("value %v %s is not a whole number", n.Value, n.Unit)
	case value != 0 && (value < low || value > high):
		return fmt.Errorf("value %v %s is out of range: no hardware has less than %.4g or more than %.4g", n.Value,
			n.Unit, low, high)
	}
	n.Value, n.Unit = value, s.Unit
	return nil
}

// OverridePlace is the place of an override in the errors of Resolve. A caller that knows the file replaces it.
const OverridePlace = "hardware override"

func unknownParameter(name string, sheet *Sheet, declared []string) *diag.Error {
	err := diag.Inputf("%s has no parameter %q", sheet.Arch, name).Coded(diag.CodeUnknownParameter, sheet.Arch)
	if near := diag.Nearest(name, declared, 1); len(near) > 0 {
		return err.Do("did you mean %s?", near[0])
	}
	return err.Do("the description of %s lists its parameters", sheet.Arch)
}
