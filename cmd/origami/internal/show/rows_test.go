package show_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

type part struct {
	Seconds  float64     `json:"seconds" unit:"s"`
	Interval *[2]float64 `json:"interval_seconds,omitempty" unit:"s"`
}

type row struct {
	Name   string      `json:"name"`
	Share  *float64    `json:"share,omitempty" unit:"fraction"`
	Part   *part       `json:"predicted,omitempty"`
	Config gemm.Config `json:"config"`
	Texts  []string    `json:"outside"`
	Sizes  []int       `json:"sizes,omitempty"`
	Nested []part      `json:"nested,omitempty"`
	Labels ask.Fields  `json:"labels,omitempty"`
	Yes    bool        `json:"yes"`
}

func rows() []row {
	share := 0.125
	return []row{
		{Name: "a", Share: &share, Part: &part{1e-3, &[2]float64{1, 2}}, Config: gemm.Config{BlockM: 16, BlockN: 32,
			BlockK: 64, GroupM: 8, NumWarps: 4, NumStages: 3, SplitK: 1}, Texts: []string{"one, two", "three"},
			Sizes: []int{1, 2, 3}, Nested: []part{{}}, Labels: ask.Fields{{Name: "layer", Value: "up \"x\""}}, Yes: true},
		{Name: "b", Part: &part{Seconds: 2}, Labels: ask.Fields{{Name: "layer", Value: "do\twn\n"}}},
	}
}

func written(t *testing.T, f show.Format, all []row) string {
	t.Helper()
	var out bytes.Buffer
	s := iostreams.Plain(strings.NewReader(""), &out, &out)
	err := show.Write(s, f, all, show.Key[row]("name"), show.Key[row]("predicted.seconds", "time"),
		show.Key[row]("share").Or("unknown"), show.Text("upper", func(r *row) string { return strings.ToUpper(r.Name) }),
		show.Key[row]("yes").If(false))
	must.Do(t, errors.Join(err, s.Flush()))
	return out.String()
}

// The columns of CSV are the keys of JSON, and the cells its values.
func TestDelimited(t *testing.T) {
	const want = "name,share,predicted.seconds,predicted.interval_seconds.low,predicted.interval_seconds.high," +
		"config.block_m,config.block_n,config.block_k,config.group_m,config.num_warps,config.num_stages,config.split_k," +
		"config.axes,outside,sizes,labels.layer,yes\n" +
		"a,0.125,0.001,1,2,16,32,64,8,4,3,1,,\"one, two; three\",1 2 3,\"up \"\"x\"\"\",true\n" +
		"b,,2,,,,,,,,,,,,,do\\twn\\n,false\n"
	got := written(t, show.CSV, rows())
	must.That(t, got == want, "got\n%s\nwant\n%s", got, want)
	got = written(t, show.CSV, nil)
	must.That(t, strings.HasPrefix(got, "name,share,config.block_m,"), "without rows: %s", got)
}

// Values have their unit in a table.
func TestTable(t *testing.T) {
	got := written(t, show.Table, rows())
	for _, want := range []string{"name  time  share", "a 1.00 ms 12.5 % A", "b 2.00 s unknown B"} {
		must.That(t, strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")),
			"no %q in\n%s", want, got)
	}
}

// Inner has a key of the struct around it.
type Inner struct {
	Seconds float64 `json:"seconds"`
}

type outer struct {
	Inner
	Seconds *float64 `json:"seconds"`
	Part    *part    `json:"predicted,omitempty"`
}

// The columns are those of all rows that are known, in their order, and each once.
func TestLike(t *testing.T) {
	var out bytes.Buffer
	s := iostreams.Plain(strings.NewReader(""), &out, &out)
	seconds := 1.5
	rows := []outer{{Inner: Inner{7}}, {Seconds: &seconds, Part: &part{Seconds: 2}}}
	must.Do(t, errors.Join(show.Write(s, show.CSV, rows), s.Flush()))
	const want = "seconds,predicted.seconds,predicted.interval_seconds.low,predicted.interval_seconds.high\n" +
		",,,\n1.5,2,,\n"
	must.That(t, out.String() == want, "got %q, want %q", out.String(), want)
}
