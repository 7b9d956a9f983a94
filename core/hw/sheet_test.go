package hw_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

const goodSheet = `arch: sm89
device: rtx4090
name: NVIDIA GeForce RTX 4090
vendor: NVIDIA
aliases: ["4090"]
default: true
derived:
  num_sms: {value: 128, unit: "1", source: whitepaper, method: datasheet, date: 2022-09-20}
  clock:   {value: 2.52, unit: GHz, source: whitepaper, method: datasheet, date: 2022-09-20}
calibrated:
  l2_perf_ratio: {value: 1896.0, unit: B/cycle, source: gpu-benches, method: microbenchmark, date: 2026-02-12}
atoms:
  - {type: fp16, m: 16, n: 8, k: 16, cycles: 33, source: report, method: microbenchmark, date: 2026-02-12}
`

func decode(t *testing.T, yaml string) *hw.Sheet {
	t.Helper()
	return must.Get(hw.DecodeSheet("sm89.yaml", []byte(yaml)))(t)
}

func TestDecodeSheet(t *testing.T) {
	s := decode(t, goodSheet)
	must.That(t, s.File == "sm89.yaml" && s.Arch == "sm89" && s.Device == "rtx4090" && s.Vendor == "NVIDIA" && s.Default &&
		len(s.Aliases) == 1 && s.Aliases[0] == "4090", "%+v", s)
	clock := hw.Number{
		Value: 2.52, Unit: "GHz", Source: "whitepaper", Method: hw.Datasheet, Date: "2022-09-20",
	}
	must.Equal(t, s.Derived["clock"], clock)
	must.Equal(t, s.Calibrated["l2_perf_ratio"].Value, 1896)
	atom := hw.Atom{
		Type: "fp16", M: 16, N: 8, K: 16, Cycles: 33,
		Source: "report", Method: hw.Microbenchmark, Date: "2026-02-12",
	}
	must.Equal(t, s.Atoms[0], atom)
}

func TestDecodeSheetRefuses(t *testing.T) {
	for _, c := range []struct{ name, old, new, says string }{
		{"unknown top-level field", "default: true", "defalut: true", "line 6: field defalut not found"},
		{"unknown field of a number", "unit: GHz,", "unit: GHz, tier: 2,", "line 9: field tier not found"},
		{"unknown field of an atom", "k: 16,", "k: 16, warps: 4,", "line 13: field warps not found"},
		{"field given twice", "vendor: NVIDIA", "vendor: NVIDIA\nvendor: AMD", "already defined"},
		{"parameter given twice", "  clock:  ", "  num_sms:", "already defined"},
		{"text for a number", "value: 128", "value: many", "line 8: cannot unmarshal"},
		{"not YAML", "derived:", "derived: {", "not a device file"},
		{"not a mapping", goodSheet, "- 1\n- 2\n", "not a device file"},
		{"empty", goodSheet, "", "not a device file"},
		{"second document", "atoms:", "---\natoms:", "second YAML document"},
		{"no arch", "arch: sm89\n", "", "arch is missing"},
		{"no device", "device: rtx4090\n", "", "device is missing"},
		{"no name", "name: NVIDIA GeForce RTX 4090\n", "", "name is missing"},
		{"no vendor", "vendor: NVIDIA\n", "", "vendor is missing"},
		{"no unit", `unit: "1", `, "", "derived.num_sms has no unit"},
		{"no value", "value: 128, ", "", "derived.num_sms has no value"},
		{"null value", "value: 1896.0", "value: null", "calibrated.l2_perf_ratio has no value"},
		{"no source", "source: gpu-benches, ", "", "calibrated.l2_perf_ratio has no source"},
		{"no method", "method: datasheet, ", "", "has no method"},
		{"unknown method", "method: datasheet", "method: guess", `has unknown method "guess"`},
		{"an override's method", "method: datasheet", "method: user", `has unknown method "user"`},
		{"no date", ", date: 2022-09-20", "", `has date "", which is not YYYY-MM-DD`},
		{"month only", "date: 2022-09-20", "date: 2022-09", `has date "2022-09"`},
		{"no such day", "date: 2022-09-20", "date: 2022-02-30", `has date "2022-02-30"`},
		{
			"calibrated by data sheet", "method: microbenchmark, date: 2026-02-12}\natoms",
			"method: datasheet, date: 2026-02-12}\natoms", "calibrated.l2_perf_ratio has method datasheet",
		},
		{"atom without type", "type: fp16, ", "", "atoms[0] needs type"},
		{"atom without shape", "m: 16, ", "", "atoms[0] needs type"},
		{"atom with a negative shape", "n: 8", "n: -8", "atoms[0] needs type"},
		{"atom without cycles", "cycles: 33, ", "", "atoms[0] needs type"},
		{"atom with NaN cycles", "cycles: 33", "cycles: .nan", "atoms[0] needs type"},
		{"atom with infinite cycles", "cycles: 33", "cycles: .inf", "atoms[0] needs type"},
		{"atom without source", "source: report, ", "", "atoms[0] has no source"},
		{
			"atom without date", "source: report, method: microbenchmark, date: 2026-02-12",
			"source: report, method: microbenchmark", "atoms[0] has date",
		},
	} {
		broken := strings.Replace(goodSheet, c.old, c.new, 1)
		must.Need(t, broken != goodSheet, "%s: %q is not in the good sheet", c.name, c.old)
		s, err := hw.DecodeSheet("sm89.yaml", []byte(broken))
		if err == nil || s != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error saying %q", c.name, err, c.says)
			continue
		}
		text := err.Error()
		if !strings.HasPrefix(text, "sm89.yaml: ") || strings.Contains(text, "\n") || diag.KindOf(err) != diag.Input {
			t.Errorf("%s: %q is not one line of kind input that starts with the file", c.name, text)
		}
	}
}

// A file with two faults always gives the same error. It does not depend on the order of a map.
func TestDecodeSheetReportsTheSameFaultEveryTime(t *testing.T) {
	broken := strings.NewReplacer("source: whitepaper, ", "", "source: gpu-benches, ", "").Replace(goodSheet)
	_, first := hw.DecodeSheet("sm89.yaml", []byte(broken))
	must.Need(t, first != nil, "no error")
	for range 50 {
		_, err := hw.DecodeSheet("sm89.yaml", []byte(broken))
		must.Need(t, err != nil && err.Error() == first.Error(), "%v, then %v", first, err)
	}
}

func FuzzDecodeSheet(f *testing.F) {
	f.Add([]byte(goodSheet))
	for _, old := range []string{
		"value: 128", "unit: GHz", "cycles: 33", "date: 2026-02-12", "atoms:", "aliases: [\"4090\"]",
	} {
		for _, with := range []string{
			"", "value: .nan", "value: -1e400", "&a [*a]", "---", "date: 2026-13-01", "? {a: b}",
		} {
			f.Add([]byte(strings.Replace(goodSheet, old, with, 1)))
		}
	}
	f.Add([]byte("a: &a [*a, *a]"))
	f.Add([]byte("\xff\xfe"))
	specs := []hw.Spec{
		{Name: "num_sms", Unit: "1", Integer: true},
		{Name: "clock", Unit: "Hz"},
		{Name: "l2_perf_ratio", Unit: "B/cycle", Calibrates: true},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := hw.DecodeSheet("fuzz.yaml", data)
		if err != nil {
			must.Need(t, s == nil && diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\n\r"),
				"%v, %q", s, err)
			return
		}
		// A decoded sheet has complete provenance. It resolves or returns an error.
		for tier, numbers := range map[string]map[string]hw.Number{"derived": s.Derived, "calibrated": s.Calibrated} {
			for name, n := range numbers {
				must.Need(t, n.Unit != "" && n.Source != "" && n.Method != "" && len(n.Date) == len("2026-02-12"),
					"%s.%s: %+v", tier, name, n)
			}
		}
		for _, a := range s.Atoms {
			must.Need(t, a.M >= 1 && a.N >= 1 && a.K >= 1 && a.Cycles > 0 && a.Source != "", "%+v", a)
		}
		set, err := hw.Resolve(specs, s, nil, nil)
		must.Need(t, (err == nil) == (len(set) == len(specs)), "%v, %v", set, err)
	})
}

const fittedSection = `fitted:
  model: refined
  data_set: ./sweep
  source: fitted to ./sweep
  date: 2026-11-22
  values:
    line_rate: {value: 0.7, unit: "1", low: 0.6, high: 0.8}
  problems:
    - {m: 64, n: 128, k: 256, batch: 1, trans_a: false, trans_b: true, dtype: fp16}
`

// What was fitted survives writing and reading, and is refused with a place if it cannot be right.
func TestFittedSection(t *testing.T) {
	s := decode(t, goodSheet+fittedSection)
	f := s.Fitted
	must.Need(t, f != nil && f.Values["line_rate"] == (hw.FittedValue{Value: 0.7, Unit: "1", Low: 0.6, High: 0.8}) &&
		len(f.Problems) == 1 && f.Problems[0].N == 128 && f.Problems[0].TransB(), "%+v", f)
	text := must.Get(hw.EncodeSheet(s))(t)
	again := decode(t, string(text))
	must.That(t, reflect.DeepEqual(again.Fitted, f), "%+v became %+v", f, again.Fitted)
	if _, err := hw.DecodeHeader("x", []byte(goodSheet+fittedSection)); err != nil {
		t.Error(err)
	}
	for old, replaced := range map[string]string{
		"value: 0.7": "value: -1", "high: 0.8": "high: 0.1", "model: refined": "model: ''", "dtype: fp16": "dtype: fp17",
		"date: 2026-11-22\n  values": "date: yesterday\n  values", "n: 128": "q: 128",
	} {
		_, err := hw.DecodeSheet("x.yaml", []byte(goodSheet+strings.Replace(fittedSection, old, replaced, 1)))
		must.Fail(t, err, "fitted")
	}
}
