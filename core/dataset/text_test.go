package dataset

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "eight by": "eight by", "eight bytes": "eigh …", "äääää": "ää …", "\xff": "?", "a\xffbcdefgh": "a?bc …",
	} {
		must.Equal(t, Text(text, 8), want, text)
	}
}

// However long the texts of an executor are, the line of a measurement stays short, and the measurement is not changed
// in other ways.
func TestBound(t *testing.T) {
	long := strings.Repeat("long ", 1<<19)
	m := full()
	m.Environment.ThrottleReasons = make([]string, 1<<16)
	for i := range m.Environment.ThrottleReasons {
		m.Environment.ThrottleReasons[i] = long[:300]
	}
	m.Environment.Driver, m.Environment.Runtime, m.Numerics.Reference = long, long, long
	m.Detail, m.Host = long, long
	before := *m.Environment
	m.Bound()
	line := text(t, toy, m)
	must.That(t, len(line) <= 20<<10 && strings.Contains(line, ` …"`), "the line has %d bytes", len(line))
	must.That(t, len(before.Driver) == len(long) && len(before.ThrottleReasons[0]) == 300,
		"the executor's own data is changed")
	m = full()
	m.Bound()
	must.Equal(t, text(t, toy, m), text(t, toy, full()))
}

// What cannot be read back is not written.
func TestUnreadable(t *testing.T) {
	m := full()
	m.Host = strings.Repeat("x", limit.Line)
	if line, err := AppendLine(nil, toy, &m); err == nil || line != nil {
		t.Error("a line was written that is too long to be read")
	}
	d := New("here", toy)
	d.Source, d.Software = "a test", strings.Repeat("x", 1<<20)
	if text, err := AppendDescription(nil, d); err == nil || text != nil {
		t.Error("a description was written that is too long to be read")
	}
	d.Software, d.DriverName = "x", "\xff"
	must.Fail(t, must.Err(AppendDescription(nil, d)), "is no UTF-8")
	for text, want := range map[string]string{
		`{"arch":"a","arch":"b"}`: `the key "arch" is there twice`, `{"ARCH":"a"}`: `the key "ARCH" is written "arch"`,
		`{} {}`: "there is more behind it",
	} {
		_, err := Describe("here", fstest.MapFS{DescriptionFile: {Data: []byte(text)}})
		must.Fail(t, err, "here/dataset.json: not a dataset description: "+want)
	}
}

// Whatever an executor answers, what is written can be read back, under the same conditions.
func FuzzWrite(f *testing.F) {
	f.Add("a", "H200", "kernel", 1e-6, 1e-3, int64(1), int64(0), int64(5), true)
	f.Add("\x00\xff\u2028<", strings.Repeat("ä", 300), strings.Repeat("x", 3000), math.NaN(), math.Inf(1), int64(-1),
		int64(1<<62), int64(math.MinInt64), false)
	f.Fuzz(func(t *testing.T, executor, name, words string, seconds, number float64, checked, wrong, nanos int64,
		ok bool,
	) {
		c := toy
		c.Executor, c.DriverName = Text(executor, MaxName), Text(name, MaxName)
		m := full()
		m.Phase, m.Block, m.Arms, m.Null = Sweep, 0, 0, false
		m.Detail, m.Host = words, name
		m.Numerics = &exec.Numerics{MaxError: number, Tolerance: 1e-3, Checked: checked, Wrong: wrong, Reference: words}
		m.Environment = &exec.Environment{Time: time.Unix(0, nanos), Driver: words, Runtime: name, PowerWatts: number,
			Clock: unit.Hertz(seconds), ThrottleReasons: []string{words, executor, name}}
		m.Resources = exec.Resources{Registers: int(checked), SpillBytes: unit.Bytes(number), CTAsPerSM: int(wrong)}
		m.SetSamples([]exec.Sample{{Time: unit.Seconds(seconds), Clock: unit.Hertz(number)}})
		if !ok {
			m.Status, m.Fault = Failed, FaultKernel
			m.SetSamples(nil)
		}
		m.Bound()
		must.Need(t, utf8.ValidString(m.Detail+m.Host+m.Numerics.Reference), "%q", m.Detail)
		line, err := AppendLine(nil, c, &m)
		if err != nil {
			return // a number that cannot be
		}
		d := New("here", c)
		d.Source, d.Software = "a fuzz test", Text(words, MaxName)
		description := must.Get(AppendDescription(nil, d))(t)
		got, err := Read("here", fstest.MapFS{DescriptionFile: {Data: description}, Log: {Data: line}})
		must.Need(t, err == nil && got.Len() == 1 && got.Conditions == c, "%s and %s: %v", description, line, err)
		again, err := AppendLine(nil, c, got.measurements.at(0))
		must.Need(t, err == nil && bytes.Equal(again, line), "%s becomes %s: %v", line, again, err)
	})
}
