package gemm_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var declared = []gemm.Axis{
	{Name: "cluster", Doc: "CTAs per cluster", Type: gemm.Enumeration, Values: []string{"1x1", "2x1", "4x1"},
		Default: "1x1"},
	{Name: "vector", Unit: "elements", Doc: "width of a load", Type: gemm.Integer, Default: "4"},
}

var plain = gemm.Config{
	BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 8, NumWarps: 8, NumStages: 3, SplitK: 1, Kernel: "triton",
}

func with(t *testing.T, c gemm.Config, pairs ...string) gemm.Config {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		must.Do(t, c.SetAxis(declared, pairs[i], pairs[i+1]))
	}
	return c
}

// Configurations are the same, as keys too, whatever the order in which their axes were set, and a value at its default
// is as good as none.
func TestAxesAreCanonical(t *testing.T) {
	a := with(t, plain, "cluster", "2x1", "vector", "8")
	b := with(t, plain, "vector", "2", "vector", "8", "cluster", "2x1")
	must.That(t, a == b && map[gemm.Config]bool{a: true}[b], "%s and %s differ", a, b)
	must.Equal(t, with(t, a, "cluster", "1x1", "vector", "4"), plain)
	must.That(t, a != plain && a != with(t, plain, "cluster", "2x1"), "%s is as good as without its axes", a)
	got := declared[1].Number(a.Axes)*100 + declared[1].Number(plain.Axes)*10 + declared[0].Number(a.Axes)
	must.That(t, got == 841, "the numbers are %d, want 8, 4 and 1", got)
}

func TestConfigWithAxesRoundTrips(t *testing.T) {
	c := with(t, plain, "vector", "8", "cluster", "4x1")
	if want := "128x256x64 w8 s3 g8 cluster=4x1 vector=8"; c.String() != want {
		t.Errorf("%s, want %s", c, want)
	}
	must.Equal(t, must.Get(gemm.ParseConfig(c.String(), gemm.Config{Kernel: "triton"}, declared...))(t), c)
	text, err := json.Marshal(c)
	want := `{"block_m":128,"block_n":256,"block_k":64,"group_m":8,"num_warps":8,"num_stages":3,"split_k":1,` +
		`"axes":{"cluster":"4x1","vector":"8"}}`
	must.That(t, err == nil && string(text) == want, "%s, %v, want %s", text, err, want)
	back := gemm.Config{Kernel: "triton"}
	err = json.Unmarshal([]byte(strings.ReplaceAll(want, ",", " ,\n")), &back)
	must.That(t, err == nil && back == c, "%s reads back as %s, %v", text, back, err)
	must.That(t, c.Validate(declared...) == nil && c.ValidateNumbers() == nil && plain.Validate(declared...) == nil,
		"%s or %s is not valid", c, plain)
}

// Numbers and SetNumbers have every field of Fields, and JSON their names.
func TestFieldsAreComplete(t *testing.T) {
	must.Do(t, quick.Check(func(v [gemm.NumFields]int) bool {
		var c, back gemm.Config
		c.SetNumbers(v)
		text, err := json.Marshal(c)
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		return c.Numbers() == v && err == nil && back == c
	}, nil))
	ints := 0
	for i := range reflect.TypeFor[gemm.Config]().NumField() {
		if reflect.TypeFor[gemm.Config]().Field(i).Type.Kind() == reflect.Int {
			ints++
		}
	}
	must.Equal(t, ints, len(gemm.Fields()))
}

func TestMistakesInAxes(t *testing.T) {
	named := with(t, plain, "cluster", "2x1")
	explicit := must.Get(gemm.NewAxes(gemm.AxisValue{Name: "cluster", Value: "1x1"}))(t)
	other := must.Get(gemm.NewAxes(gemm.AxisValue{Name: "cluster", Value: "8x8"}))(t)
	parse := func(s string, axes ...gemm.Axis) error {
		_, err := gemm.ParseConfig("1x1x1,"+s, gemm.Config{}, axes...)
		return err
	}
	read := func(s string) error { return new(gemm.Config).UnmarshalJSON([]byte(s)) }
	one := func(name, value string) error {
		_, err := gemm.NewAxes(gemm.AxisValue{Name: name, Value: value})
		return err
	}
	for says, err := range map[string]error{
		`the kernel family has no axis "cluster"; leave it out`:        named.Validate(),
		`the kernel family has no axis "cluster"; its axes are vector`: named.Validate(declared[1]),
		`the axis cluster has no value "8x8"; use one of 1x1, 2x1, 4x1`: (&gemm.Config{BlockM: 1,
			BlockN: 1, BlockK: 1, NumWarps: 1, NumStages: 1, SplitK: 1, Axes: other}).Validate(declared...),
		`cluster=1x1 is the default of the axis; leave it out`: (&gemm.Config{BlockM: 1,
			BlockN: 1, BlockK: 1, NumWarps: 1, NumStages: 1, SplitK: 1, Axes: explicit}).Validate(declared...),
		`unknown or repeated key "cluster"; use each of group, split, stages, warps`: parse("cluster=2x1"),
		`unknown or repeated key "cluster"; use each of group, split, stages, vector, warp`: parse("cluster=2x1,cluster=2x1",
			declared...),
		`the axis cluster has no value ""`: parse("cluster", declared...),
		`the axis vector has no value "four"; give a whole number from 0 to 4096`: parse("vector=four",
			declared...),
		`the axis vector has no value "08"`:     parse("vector=08", declared...),
		`unknown field "block_q"`:               read(`{"block_q":1}`),
		`into Go struct field .block_m`:         read(`{"block_m":"1"}`),
		`into Go struct field .axes`:            read(`{"axes":{"cluster":2}}`),
		`"Cluster" is no name of an axis`:       read(`{"axes":{"Cluster":"2"}}`),
		`"a,b" is no value of the axis cluster`: one("cluster", "a,b"),
		`take 129 bytes of text; use at most 127`: one(strings.Repeat("n", 64),
			strings.Repeat("v", 64)),
		`take 130 bytes of text`: gemm.CheckAxes([]gemm.Axis{
			{Name: strings.Repeat("n", 60), Type: gemm.Integer, Default: "1"},
			{Name: strings.Repeat("m", 59), Type: gemm.Integer, Default: "1"}}),
		`"" is no name of an axis`:           one("", "a"),
		`"" is no value of the axis`:         one("cluster", ""),
		`the axis cluster is declared twice`: gemm.CheckAxes([]gemm.Axis{declared[0], declared[0]}),
		`the axis warps has the name of a number`: gemm.CheckAxes([]gemm.Axis{{Name: "warps", Type: gemm.Integer,
			Default: "1"}}),
		`the axis x has no type`: gemm.CheckAxes([]gemm.Axis{{Name: "x", Default: "1"}}),
		`the axis x has no values`: gemm.CheckAxes([]gemm.Axis{{Name: "x", Type: gemm.Enumeration,
			Default: "1"}}),
		`the axis x has no value "b"`: gemm.CheckAxes([]gemm.Axis{{Name: "x", Type: gemm.Enumeration,
			Values: []string{"a"}, Default: "b"}}),
	} {
		must.That(t, err != nil && strings.Contains(err.Error(), says) && !strings.Contains(err.Error(), "\n"),
			"%v, want %q", err, says)
	}
	for _, err := range []error{named.Validate(), parse("vector=four", declared...), one("", "")} {
		must.Equal(t, diag.KindOf(err), diag.Input, err)
	}
	must.Do(t, gemm.CheckAxes(declared))
}

// Without named axes a configuration costs no allocation to copy, compare, validate or look up.
func TestPlainConfigurationsAllocateNothing(t *testing.T) {
	seen := map[gemm.Config]int{plain: 1}
	c := plain
	must.Equal(t, testing.AllocsPerRun(100, func() {
		d := c
		must.Need(t, d == plain && d.Validate() == nil && d.Validate(declared...) == nil && seen[d] == 1, "lost")
	}), 0)
}

func FuzzConfigJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"block_m":128,"split_k":1,"axes":{"cluster":"2x1","a":"b"}}`, `{"axes":{}}`, `{"axes":null}`, `[]`,
		`{"block_m":1e9}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c, back gemm.Config
		if json.Unmarshal(text, &c) != nil {
			return
		}
		out, err := json.Marshal(c)
		if err == nil {
			err = json.Unmarshal(out, &back)
		}
		must.That(t, err == nil && back == c, "%s is %+v, written as %s and read as %+v, %v", text, c, out, back, err)
	})
}
