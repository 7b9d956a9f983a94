package hw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/unit"
)

// OverrideValue is one number of an override file. An empty Unit means the unit of the parameter's Spec.
type OverrideValue struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Is reports whether a number has this value.
func (o OverrideValue) Is(n Number) bool {
	if o.Unit == "" {
		return o.Value == n.Value
	}
	v, err := unit.Convert(o.Value, o.Unit, n.Unit)
	return err == nil && v == n.Value
}

// Overrides is a decoded override file.
type Overrides struct {
	// ByArch is {"sm89": {"l2_perf_ratio": {"value": 1896, "unit": "B/cycle"}}}. A key is an architecture id or
	// "arch@device".
	ByArch map[string]map[string]OverrideValue
	// Bare is {"l2_perf_ratio": 1896}. It applies to the selected architecture if there is only one.
	Bare map[string]OverrideValue
}

// For returns the overrides for one device of an architecture. Values under "arch@device" replace those under "arch",
// and bare values replace both.
func (o Overrides) For(arch, device string) map[string]OverrideValue {
	merged := map[string]OverrideValue{}
	for _, m := range []map[string]OverrideValue{o.ByArch[arch], o.ByArch[arch+"@"+device], o.Bare} {
		maps.Copy(merged, m)
	}
	return merged
}

// ParseOverrides decodes an override file. A key of the top level is either an architecture with an object of
// parameters, or a parameter (the bare form). A parameter is a number or {"value": number, "unit": "…"}. Resolve, which
// knows the architecture, checks names and units.
func ParseOverrides(file string, data []byte) (Overrides, error) {
	const form = `write {"sm89":{"l2_perf_ratio":{"value":1896,"unit":"B/cycle"}}}`
	var top map[string]json.RawMessage
	err := strictjson.Unmarshal(data, &top)
	var syntax *json.SyntaxError
	var twice *strictjson.KeyError
	switch {
	case errors.As(err, &syntax):
		line, column := position(data, int(syntax.Offset))
		return Overrides{}, diag.Inputf("not JSON: %v", err).At("%s:%d:%d", file, line, column).Do(form)
	case errors.Is(err, io.ErrUnexpectedEOF):
		line, column := position(data, len(data)+1)
		return Overrides{}, diag.Inputf("not JSON: the file ends too early").
			At("%s:%d:%d", file, line, column).Do(form)
	case errors.As(err, &twice):
		return Overrides{}, diag.Inputf("%v", err).At("%s", file).Do(form)
	case errors.Is(err, strictjson.ErrTrailing):
		err = errors.New("data follows the first JSON object")
	case errors.Is(err, io.EOF):
		err = errors.New("empty")
	case err == nil && top == nil:
		err = errors.New("null")
	}
	if err != nil {
		return Overrides{}, diag.Inputf("not an override file: %v", err).At("%s", file).Do(form)
	}
	out := Overrides{ByArch: map[string]map[string]OverrideValue{}, Bare: map[string]OverrideValue{}}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if v, ok := parseOverrideValue(top[key]); ok {
			out.Bare[key] = v
			continue
		}
		var params map[string]json.RawMessage
		if err := json.Unmarshal(top[key], &params); err != nil || params == nil { // null decodes to nil
			return Overrides{}, diag.Inputf("%q is neither a number nor an object of parameters", key).
				At("%s", file).Do(form)
		}
		out.ByArch[key] = map[string]OverrideValue{}
		for _, name := range slices.Sorted(maps.Keys(params)) {
			v, ok := parseOverrideValue(params[name])
			if !ok {
				return Overrides{}, diag.Inputf("%s.%s is not a number or {\"value\":…,\"unit\":…}", key, name).
					At("%s", file).Do(form)
			}
			out.ByArch[key][name] = v
		}
	}
	return out, nil
}

// parseOverrideValue reads a bare number or a value-and-unit object with no other fields.
func parseOverrideValue(raw json.RawMessage) (OverrideValue, bool) {
	var bare float64
	if !bytes.Equal(raw, []byte("null")) && json.Unmarshal(raw, &bare) == nil {
		return OverrideValue{Value: bare}, true
	}
	var full struct {
		Value *float64 `json:"value"`
		Unit  string   `json:"unit"`
	}
	if strictjson.Unmarshal(raw, &full) != nil || full.Value == nil {
		return OverrideValue{}, false
	}
	return OverrideValue{Value: *full.Value, Unit: full.Unit}, true
}

// position returns the line and column of the n-th byte, all counted from one like json.SyntaxError.Offset. One byte
// past the end is the end of the file.
func position(data []byte, n int) (line, column int) {
	before := data[:min(max(n-1, 0), len(data))]
	line = bytes.Count(before, []byte("\n")) + 1
	column = len(before) - bytes.LastIndexByte(before, '\n')
	return line, column
}

// ParseOverride reads "name=number" with a unit behind the number or none, as in "clock=1.5GHz" and "num_sms=66".
// Resolve checks the name and the unit.
func ParseOverride(text string) (name string, v OverrideValue, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", v, diag.Inputf("%q is not NAME=VALUE", text).Do("write it as in clock=1.5GHz")
	}
	number := overrideNumber.FindString(value)
	if v.Value, err = strconv.ParseFloat(number, 64); err != nil {
		return "", v, diag.Inputf("%s has no value in %q", name, text).Do("write a number and its unit, as in clock=1.5GHz")
	}
	v.Unit = strings.TrimSpace(value[len(number):])
	return name, v, nil
}

// overrideNumber is the number that a value starts with.
var overrideNumber = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?`)
