package dataset

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var mergeConditions = Conditions{Arch: "sm90", Device: "h200", Kernel: "k", Input: "normal", Executor: "e",
	ExecutorVersion: "1"}

// folder is a data set with the measurements of some problems on a GPU that takes pace times as long as others, at a
// clock, under a driver. All folders have the first problem.
func folder(t testing.TB, name string, pace float64, clock unit.Hertz, driver string, problems ...int) *Dataset {
	t.Helper()
	d := New(name, mergeConditions)
	random := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[0])))
	for _, p := range append([]int{1}, problems...) {
		for i := range 12 {
			m := Measurement{Problem: gemm.New(64*p, 64, 64), Phase: Sweep, Status: OK,
				Config: gemm.Config{Kernel: "k", BlockM: 16 + 16*i, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2, SplitK: 1,
					GroupM: 8},
				// The clocks of machines differ, by decades if they like.
				Environment: &exec.Environment{Driver: driver, Time: time.Unix(int64(name[0]-'a')*1e9, 0).UTC()},
				Resources:   exec.Resources{Registers: 10 + i}}
			if i == 3 {
				m.Status, m.Environment, m.Resources = NotBuilt, nil, exec.Resources{}
			} else {
				took := unit.Seconds(pace * float64(p*(i+1)) * 1e-5 * (1 + 0.004*random.NormFloat64()))
				one := exec.Sample{Time: took, Clock: clock}
				m.SetSamples([]exec.Sample{one, one, {Time: took * 1.01, Clock: clock}})
			}
			must.Do(t, d.Add(m))
		}
	}
	return d
}

// final adds a block of finals.
func final(t testing.TB, d *Dataset, block, arms, have int) {
	t.Helper()
	for i := range have {
		m := d.All()[i]
		m.Phase, m.Block, m.Arms = Final, block, arms
		must.Do(t, d.Add(m))
	}
}

// written is a data set as it is written.
func written(t testing.TB, d *Dataset) string {
	t.Helper()
	var text []byte
	for _, m := range append(d.All(), d.Checks()...) {
		var err error
		if text, err = AppendLine(text, d.Conditions, &m); err != nil {
			t.Fatal(err)
		}
	}
	return string(text)
}

func merged(t testing.TB, into *Dataset, others ...*Dataset) *Merged {
	t.Helper()
	return must.Get(Merge("all", into, others))(t)
}

// In any order, and as often as one likes, the same data sets make the same one, which has each measurement once.
func TestMerge(t *testing.T) {
	a, b := folder(t, "a", 1, 1.98e9, "1", 2, 3), folder(t, "b", 1.02, 1.98e9, "1", 4)
	c := folder(t, "c", 0.99, 1.97e9, "1", 3, 5)
	final(t, a, 1, 2, 2)
	final(t, a, 2, 3, 2) // is not complete
	final(t, b, 1, 2, 2)
	check := a.All()[0]
	check.Phase = Check
	must.Do(t, a.Add(check))
	all := merged(t, nil, a, b, c)
	want := written(t, all.Dataset)
	if all.Len() != 5*12+4 || len(all.Checks()) != 1 || len(all.Apart) > 0 || all.Several != 2*12 {
		t.Fatalf("%d measurements, %d checks, %d in several, %v", all.Len(), len(all.Checks()), all.Several, all.Apart)
	}
	must.Equal(t, len(all.Finals(gemm.New(64, 64, 64))), 2)
	for name, again := range map[string]*Merged{
		"another order":   merged(t, nil, c, a, b),
		"twice":           merged(t, nil, a, b, c, b, a),
		"into the result": merged(t, all.Dataset, b, c),
		"one by one":      merged(t, merged(t, merged(t, nil, c).Dataset, a).Dataset, b),
		"with itself":     merged(t, all.Dataset, all.Dataset),
		"by parts":        merged(t, nil, merged(t, nil, a, c).Dataset, merged(t, nil, b, c).Dataset),
	} {
		must.Equal(t, cmp.Diff(want, written(t, again.Dataset)), "", name)
	}
	for _, d := range []*Dataset{a, b, c} {
		for _, m := range d.All() {
			if got, there := all.Find(m.Problem, m.Config); m.Phase == Sweep && (!there || got.Status != m.Status) {
				t.Errorf("%s of %s is lost, or %s", m.Label(), m.Problem, got.Status)
			}
		}
	}
}

// A measurement with a time replaces one that failed, whichever is read first.
func TestMergeFailed(t *testing.T) {
	a, b := folder(t, "a", 1, 0, ""), New("b", mergeConditions)
	for _, m := range a.All() {
		m.Status, m.Fault, m.Detail, m.Samples, m.Runs, m.Median = Failed, FaultKernel, "?", nil, 0, 0
		must.Do(t, b.Add(m))
	}
	for _, list := range [][]*Dataset{{a, b}, {b, a}} {
		must.Equal(t, merged(t, nil, list...).Count(func(m *Measurement) bool { return m.Status == OK }), 11)
	}
}

// What does not belong to the others is set apart, whatever the order, and says why.
func TestMergeApart(t *testing.T) {
	other := folder(t, "z", 1, 1.98e9, "1", 7)
	other.DriverName = "NVIDIA H100"
	both := folder(t, "z", 1, 1.98e9, "1", 7)
	for _, m := range folder(t, "z", 1, 1.98e9, "2", 8, 9).All()[12:] { // the driver is replaced in the middle
		must.Do(t, both.Add(m))
	}
	const kernels = "the times of the 11 kernels that others have too are "
	for name, c := range map[string]struct {
		odd  *Dataset
		why  string
		left int
	}{
		"another GPU":    {other, `driver_device_name is "NVIDIA H100", and in what is merged it is ""`, 12 * 5},
		"another driver": {folder(t, "z", 1, 1.98e9, "2", 7), `the driver is "2", and in what is merged it is "1"`, 12 * 5},
		"an upgrade":     {both, `the driver is "2", and in what is merged it is "1"`, 12 * 6},
		"5 % slow":       {folder(t, "z", 1.05, 1.98e9, "1", 7), kernels + "1.0", 12 * 5},
		"5 % fast":       {folder(t, "z", 0.95, 1.98e9, "1", 7), kernels + "0.9", 12 * 5},
		"throttled": {folder(t, "z", 1, 1.2e9, "1", 7),
			"its clock was at most 1.2 GHz, and that of the others 1.98 GHz", 12 * 5},
	} {
		t.Run(name, func(t *testing.T) {
			list := []*Dataset{folder(t, "a", 1, 1.98e9, "1", 2), folder(t, "b", 1.01, 1.98e9, "1", 3, 4),
				folder(t, "c", 1, 1.98e9, "1", 5), c.odd}
			for range 4 {
				list = append(list[1:], list[0])
				m := merged(t, nil, list...)
				must.Need(t, m.Len() == c.left && len(m.Apart) == 1 && m.Apart[0].Name == "z" &&
					strings.HasPrefix(m.Apart[0].Why, c.why), "%d measurements, set apart: %+v", m.Len(), m.Apart)
			}
			// What was merged before decides, however much the other has.
			if m := merged(t, folder(t, "a", 1, 1.98e9, "1", 2), c.odd); len(m.Apart) != 1 {
				t.Errorf("set apart: %+v", m.Apart)
			}
		})
	}
}

// Where nothing says what is right, nothing is merged.
func TestMergeRefused(t *testing.T) {
	a, slow := folder(t, "a", 1, 0, "1", 2), folder(t, "b", 1.06, 0, "1", 3)
	_, err := Merge("all", nil, []*Dataset{a, slow})
	must.Fail(t, err, "nothing says which of them is right")
	changed := New("c", mergeConditions)
	for _, m := range a.All() {
		m.Resources.Registers++
		must.Do(t, changed.Add(m))
	}
	must.Fail(t, must.Err(Merge("all", nil, []*Dataset{a, changed})), "they are not the same kernel")
	if m := merged(t, nil, New("empty", mergeConditions)); m.Len() != 0 || m.Arch != "sm90" {
		t.Error(m.Conditions)
	}
}

// Of two data sets that differ, the one that a third one confirms stays, however little the third one shares with it. A
// third one that shares nothing with either says nothing, and no data set that another one confirms is set apart.
func TestMergeLiar(t *testing.T) {
	many := []int{2, 3, 4, 5, 6, 7, 8, 9, 10}
	kept := func(d *Dataset, problems ...int) *Dataset {
		few := New(d.Name, mergeConditions)
		for _, m := range d.All() {
			if slices.Contains(problems, m.Problem.M/64) {
				must.Do(t, few.Add(m))
			}
		}
		return few
	}
	a, liar := folder(t, "a", 1, 0, "1", many...), folder(t, "liar", 2, 0, "1", many...)
	slow := folder(t, "slow", 1.03, 0, "1", many...)
	c := folder(t, "c", 1, 0, "1", append(many, 11, 12, 13)...)
	for name, x := range map[string]struct {
		third *Dataset
		apart []string
		fails bool
	}{
		"nothing in common": {kept(c, 11, 12, 13), nil, true},
		"a quarter":         {kept(c, 2, 3, 11), []string{"liar"}, false},
		"all":               {c, []string{"liar"}, false},
		"another liar":      {kept(folder(t, "z", 2, 0, "1", many...), 2, 3), []string{"a"}, false},
		"neither":           {kept(folder(t, "z", 3, 0, "1", many...), many...), nil, true},
	} {
		for _, list := range [][]*Dataset{{a, liar, x.third}, {x.third, liar, a}, {liar, a, x.third}} {
			m, err := Merge("all", nil, list)
			must.Need(t, (err != nil) == x.fails, "%s: %v", name, err)
			if err != nil {
				continue
			}
			var apart []string
			for _, one := range m.Apart {
				apart = append(apart, one.Name)
			}
			must.Alike(t, apart, x.apart, name, m.Apart)
		}
	}
	// Two camps, each of two, and a chain whose ends differ.
	must.Fail(t, must.Err(Merge("all", nil, []*Dataset{a, c, liar, folder(t, "z", 2, 0, "1", many...)})),
		"nothing says which of them is right")
	if m := merged(t, nil, folder(t, "fast", 0.97, 0, "1", many...), a, slow); len(m.Apart) > 0 {
		t.Errorf("set apart: %+v", m.Apart)
	}
}

// Lines of checks and of GPUs are read as they were written.
func TestCheckLines(t *testing.T) {
	m := folder(t, "a", 1, 1e9, "1").All()[0]
	m.Phase, m.GPU = Check, "3"
	line, err := AppendLine(nil, mergeConditions, &m)
	if err != nil || !bytes.Contains(line, []byte(`"phase":"check"`)) || !bytes.Contains(line, []byte(`"gpu":"3"`)) {
		t.Fatal(string(line), err)
	}
	_, again, err := ParseLine(bytes.TrimSpace(line))
	must.That(t, err == nil && again.Phase == Check && again.GPU == "3" && slices.Equal(again.Samples, m.Samples),
		"%v %v", again, err)
	d := New("a", mergeConditions)
	for range 2 {
		must.Do(t, d.Add(m))
	}
	if d.Len() != 0 || len(d.Checks()) != 2 || len(d.Problems()) != 0 {
		t.Error(d.Len(), len(d.Checks()))
	}
}
