package hw_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestParseOverrides(t *testing.T) {
	o := must.Get(hw.ParseOverrides("hw.json", []byte(`{
		"sm89": {"l2_perf_ratio": {"value": 1896, "unit": "B/cycle"}, "mma_latency": 33},
		"sm90@h200": {"clock": {"value": 1.5, "unit": "GHz"}},
		"gfx942": {},
		"hbm_latency_penalty": 623,
		"clock": {"value": 1800, "unit": "MHz"}
	}`)))(t)
	for key, want := range map[string]map[string]hw.OverrideValue{
		"sm89":      {"l2_perf_ratio": {Value: 1896, Unit: "B/cycle"}, "mma_latency": {Value: 33}},
		"sm90@h200": {"clock": {Value: 1.5, Unit: "GHz"}},
	} {
		must.Alike(t, o.ByArch[key], want, key)
	}
	got, ok := o.ByArch["gfx942"]
	must.That(t, ok && len(got) == 0, "gfx942: %v", got)
	bare := map[string]hw.OverrideValue{"hbm_latency_penalty": {Value: 623}, "clock": {Value: 1800, Unit: "MHz"}}
	must.Alike(t, o.Bare, bare)
	empty, err := hw.ParseOverrides("hw.json", []byte(" {} \n"))
	must.That(t, err == nil && len(empty.ByArch)+len(empty.Bare) == 0, "{}: %v, %v", empty, err)
}

// A more specific override replaces a less specific one: architecture, then device, then bare.
func TestOverridesFor(t *testing.T) {
	o := must.Get(hw.ParseOverrides("hw.json", []byte(`{
		"sm90": {"a": 1, "b": 1, "c": 1}, "sm90@h200": {"b": 2, "c": 2}, "sm90@h100": {"a": 9}, "sm89": {"a": 8}, "c": 3
	}`)))(t)
	h200 := map[string]hw.OverrideValue{"a": {Value: 1}, "b": {Value: 2}, "c": {Value: 3}}
	must.Alike(t, o.For("sm90", "h200"), h200)
	mi300x := map[string]hw.OverrideValue{"c": {Value: 3}}
	must.Alike(t, o.For("gfx942", "mi300x"), mi300x)
	got := (hw.Overrides{}).For("sm90", "h200")
	must.That(t, len(got) == 0, "no overrides: %v", got)
	// The caller may modify the result.
	o.For("sm90", "h200")["a"] = hw.OverrideValue{Value: 77}
	must.Equal(t, o.For("sm90", "h200")["a"].Value, 1)
}

func TestParseOverridesRefuses(t *testing.T) {
	for _, c := range []struct{ name, json, says string }{
		{"bad character, first line", `{"sm89": x}`, "hw.json:1:10: not JSON"},
		{"bad character, later line", "{\n  \"sm89\": {\n    \"clock\": 2.52e,\n  }\n}", "hw.json:3:19: not JSON"},
		{"trailing comma", "{\n\"a\": 1,\n}", "hw.json:3:1: not JSON"},
		{"line break in a string", "{\"a\n\": 1}", "hw.json:1:4: not JSON"},
		{"cut off", "{\"sm89\": {\"clock\":\n", "hw.json:2:1: not JSON: the file ends too early"},
		{"empty", "", "hw.json: not an override file: empty"},
		{"an array", `[1, 2]`, "hw.json: not an override file"},
		{"null", `null`, "hw.json: not an override file: null"},
		{"a key twice", `{"clock": 1, "clock": 2}`, `hw.json: the key "clock" is there twice`},
		{"an architecture twice", `{"sm89": {"a": 1}, "sm89": {"b": 1}}`, `the key "sm89" is there twice`},
		{"a parameter twice", `{"sm89": {"clock": 1, "clock": 2}}`, `"sm89.clock" is there twice`},
		{"a value twice", `{"clock": {"value": 1, "value": 2}}`, `"clock.value" is there twice`},
		{"another case", `{"sm89": {"clock": {"VALUE": 1}}}`, `sm89.clock is not a number`},
		{"two objects", `{"a": 1} {"b": 2}`, "hw.json: not an override file: data follows the first JSON object"},
		{"text after the object", `{"a": 1} x`, "data follows the first JSON object"},
		{"architecture is null", `{"sm89": null}`, `hw.json: "sm89" is neither a number nor an object of parameters`},
		{"architecture is text", `{"sm89": "fast"}`, `"sm89" is neither a number nor an object of parameters`},
		{"architecture is a list", `{"sm89": [1]}`, `"sm89" is neither a number nor an object of parameters`},
		{"number out of range", `{"clock": 1e999}`, `"clock" is neither a number nor an object of parameters`},
		{"parameter is null", `{"sm89": {"clock": null}}`, `sm89.clock is not a number`},
		{"parameter is text", `{"sm89": {"clock": "2.52 GHz"}}`, `sm89.clock is not a number`},
		{"parameter is true", `{"sm89": {"clock": true}}`, `sm89.clock is not a number`},
		{"value missing", `{"sm89": {"clock": {"unit": "GHz"}}}`, `sm89.clock is not a number`},
		{"value is null", `{"sm89": {"clock": {"value": null}}}`, `sm89.clock is not a number`},
		{"value is text", `{"sm89": {"clock": {"value": "2.52"}}}`, `sm89.clock is not a number`},
		{"unit is a number", `{"sm89": {"clock": {"value": 1, "unit": 2}}}`, `sm89.clock is not a number`},
		{"unknown field", `{"sm89": {"clock": {"value": 1, "units": "GHz"}}}`, `sm89.clock is not a number`},
		{"nested too deep", `{"nvidia": {"sm89": {"clock": 1}}}`, `nvidia.sm89 is not a number`},
		{"bare value with an unknown field", `{"clock": {"value": 1, "units": "GHz"}}`, `clock.units is not a number`},
	} {
		o, err := hw.ParseOverrides("hw.json", []byte(c.json))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v, want an error saying %q", c.name, o, err, c.says)
			continue
		}
		text := err.Error()
		if !strings.HasPrefix(text, "hw.json:") || strings.ContainsAny(text, "\n\t") || diag.KindOf(err) != diag.Input {
			t.Errorf("%s: %q is not one line of kind input that starts with the file", c.name, text)
		}
		must.That(t, strings.Contains(text, `write {"sm89":`) && o.ByArch == nil && o.Bare == nil,
			"%s: %+v, %q", c.name, o, text)
	}
}

func FuzzParseOverrides(f *testing.F) {
	for _, s := range []string{
		`{"sm89":{"l2_perf_ratio":{"value":1896,"unit":"B/cycle"}}}`, `{"l2_perf_ratio":1896}`,
		`{"sm90@h200":{"clock":1}}`, ``, `null`, `{}`, `{"a":null}`, `{"a":{"b":null}}`,
		`{"a":{"value":1,"unit":"GHz"}}`, `{"a":{"value":null}}`, `{"":{"":{"value":-0}}}`,
		`[1]`, `{"a":1e999}`, "{\n\"a\":x", `{"a":1}{"b":2}`, `{"a":{"b":{"c":{}}}}`, "\xff", `{"a":1,"a":2}`,
		`{"sm89":{"value":{"value":1}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := hw.ParseOverrides("fuzz.json", data)
		if err != nil {
			must.Need(t, o.ByArch == nil && o.Bare == nil && diag.KindOf(err) == diag.Input &&
				!strings.ContainsAny(err.Error(), "\n\r"), "%v, %q", o, err)
			return
		}
		// For returns every value that was read.
		for key, params := range o.ByArch {
			arch, device, _ := strings.Cut(key, "@")
			merged := o.For(arch, device)
			for name := range params {
				_, ok := merged[name]
				must.Need(t, ok, "%q.%q is lost", key, name)
			}
		}
		for name, v := range o.Bare {
			got := o.For("", "")[name]
			must.Need(t, got == v, "%q is %v, was %v", name, got, v)
		}
	})
}

func TestParseOverride(t *testing.T) {
	for text, want := range map[string]hw.OverrideValue{
		"x=66": {Value: 66}, "x=1.5GHz": {Value: 1.5, Unit: "GHz"}, "x=1.5e9": {Value: 1.5e9},
		"x=.5 TB/s":    {Value: 0.5, Unit: "TB/s"},
		"x=2e1B/cycle": {Value: 20, Unit: "B/cycle"}, "x=-3": {Value: -3},
	} {
		name, v, err := hw.ParseOverride(text)
		must.That(t, err == nil && name == "x" && v == want, "%s: %s, %+v, %v", text, name, v, err)
	}
	for _, text := range []string{"x", "=3", "x=", "x=GHz", "x=1e999"} {
		_, v, err := hw.ParseOverride(text)
		must.That(t, err != nil, "%s: %+v", text, v)
	}
}
