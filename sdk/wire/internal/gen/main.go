// Command gen writes the conversions between the types of core and the messages of the protocol, zmessages.go. A field
// goes to the field of the message that has its name, or its name and its unit. A field without one is an error.
package main

import (
	"fmt"
	"go/format"
	"log"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// message is a type of core and its message. Rules has words for fields that are not converted by their type alone:
//
//	Field=name       the field of the message has another name
//	Field:required   the text is not empty. Every Name is
//	Field:valid      the text comes from a user or a driver, and is made valid UTF-8
//	Field:finite     the number may be negative or small. Others are amounts: zero, or from leastNumber
//	Field:positive   the number is not zero
//	Field:any        any number or text
//	Field:optional   the element type may be unspecified
//	Field:skip       the hand-written part carries the field
//	:check           a hand-written method of check looks at the whole
type message struct {
	core  any
	wire  protoreflect.ProtoMessage
	rules string
}

var messages = []message{
	{arch.Description{}, &pb.Description{}, `Arch:required Device:required Model:required Conversion:skip
		 Peak=Peaks Clock:positive`},
	{arch.PeakRate{}, &pb.PeakRate{}, ``},
	{arch.Atom{}, &pb.Atom{}, `Latency:finite`},
	{arch.Ceiling{}, &pb.Ceiling{}, `Level=Place DType:optional :check`},
	{arch.Constant{}, &pb.Constant{}, `Value:finite Low:any High:finite :check`},
	{arch.Term{}, &pb.Term{}, ``},
	{arch.Order{}, &pb.Order{}, `Window:finite`},
	{arch.OptionValue{}, &pb.OptionValue{}, ``},
	{arch.Uncertainty{}, &pb.Uncertainty{}, `Kernel:required Level:positive Sigma=Spread PlanSigma=PlanSpread
		:check`},
	{arch.ErrorRange{}, &pb.ErrorRange{}, `Low:positive High:positive :check`},
	{arch.Checked{}, &pb.Checked{}, `Split=SplitK`},
	{arch.Layout{}, &pb.Layout{}, ``},
	{arch.Range{}, &pb.Range{}, `:check`},
	{arch.Fitted{}, &pb.Fitted{}, `DataSet:required :check`},
	{arch.Family{}, &pb.Family{}, ``},
	{arch.SumOrder{}, &pb.SumOrder{}, ``},
	{arch.AxisValues{}, &pb.AxisValues{}, ``},
	{arch.Level{}, &pb.Level{}, `Capacity:finite Latency:finite`},
	{arch.LevelNames{}, &pb.LevelNames{}, ``},
	{arch.Bandwidth{}, &pb.Bandwidth{}, `Peak:finite C0:finite C1:finite C2:finite`},
	{arch.Mapping{}, &pb.MappingResponse{}, ``},
	{arch.Manifest{}, &pb.Manifest{}, ``},
	{arch.ArchEntry{}, &pb.ArchEntry{}, `ID:required`},
	{arch.DeviceEntry{}, &pb.DeviceEntry{}, `ID:required Name:any`},
	{arch.Option{}, &pb.Option{}, ``},
	{arch.LiveDevice{}, &pb.LiveDevice{}, `Name:valid`},
	{gemm.Types{}, &pb.Types{}, `In=Operands Out=Results :check`},
	{gemm.Axis{}, &pb.Axis{}, `Name:any`},
	{hw.Param{}, &pb.Param{}, `Name:any Value:finite`},
	{hw.Atom{}, &pb.DeviceAtom{}, `Type:required Cycles:positive`},
	{exec.Manifest{}, &pb.ExecutorManifest{}, ``},
	{exec.Device{}, &pb.Device{}, `Name:valid Arch:required`},
	{exec.Resources{}, &pb.Resources{}, ``},
	{exec.Numerics{}, &pb.Numerics{}, `MaxError:any Reference:valid`},
	{exec.Program{}, &pb.Program{}, `Text:valid Entry:valid`},
	{exec.Argument{}, &pb.Argument{}, `DType:optional`},
	{exec.Reading{}, &pb.Reading{}, `Time:positive`},
	{exec.Environment{}, &pb.Environment{}, `Driver:valid Runtime:valid TemperatureC=TemperatureCelsius
		TemperatureC:finite`},
	{calibrate.Probe{}, &pb.Probe{}, `Work:positive`},
	{calibrate.Value{}, &pb.ProbeValue{}, `Value:any Spread:any Clock:any`},
	{ladder.Ladder{}, &pb.LadderResponse{}, `Family:required Device:required`},
	{ladder.Rung{}, &pb.LadderRung{}, `Operands:optional :check`},
	{ladder.Claim{}, &pb.LadderClaim{}, `Rung:required`},
	{ladder.Cost{}, &pb.LadderCost{}, `Term:required`},
	{ladder.Time{}, &pb.LadderTime{}, `Rung:required Rate:positive`},
}

// enums are the numbered types of core. least is the first valid number in a message, and offset how far the numbers of
// messages are above the numbers of core.
var enums = map[reflect.Type]struct{ least, offset int }{
	reflect.TypeFor[arch.Bound]():        {0, 0},
	reflect.TypeFor[arch.Dim]():          {1, 0},
	reflect.TypeFor[arch.Key]():          {1, 0},
	reflect.TypeFor[arch.Place]():        {1, 1},
	reflect.TypeFor[arch.TermKind]():     {1, 1},
	reflect.TypeFor[gemm.AxisType]():     {1, 0},
	reflect.TypeFor[hw.Tier]():           {1, 0},
	reflect.TypeFor[exec.ArgumentKind](): {1, 1},
}

// byHand are types with conversions of their own: toX, and a method of check.
var byHand = map[reflect.Type][2]string{
	reflect.TypeFor[gemm.DType]():         {"pb.ElementType(%s)", "c.elementType(%s)"},
	reflect.TypeFor[gemm.Major]():         {"toMajor(%s)", "c.major(%s)"},
	reflect.TypeFor[gemm.Config]():        {"toConfig(%s)", "c.config(%s)"},
	reflect.TypeFor[[]gemm.Problem]():     {"toProblems(%s)", "c.problems(%s)"},
	reflect.TypeFor[arch.Rung]():          {"toRung(%s)", "c.rung(%s)"},
	reflect.TypeFor[time.Time]():          {"toTime(%s)", "fromTime(%s)"},
	reflect.TypeFor[map[string]float64](): {"toAttributes(%s)", "c.attributes(%s)"},
}

// suffixes end the names of a message's numbers.
var suffixes = map[reflect.Type]string{
	reflect.TypeFor[unit.Hertz]():          "Hz",
	reflect.TypeFor[unit.Bytes]():          "Bytes",
	reflect.TypeFor[unit.Cycles]():         "Cycles",
	reflect.TypeFor[unit.Seconds]():        "Seconds",
	reflect.TypeFor[unit.BytesPerCycle]():  "BytesPerCycle",
	reflect.TypeFor[unit.BytesPerSecond](): "BytesPerSecond",
	reflect.TypeFor[unit.FlopsPerSecond](): "FlopsPerSecond",
	reflect.TypeFor[time.Time]():           "UnixNanoseconds",
	reflect.TypeFor[gemm.DType]():          "ElementType",
	reflect.TypeFor[string]():              "Value",
}

func main() {
	src, err := source()
	if err == nil {
		err = os.WriteFile("zmessages.go", src, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func source() ([]byte, error) {
	var b strings.Builder
	b.WriteString("// Code generated by internal/gen; DO NOT EDIT.\n\npackage wire\n\nimport (\n")
	for _, path := range []string{"core/arch", "core/calibrate", "core/exec", "core/gemm", "core/hw", "core/ladder",
		"core/unit"} {
		fmt.Fprintf(&b, "%q\n", "github.com/origami-gemm/origami/"+path)
	}
	b.WriteString("pb \"github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1\"\n)\n")
	for _, m := range messages {
		if err := m.write(&b); err != nil {
			return nil, err
		}
	}
	return format.Source([]byte(b.String()))
}

// write writes encodeX and check.decodeX, where X is the name of the message.
func (m *message) write(b *strings.Builder) error {
	core, wire := reflect.TypeOf(m.core), reflect.TypeOf(m.wire).Elem()
	words := map[string]string{} // rules of the fields
	for _, rule := range strings.Fields(m.rules) {
		at := strings.IndexAny(rule, "=:")
		words[rule[:at]+rule[at:at+1]] = rule[at+1:]
	}
	var to, from strings.Builder
	place, what := "", spaced(strings.TrimSuffix(wire.Name(), "Response"))
	for _, f := range reflect.VisibleFields(core) {
		if f.Anonymous || !f.IsExported() || words[f.Name+":"] == "skip" {
			continue
		}
		w, ok := counterpart(f, wire, words[f.Name+"="])
		if !ok {
			return fmt.Errorf("%s.%s is not in %s", core, f.Name, wire)
		}
		word := words[f.Name+":"]
		if f.Name == "Name" && word != "any" {
			place = fmt.Sprintf("outer := c.place\nc.place = place{%q, q.GetName()}\n", what)
		}
		label := spaced(f.Name)
		if place == "" {
			label = what + " " + label
		} else if f.Name == "Name" {
			label, word = "a "+what, "required"
		}
		e, d, err := convert(f.Type, w.Type, word, label, "x."+f.Name, "q.Get"+w.Name+"()")
		if err != nil {
			return fmt.Errorf("%s.%s: %w", core, f.Name, err)
		}
		fmt.Fprintf(&to, "%s: %s,\n", w.Name, e)
		fmt.Fprintf(&from, "x.%s = %s\n", f.Name, d)
	}
	if _, ok := words[":"]; ok {
		fmt.Fprintf(&from, "c.check%s(&x)\n", wire.Name())
	}
	if place != "" {
		from.WriteString("c.place = outer\n")
	}
	fmt.Fprintf(b, "\nfunc encode%s(x *%s) *pb.%[1]s {\nreturn &pb.%[1]s{\n%[3]s}\n}\n", wire.Name(), core, &to)
	fmt.Fprintf(b, "\nfunc (c *check) decode%s(q *pb.%[1]s) (x %s) {\n%s%sreturn x\n}\n", wire.Name(), core, place, &from)
	return nil
}

// counterpart finds the field of a message for a field of core.
func counterpart(f reflect.StructField, wire reflect.Type, renamed string) (reflect.StructField, bool) {
	for _, name := range []string{renamed, f.Name, f.Name + suffixes[f.Type], suffixes[f.Type]} {
		w, ok := wire.FieldByNameFunc(func(n string) bool { return name != "" && strings.EqualFold(n, name) })
		if ok {
			return w, true
		}
	}
	return reflect.StructField{}, false
}

// convert returns the expressions of a field: of x, and of what the message has.
func convert(core, wire reflect.Type, word, label, x, q string) (to, from string, err error) {
	if hand, ok := byHand[core]; ok {
		if word == "optional" {
			return fmt.Sprintf(hand[0], x), fmt.Sprintf("c.optionalType(%s)", q), nil
		}
		return fmt.Sprintf(hand[0], x), fmt.Sprintf(hand[1], q), nil
	}
	if e, ok := enums[core]; ok {
		values := reflect.Zero(wire).Interface().(protoreflect.Enum).Descriptor().Values()
		to, from = fmt.Sprintf("pb.%s(%s)", wire.Name(), x), fmt.Sprintf("%s(c.enum(%q, int32(%s), %d, %d))", core, label, q,
			e.least, values.Get(values.Len()-1).Number())
		if e.offset > 0 {
			to, from = fmt.Sprintf("%s + %d", to, e.offset), strings.TrimSuffix(from, ")")+fmt.Sprintf("-%d)", e.offset)
		}
		return to, from, nil
	}
	switch core.Kind() {
	case reflect.Struct:
		name := wire.Elem().Name()
		return fmt.Sprintf("encode%s(&%s)", name, x), fmt.Sprintf("c.decode%s(%s)", name, q), nil
	case reflect.Slice:
		switch element := core.Elem(); {
		case element.Kind() == reflect.Struct:
			name := wire.Elem().Elem().Name()
			return fmt.Sprintf("each(%s, encode%s)", x, name), fmt.Sprintf("all(%s, c.decode%s)", q, name), nil
		case core == wire:
			return x, q, nil
		default:
			to, from, err = convert(element, wire.Elem(), word, label, "*x", "q")
			name := wire.Elem().Name()
			if wire.Elem().PkgPath() != "" {
				name = "pb." + name
			}
			return fmt.Sprintf("each(%s, func(x *%s) %s { return %s })", x, element, name, to),
				fmt.Sprintf("all(%s, func(q %s) %s { return %s })", q, name, element, from), err
		}
	case reflect.String:
		if to, from = x, q; word == "valid" {
			to = "valid(" + x + ")"
		}
		if word == "required" {
			from = fmt.Sprintf("c.named(%q, %s)", label, q)
		}
	case reflect.Int, reflect.Int64:
		to, from = x, fmt.Sprintf("c.count(%q, %s)", label, q)
	case reflect.Float64:
		if to, from = x, q; word != "any" {
			if word == "" {
				word = "amount"
			}
			from = fmt.Sprintf("c.%s(%q, %s)", word, label, q)
		}
	case reflect.Bool, reflect.Uint64:
		to, from = x, q
	default:
		return "", "", fmt.Errorf("no conversion of %s", core)
	}
	if core.Kind() != wire.Kind() || core.PkgPath() != "" {
		to = fmt.Sprintf("%s(%s)", wire, to)
	}
	if core.PkgPath() != "" || core.Kind() == reflect.Int64 {
		from = fmt.Sprintf("%s(%s)", core, from)
	}
	return to, from, nil
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// spaced is the name of a message or a field in a sentence.
func spaced(name string) string {
	return strings.ToLower(capital.ReplaceAllString(strings.TrimPrefix(name, "Ladder"), "$1 $2"))
}
