package hw_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var specs = []hw.Spec{
	{Name: "num_sms", Unit: "1", Doc: "streaming multiprocessors", Integer: true},
	{Name: "l2_bytes", Unit: "B", Doc: "L2 size", Integer: true},
	{Name: "clock", Unit: "Hz", Doc: "boost clock"},
	{Name: "dram_bandwidth", Unit: "B/s", Doc: "DRAM bandwidth"},
	{Name: "dram_perf_ratio", Unit: "B/cycle", Doc: "DRAM bandwidth per cycle", Calibrates: true},
	{Name: "penalty", Unit: "cycles", Doc: "DRAM latency", AllowZero: true, Calibrates: true},
}

func num(value float64, unit string, method hw.Method) hw.Number {
	return hw.Number{Value: value, Unit: unit, Source: "a source", Method: method, Date: "2026-02-12"}
}

// fullSheet has every parameter of specs except dram_perf_ratio in its derived tier.
func fullSheet() *hw.Sheet {
	return &hw.Sheet{
		Header: hw.Header{File: "sm89.yaml", Arch: "sm89", Device: "rtx4090"},
		Derived: map[string]hw.Number{
			"num_sms":        num(128, "1", hw.Datasheet),
			"l2_bytes":       num(72, "MiB", hw.Driver),
			"clock":          num(2.52, "GHz", hw.Datasheet),
			"dram_bandwidth": num(1008, "GB/s", hw.Datasheet),
			"penalty":        num(500, "cycles", hw.Assumed),
		},
		Calibrated: map[string]hw.Number{},
	}
}

// bandwidthPerCycle derives dram_perf_ratio from the parameters resolved so far.
func bandwidthPerCycle(name string, known hw.Set) (hw.Number, bool) {
	if name != "dram_perf_ratio" {
		return hw.Number{}, false
	}
	return num(known.Get("dram_bandwidth")/known.Get("clock"), "B/cycle", hw.Formula), true
}

func resolve(t *testing.T, s *hw.Sheet, overrides map[string]hw.OverrideValue) hw.Set {
	t.Helper()
	return must.Get(hw.Resolve(specs, s, bandwidthPerCycle, overrides))(t)
}

func find(t *testing.T, set hw.Set, name string) hw.Param {
	t.Helper()
	for _, p := range set {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%s was not resolved", name)
	return hw.Param{}
}

func TestResolveConvertsAndKeepsTheOrder(t *testing.T) {
	set := resolve(t, fullSheet(), nil)
	must.Need(t, len(set) == len(specs), "%d parameters", len(set))
	for i, want := range []float64{128, 75497472, 2.52e9, 1008e9, 400, 500} {
		if p := set[i]; p.Name != specs[i].Name || p.Unit != specs[i].Unit || p.Value != want || p.Tier != hw.Derived {
			t.Errorf("%+v, want %s = %v %s", p, specs[i].Name, want, specs[i].Unit)
		}
	}
	must.Equal(t, set.Int("l2_bytes"), 75497472)
	if p := find(t, set, "clock"); p.Source != "a source" || p.Method != hw.Datasheet || p.Date != "2026-02-12" {
		t.Errorf("the provenance is lost: %+v", p)
	}
}

func TestResolveTakesTheHighestTier(t *testing.T) {
	s := fullSheet()
	s.Calibrated["dram_perf_ratio"] = num(342.9, "B/cycle", hw.Microbenchmark)
	s.Calibrated["penalty"] = num(623, "cycles", hw.Microbenchmark)
	set := resolve(t, s, nil)
	p := find(t, set, "dram_perf_ratio")
	must.That(t, p.Value == 342.9 && p.Tier == hw.Calibrated, "calibrated over a formula: %+v", p)
	p = find(t, set, "penalty")
	must.That(t, p.Value == 623 && p.Tier == hw.Calibrated, "calibrated over derived: %+v", p)
	must.That(t, set.Calibrated(specs), "both calibrating parameters are calibrated")

	set = resolve(t, s, map[string]hw.OverrideValue{"penalty": {Value: 0}, "clock": {Value: 1500, Unit: "MHz"}})
	p = find(t, set, "penalty")
	must.That(t, p.Value == 0 && p.Tier == hw.Override && p.Method == hw.User &&
		p.Unit == "cycles", "override without a unit: %+v", p)
	p = find(t, set, "clock")
	must.That(t, p.Value == 1.5e9 && p.Tier == hw.Override && p.Unit == "Hz", "override in another unit: %+v", p)
	must.That(t, set.Calibrated(specs), "an override is above calibrated")

	delete(s.Calibrated, "penalty")
	must.That(t, !resolve(t, s, nil).Calibrated(specs), "penalty comes from the derived tier")
	must.That(t, !resolve(t, s, nil).Calibrated([]hw.Spec{{Name: "num_sms"}}),
		"nothing is marked, so nothing is calibrated")
}

// derive sees the parameters resolved so far, whatever their tier. It is not called for parameters in the sheet.
func TestResolveDerivesFromResolvedNumbers(t *testing.T) {
	set := resolve(t, fullSheet(), map[string]hw.OverrideValue{"clock": {Value: 2016, Unit: "MHz"}})
	p := find(t, set, "dram_perf_ratio")
	must.That(t, p.Value == 500 && p.Method == hw.Formula && p.Tier == hw.Derived, "%+v", p)
	var asked []string
	_, err := hw.Resolve(specs, fullSheet(), func(name string, known hw.Set) (hw.Number, bool) {
		asked = append(asked, name)
		return bandwidthPerCycle(name, known)
	}, nil)
	must.That(t, err == nil && len(asked) == 1 && asked[0] == "dram_perf_ratio",
		"derive was asked for %v, %v", asked, err)
}

// change modifies a sheet or the overrides.
type change func(*hw.Sheet, map[string]hw.OverrideValue)

func derived(name string, n hw.Number) change {
	return func(s *hw.Sheet, _ map[string]hw.OverrideValue) { s.Derived[name] = n }
}

func override(name string, v hw.OverrideValue) change {
	return func(_ *hw.Sheet, o map[string]hw.OverrideValue) { o[name] = v }
}

var resolveErrors = []struct {
	name   string
	change change
	where  string
	says   string
}{
	{"missing", func(s *hw.Sheet, _ map[string]hw.OverrideValue) { delete(s.Derived, "l2_bytes") },
		"sm89.yaml", "sm89@rtx4090 has no value for l2_bytes (L2 size)"},
	{
		"wrong unit", derived("clock", num(2.52, "GB/s", hw.Datasheet)), "sm89.yaml",
		`clock of sm89: unit "GB/s" does not measure what "Hz" measures; give clock in Hz`,
	},
	{
		"unknown unit", derived("clock", num(2.52, "gigahertz", hw.Datasheet)), "sm89.yaml",
		`unknown unit "gigahertz"`,
	},
	{"negative", derived("clock", num(-2.52, "GHz", hw.Datasheet)), "sm89.yaml", "value -2.52 GHz is negative"},
	{"zero", derived("clock", num(0, "GHz", hw.Datasheet)), "sm89.yaml", "value is zero"},
	{"NaN", derived("clock", num(math.NaN(), "GHz", hw.Datasheet)), "sm89.yaml", "is not finite"},
	{"infinite", derived("penalty", num(math.Inf(1), "cycles", hw.Assumed)), "sm89.yaml", "is not finite"},
	{"overflows in base units", derived("clock", num(1e300, "GHz", hw.Datasheet)), "sm89.yaml", "is not finite"},
	{
		"not whole", derived("num_sms", num(127.5, "1", hw.Datasheet)), "sm89.yaml",
		"value 127.5 1 is not a whole number",
	},
	{
		"not whole in base units", derived("l2_bytes", num(0.3, "KiB", hw.Driver)), "sm89.yaml",
		"is not a whole number",
	},
	{
		"too large to be exact", derived("num_sms", num(1<<54, "1", hw.Datasheet)), "sm89.yaml",
		"is not a whole number",
	},
	{
		"unknown in derived", derived("num_sm", num(128, "1", hw.Datasheet)), "sm89.yaml",
		`sm89 has no parameter "num_sm"; did you mean num_sms?`,
	},
	{"unknown in calibrated", func(s *hw.Sheet, _ map[string]hw.OverrideValue) {
		s.Calibrated["dram_perf_rato"] = num(1, "B/cycle", hw.Microbenchmark)
	}, "sm89.yaml", `sm89 has no parameter "dram_perf_rato"; did you mean dram_perf_ratio?`},
	{
		"unknown override", override("Clock_rate", hw.OverrideValue{Value: 1}), "hardware override",
		`no parameter "Clock_rate"; did you mean clock?`,
	},
	{
		"unknown override, nothing near", override("zzzzzzzz", hw.OverrideValue{Value: 1}), "hardware override",
		"the description of sm89 lists its parameters",
	},
	{
		"override in a wrong unit", override("clock", hw.OverrideValue{Value: 1, Unit: "cycles"}),
		"hardware override", `does not measure`,
	},
	{
		"negative override", override("penalty", hw.OverrideValue{Value: -1}), "hardware override",
		"value -1 cycles is negative",
	},
	{
		"override of almost nothing", override("clock", hw.OverrideValue{Value: 1e-308}), "hardware override",
		"is out of range: no hardware has less than 1e+07 or more than 1e+12; give clock in Hz",
	},
	{
		"override that nothing has", override("penalty", hw.OverrideValue{Value: 1e300}), "hardware override",
		"is out of range",
	},
	{"NaN override", override("clock", hw.OverrideValue{Value: math.NaN()}), "hardware override", "is not finite"},
	{
		"fractional override", override("num_sms", hw.OverrideValue{Value: 0.5}), "hardware override",
		"is not a whole number",
	},
}

func TestResolveRefuses(t *testing.T) {
	for _, c := range resolveErrors {
		s, overrides := fullSheet(), map[string]hw.OverrideValue{}
		c.change(s, overrides)
		set, err := hw.Resolve(specs, s, bandwidthPerCycle, overrides)
		if err == nil || set != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v, want an error saying %q", c.name, set, err, c.says)
			continue
		}
		must.That(t, strings.HasPrefix(err.Error(), c.where+": ") && diag.KindOf(err) == diag.Input,
			"%s: %q does not start with %q", c.name, err, c.where)
	}
	// The result of a formula is checked too.
	s := fullSheet()
	nan := func(string, hw.Set) (hw.Number, bool) { return num(math.NaN(), "B/cycle", hw.Formula), true }
	must.Fail(t, must.Err(hw.Resolve(specs, s, nan, nil)), "dram_perf_ratio of sm89")
	must.Fail(t, must.Err(hw.Resolve(specs, s, nil, nil)), "no value for dram_perf_ratio")
}

// A sheet can be resolved any number of times: Resolve does not change it.
func TestResolveLeavesTheSheetAlone(t *testing.T) {
	s := fullSheet()
	resolve(t, s, map[string]hw.OverrideValue{"clock": {Value: 1, Unit: "GHz"}})
	got := s.Derived["l2_bytes"]
	must.That(t, got.Value == 72 && got.Unit == "MiB", "%+v", got)
}

func TestGetOfAnUndeclaredParameterPanics(t *testing.T) {
	defer func() {
		r := recover()
		must.That(t, r != nil && strings.Contains(r.(string), "num_cus"), "recovered %v", r)
	}()
	resolve(t, fullSheet(), nil).Get("num_cus")
}

func TestTierNames(t *testing.T) {
	for tier, want := range map[hw.Tier]string{
		hw.Derived: "derived", hw.Calibrated: "calibrated", hw.Override: "override", 9: "tier(9)",
	} {
		must.Equal(t, tier.String(), want, tier)
	}
	must.That(t, hw.Derived < hw.Calibrated && hw.Calibrated < hw.Override, "the tiers are not in order")
}

func TestReadsTellsWhatIsLookedUp(t *testing.T) {
	set := resolve(t, fullSheet(), nil)
	got := set.Reads(func(known hw.Set) {
		_ = known.Get("clock") / known.Get("dram_bandwidth") * known.Get("clock")
		known[:2].Lookup("num_sms")
		known.Lookup("no such")
	})
	want := []string{"num_sms", "clock", "dram_bandwidth"}
	must.That(t, slices.Equal(got, want), "%v were looked up, want %v", got, want)
	got = set.Reads(func(hw.Set) {})
	must.That(t, len(got) <= 0, "%v were looked up, want none", got)
}
