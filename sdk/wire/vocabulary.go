package wire

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
)

// rule says which values of a field are refused. Without one a number is an amount, which is 0 or at least leastNumber,
// a whole number is not negative, and an enumeration and a Name, which is not empty, must be there.
type rule string

const (
	amount   rule = "amount"
	positive rule = "positive" // at least leastNumber
	finite   rule = "finite"   // it may be negative or small
	anything rule = "any"
	required rule = "required" // a text that is there and not empty
	id       rule = "id"       // a text that a user can type
	optional rule = "optional" // an enumeration that may be missing
	skip     rule = "skip"     // the field is not in the JSON
)

// mostNumber bounds the magnitude of every number, leastNumber every amount that is not zero. They lie far outside
// of any quantity, and what the host computes from amounts between them, as a rate from cycles and a clock, is neither
// infinite nor zero.
const (
	leastNumber = 1e-100
	mostNumber  = 1e100
)

// admits returns what is wrong with a number.
func (is rule) admits(v float64) error {
	if is != anything && (!(math.Abs(v) <= mostNumber) || is != finite && v < leastNumber && (v != 0 || is == positive)) {
		return fmt.Errorf("it is %v", v)
	}
	return nil
}

// maxID is the longest id in bytes.
const maxID = 64

// admitsText returns what is wrong with a text. An id is a word wherever it is shown: --arch has ids between commas,
// "@", ":" and "=", and a shell completes them.
func (is rule) admitsText(s string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.+-", r)
	}
	switch {
	case s == "" && (is == required || is == id):
		return errors.New(": it is empty")
	case is == id && (len(s) > maxID || strings.ContainsFunc(s, odd)):
		return fmt.Errorf(": %q is no id, which has up to %d letters, digits and the characters _ . + -", s, maxID)
	}
	return nil
}

// rules are the rules of fields, where the rule of the field's type does not hold.
var rules = map[reflect.Type]string{
	reflect.TypeFor[arch.Description](): "Arch:required Device:required Model:id Models:id Kernels:id Clock:positive " +
		"Conversion:skip",
	reflect.TypeFor[arch.Atom]():        "Latency:finite",
	reflect.TypeFor[arch.Ceiling]():     "DType:optional",
	reflect.TypeFor[arch.Constant]():    "Value:finite Low:any High:finite",
	reflect.TypeFor[arch.Order]():       "Window:finite",
	reflect.TypeFor[arch.Uncertainty](): "Kernel:required Level:positive",
	reflect.TypeFor[arch.ErrorRange]():  "Bound:optional Low:positive High:positive",
	reflect.TypeFor[arch.Fitted]():      "DataSet:required",
	reflect.TypeFor[arch.Level]():       "Capacity:finite Latency:finite Bound:optional",
	reflect.TypeFor[arch.Bandwidth]():   "Peak:finite C0:finite C1:finite C2:finite",
	reflect.TypeFor[arch.ArchEntry]():   "ID:id Models:id Kernels:id",
	reflect.TypeFor[arch.DeviceEntry](): "ID:id Aliases:id Name:any",
	reflect.TypeFor[arch.LiveDevice]():  "Attributes:finite",
	reflect.TypeFor[arch.OpenRequest](): "Compiled:skip Characterization:skip DeviceFile:skip",
	reflect.TypeFor[gemm.Axis]():        "Name:any",
	reflect.TypeFor[gemm.Record]():      "Alpha:any Beta:any",
	reflect.TypeFor[hw.Param]():         "Name:any Value:finite",
	reflect.TypeFor[hw.Atom]():          "Type:required Cycles:positive",
	reflect.TypeFor[hw.OverrideValue](): "Value:any",
	reflect.TypeFor[exec.Device]():      "Arch:required Attributes:finite",
	reflect.TypeFor[exec.Argument]():    "DType:optional",
	reflect.TypeFor[exec.Environment](): "TemperatureC:finite",
	reflect.TypeFor[exec.Sample]():      "Time:positive",
	reflect.TypeFor[exec.Reading]():     "Time:positive",
	reflect.TypeFor[compileQuestion]():  "Problem:required Config:required",
	reflect.TypeFor[numerics]():         "MaxError:any",
	reflect.TypeFor[calibrate.Probe]():  "Work:positive",
	reflect.TypeFor[calibrate.Number](): "Value:finite",
	reflect.TypeFor[calibrate.Value]():  "Value:any Spread:any Clock:any",
	reflect.TypeFor[ladder.Ladder]():    "Family:required Device:required",
	reflect.TypeFor[ladder.Rung]():      "Operands:optional",
	reflect.TypeFor[ladder.Claim]():     "Rung:required",
	reflect.TypeFor[ladder.Cost]():      "Term:required",
	reflect.TypeFor[ladder.Time]():      "Rung:required Rate:positive",
}

// words are the words of enumerations, by number, and what texts may be. A number without a word is no value.
var words = map[reflect.Type][]string{
	reflect.TypeFor[arch.Bound]():        spelled(arch.BoundUnknown, arch.Bound(arch.NumBounds-1)),
	reflect.TypeFor[arch.Dim]():          spelled(arch.DimM, arch.DimNone),
	reflect.TypeFor[arch.Key]():          {arch.KeyIntensity: "intensity", arch.KeyLargeTile: "large_tile"},
	reflect.TypeFor[arch.Place]():        spelled(arch.AtCompute, arch.AtDRAM),
	reflect.TypeFor[arch.TermKind]():     spelled(arch.KindIntermediate, arch.KindTotal),
	reflect.TypeFor[arch.Rung]():         texts(arch.Rungs()),
	reflect.TypeFor[arch.Evidence]():     texts(arch.Grades),
	reflect.TypeFor[gemm.AxisType]():     spelled(gemm.Enumeration, gemm.Integer),
	reflect.TypeFor[gemm.DType]():        spelled(gemm.FP16, slices.Max(append(gemm.DTypes(), gemm.OutputTypes()...))),
	reflect.TypeFor[gemm.Major]():        {gemm.MajorK: "k", gemm.MajorM: "m", gemm.MajorN: "n"},
	reflect.TypeFor[hw.Tier]():           spelled(hw.Derived, hw.Override),
	reflect.TypeFor[exec.ArgumentKind](): {"word32", "word64", "buffer", "counters"},
}

// spelled lists the words of the numbers up to the last, by number.
func spelled[T interface {
	~uint8
	fmt.Stringer
}](first, last T) []string {
	list := make([]string, last+1)
	for v := first; v <= last; v++ {
		list[v] = v.String()
	}
	return list
}

func texts[T ~string](values []T) []string { return all(values, func(v T) string { return string(v) }) }

// standIns are the types that are written as others: a time in nanoseconds since 1970-01-01 UTC.
var standIns = map[reflect.Type]standIn{
	reflect.TypeFor[gemm.Problem]():  stands(gemm.Problem.Record, (*gemm.Record).Problem),
	reflect.TypeFor[exec.Numerics](): stands(toNumerics, fromNumerics),
	reflect.TypeFor[gemm.Axes](): stands(func(x gemm.Axes) map[string]string { return maps.Collect(x.All()) },
		func(named *map[string]string) (gemm.Axes, error) {
			var values []gemm.AxisValue
			for name, value := range *named {
				values = append(values, gemm.AxisValue{Name: name, Value: value})
			}
			return gemm.NewAxes(values...)
		}),
	reflect.TypeFor[time.Time](): stands(time.Time.UnixNano, func(nanoseconds *int64) (time.Time, error) {
		if *nanoseconds == 0 { // unknown
			return time.Time{}, nil
		}
		return time.Unix(0, *nanoseconds).UTC(), nil
	}),
}

// mostSpread is a standard deviation by a factor of 22,000, mostWidening the factor that is left of an interval that
// says nothing.
const (
	mostSpread   = 10
	mostWidening = 1e6
)

// sound returns what is wrong with what a pointer leads to, beyond its fields one by one.
func sound(v any) error {
	ascending := func(low, high float64) error {
		if low > high {
			return fmt.Errorf("from %v to %v", low, high)
		}
		return nil
	}
	switch x := v.(type) {
	case *arch.Constant:
		if (x.Low != 0 || x.High != 0) && !x.Fits() {
			return fmt.Errorf("%s is %v, and is fitted between %v and %v", x.Name, x.Value, x.Low, x.High)
		}
		if x.Reader() != "" && x.Value < 0 {
			return fmt.Errorf("the constant %s is %v, below 0", x.Name, x.Value)
		}
	case *arch.Ceiling:
		if x.Level != arch.AtCompute {
			x.DType = 0
		} else if x.DType == 0 {
			return errors.New("an unspecified element type")
		}
	case *gemm.Types:
		if !x.Valid() {
			return fmt.Errorf("%s operands are multiplied into %s results", x.In, x.Out)
		}
	case *arch.Uncertainty:
		if x.Level > 1 || max(x.Sigma, x.PlanSigma, x.MedianError) > mostSpread || x.Widening > mostWidening ||
			x.Widening > 0 && x.Widening < 1 {
			return fmt.Errorf("a level of %v, spreads of %v and %v, a median error of %v and a widening of %v", x.Level, x.Sigma,
				x.PlanSigma, x.MedianError, x.Widening)
		}
	case *arch.ErrorRange:
		return ascending(x.Low, x.High)
	case *arch.Range:
		return ascending(x.Low, x.High)
	case *measureQuestion:
		return runsInReach(x.Runs)
	case *runQuestion:
		return runsInReach(x.Runs)
	case *ladder.Rung:
		if x.Config == (gemm.Config{}) {
			return errors.New("it has no configuration")
		}
	}
	return nil
}

func runsInReach(runs int) error {
	if runs < 1 || runs > maxRuns {
		return fmt.Errorf("%d runs", runs)
	}
	return nil
}
