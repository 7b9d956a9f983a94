package calibrate

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// device is a runner whose programs take the time that times says for the n-th round of an entry, from 1.
type device struct {
	times map[string]func(round int) (seconds, clock float64)
	calls map[string]int
	fail  func(calls int) error
	total int
	state exec.Environment
}

func (d *device) Run(_ context.Context, _ int, p exec.Program, runs int) ([]exec.Reading, error) {
	d.total++
	if d.fail != nil {
		if err := d.fail(d.total); err != nil {
			return nil, err
		}
	}
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[p.Entry]++
	readings := make([]exec.Reading, runs)
	for i := range readings {
		s, clock := d.times[p.Entry](d.calls[p.Entry])
		readings[i].Time, readings[i].Clock = unit.Seconds(s), unit.Hertz(clock)
		readings[i].Counters = []uint64{uint64(i)}
	}
	return readings, nil
}

func (d *device) environment(context.Context, int) (exec.Environment, error) {
	e := d.state
	e.Time = time.Date(2026, 11, 22, 14, 0, d.total, 0, time.UTC)
	return e, nil
}

func probes(names ...string) *Plan {
	p := &Plan{Numbers: func(_ context.Context, v Values) (list []Number, _ []hw.Atom, _ error) {
		for _, name := range names {
			if n, ok := v.NewNumber(name, v[name].Value, "s", "as measured", name); ok {
				list = append(list, n)
			}
		}
		return list, nil, nil
	}}
	for _, name := range names {
		p.Probes = append(p.Probes, Probe{Name: name, Unit: "s", Runs: 3, Work: 1, Value: "seconds",
			Program: exec.Program{Text: "x", Entry: name, Grid: 1, Threads: 1, Launches: 1}})
	}
	return p
}

// numbersOf computes the numbers of rounds.
func numbersOf(t *testing.T, p *Plan, rounds map[string][]Round) []Number {
	t.Helper()
	numbers, _ := must.Two(p.Numbers(t.Context(), p.Values(rounds)))(t)
	return numbers
}

// A probe says how its value follows from a run: from its time, its work and its counters. The clock is the executor's
// if the counters have none.
func TestValueOfProbe(t *testing.T) {
	p := probes("a")
	probe := &p.Probes[0]
	probe.Value, probe.Clock = "work/(counter_0/counter_2)", "counter_0/counter_1*1e9"
	probe.Program.Counters = 3
	probe.Program.Arguments = []exec.Argument{{Kind: exec.CountersArgument}}
	must.Do(t, p.Check())
	round := Round{Work: 12, Readings: []exec.Reading{
		{Sample: exec.Sample{Time: 1, Clock: 5}, Counters: []uint64{8, 4, 2}}}}
	v := p.Values(map[string][]Round{"a": {round, round, round}})["a"]
	must.That(t, v.Refused == "" && v.Value == 3 && v.Clock == 2e9, "%+v", v)
	round.Readings[0].Counters = nil // as in records of another program
	if v = p.Values(map[string][]Round{"a": {round, round, round}})["a"]; v.Refused == "" || v.Clock != 5 {
		t.Errorf("%+v", v)
	}
	for what, change := range map[string]func(*Probe){
		"unknown name": func(p *Probe) { p.Value = "secs" }, "has 0 runs": func(p *Probe) { p.Runs = 0 },
		"a work of 0": func(p *Probe) { p.Work = 0 }, "its clock is": func(p *Probe) { p.Clock = "(" },
		"no text": func(p *Probe) { p.Program.Text = "" }, "has no name": func(p *Probe) { p.Name = "" },
	} {
		broken := probes("a")
		change(&broken.Probes[0])
		must.Fail(t, broken.Check(), what)
	}
}

func steady(s float64) func(int) (float64, float64) {
	return func(round int) (float64, float64) { return s * (1 + 0.001*float64(round%3)), 1e9 }
}

// A steady probe is measured three times. A probe that settles is repeated until it is steady. A probe that never
// settles is refused with the reason.
func TestUnstable(t *testing.T) {
	d := &device{times: map[string]func(int) (float64, float64){
		"steady": steady(1),
		"settles": func(round int) (float64, float64) {
			if round < 4 {
				return float64(round), 1e9
			}
			return 5, 1e9
		},
		"moves": func(round int) (float64, float64) { return float64(round), 1e9 / float64(round) },
		"other": func(round int) (float64, float64) { return float64(1 + round%2), 1e9 },
	}}
	plan := probes("steady", "settles", "moves", "other")
	kept := map[string][]Round{}
	s := &Session{Plan: plan, Runner: d, Environment: d.environment, Keep: func(p *Probe, r Round) error {
		kept[p.Name] = append(kept[p.Name], r)
		return nil
	}}
	refused, err := s.Run(t.Context())
	must.Need(t, err == nil && len(refused) <= 0, "%v %v", refused, err)
	want := map[string]int{"steady": MinRounds, "settles": 6, "moves": MaxRounds, "other": MaxRounds}
	must.Alike(t, d.calls, want)
	must.Alike(t, kept, s.Rounds)
	v := plan.Values(s.Rounds)
	for name, reason := range map[string]string{"moves": "the clock moved between 0.1111 and 0.1429 GHz",
		"other": "something else"} {
		must.That(t, strings.Contains(v[name].Refused, reason), "%s: %q", name, v[name].Refused)
	}
	got := v["settles"]
	must.That(t, got.Refused == "" && got.Value == 5 && got.Spread == 0 && got.Rounds == 6, "settles: %+v", got)
	var names []string
	for _, n := range numbersOf(t, plan, s.Rounds) {
		names = append(names, n.Name)
		must.That(t, n.Date == "2026-11-22" && n.Clock == 1e9, "%+v", n)
	}
	must.Alike(t, names, []string{"steady", "settles"})
	for i := range s.Rounds["other"] {
		s.Rounds["other"][i].Environment.ThrottleReasons = []string{"sw_power_cap", "hw_thermal"}
	}
	if got := plan.Values(s.Rounds)["other"].Refused; !strings.Contains(got, "the GPU throttles (hw_thermal)") {
		t.Error(got)
	}
}

// TestContinue: a run that ends anywhere is continued from its records, with nothing measured twice and the same
// numbers in the end.
func TestContinue(t *testing.T) {
	const total = 2 * MinRounds
	for ends := 1; ends <= total; ends++ {
		d := &device{times: map[string]func(int) (float64, float64){"a": steady(1), "b": steady(2)}}
		records := &Records{Device: exec.Device{Name: "GPU", Arch: "sm90", Attributes: map[string]float64{"num_sms": 3}},
			Executor: "x", Version: "1", Host: "h"}
		text := must.Get(records.HeaderLine())(t)
		keep := func(p *Probe, r Round) error {
			line, err := RoundLine(p.Name, r)
			text = append(text, line...)
			return err
		}
		lost := errors.New("lost")
		d.fail = func(calls int) error {
			if calls == ends {
				return lost
			}
			return nil
		}
		plan := probes("a", "b")
		s := &Session{Plan: plan, Runner: d, Environment: d.environment, Keep: keep}
		if _, err := s.Run(t.Context()); !errors.Is(err, lost) {
			t.Fatal(err)
		}
		torn := append(slices.Clone(text), []byte(`{"probe":"a","rea`)...)
		again, err := ReadRecords("f", strings.NewReader(string(torn)))
		if err != nil || again.Torn != int64(len(torn)-len(text)) || !reflect.DeepEqual(again.Device, records.Device) {
			t.Fatalf("%+v %v", again, err)
		}
		d.fail = nil
		s = &Session{Plan: plan, Runner: d, Environment: d.environment, Keep: keep, Rounds: again.Rounds}
		must.Get(s.Run(t.Context()))(t)
		must.That(t, d.calls["a"] == MinRounds && d.calls["b"] == MinRounds, "ended at %d: %v", ends, d.calls)
		replayed := must.Get(ReadRecords("f", strings.NewReader(string(text))))(t)
		want := numbersOf(t, plan, s.Rounds)
		got := numbersOf(t, plan, replayed.Rounds)
		must.That(t, len(got) == 2 && reflect.DeepEqual(got, want), "replayed %+v, measured %+v", got, want)
	}
}

// TestRefusedByDevice: a program that the device refuses costs its own numbers only.
func TestRefusedByDevice(t *testing.T) {
	d := &device{times: map[string]func(int) (float64, float64){"a": steady(1), "b": steady(2)}}
	d.fail = func(calls int) error {
		if calls == 1 {
			return diag.Inputf("too little memory")
		}
		return nil
	}
	plan := probes("a", "b")
	s := &Session{Plan: plan, Runner: d, Environment: d.environment, Keep: func(*Probe, Round) error { return nil }}
	refused, err := s.Run(t.Context())
	must.That(t, err == nil && refused["a"] == "too little memory" && len(refused) == 1 && d.calls["a"] == 0,
		"%v %v %v", refused, err, d.calls)
	got := numbersOf(t, plan, s.Rounds)
	must.That(t, len(got) == 1 && got[0].Name == "b", "%v", got)
}

func TestVariation(t *testing.T) {
	got, want := variation([]float64{9, 10, 11}), 0.1
	must.That(t, math.Abs(got-want) <= 1e-12, "got %v, want %v", got, want)
}

// A round that is there twice would count twice.
func TestRoundsAreThereOnce(t *testing.T) {
	head, err := (&Records{Device: exec.Device{Name: "GPU", Arch: "sm90"}}).HeaderLine()
	must.Do(t, err)
	var lines []string
	for _, seconds := range []unit.Seconds{1e-3, 2e-3} {
		line := must.Get(RoundLine("p", Round{Work: 1, Readings: []exec.Reading{{Sample: exec.Sample{Time: seconds}}}}))(t)
		lines = append(lines, string(line))
	}
	text := string(head) + lines[0] + lines[1]
	must.Fail(t, must.Err(ReadRecords("f", strings.NewReader(""))), "f: the file has no complete line")
	r, err := ReadRecords("f", strings.NewReader(text))
	must.That(t, err == nil && len(r.Rounds["p"]) == 2, "%v", err)
	_, err = ReadRecords("f", strings.NewReader(text+strings.Replace(lines[0], ":", ": ", 1)))
	must.Fail(t, err, "f:4: the round of line 2 is there again")
}

// FuzzRecords: records are refused, or the same when they are written and read again.
func FuzzRecords(f *testing.F) {
	gpu := exec.Device{Name: "GPU", Arch: "sm90", Attributes: map[string]float64{"l2_bytes": 6e7}}
	head := must.Get((&Records{Device: gpu}).HeaderLine())(f)
	reading := exec.Reading{Sample: exec.Sample{Time: 1e-3}, Counters: []uint64{1}}
	line := must.Get(RoundLine("p", Round{Work: 1, Readings: []exec.Reading{reading},
		Environment: exec.Environment{ThrottleReasons: []string{"x"}}}))(f)
	f.Add(string(head))
	f.Add(string(head) + string(line))
	f.Add(string(head) + string(line) + "{")
	f.Add(string(head) + `{"probe":"p","work":1,"readings":[{"seconds":-1}],` +
		`"environment":{"time":"2026-11-22T00:00:00Z"}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ReadRecords("f", strings.NewReader(text))
		if err != nil {
			return
		}
		out := must.Get(r.HeaderLine())(t)
		for name, rounds := range r.Rounds {
			for _, round := range rounds {
				line := must.Get(RoundLine(name, round))(t)
				out = append(out, line...)
			}
		}
		again, err := ReadRecords("f", strings.NewReader(string(out)))
		r.Torn = 0
		must.That(t, err == nil && reflect.DeepEqual(r.Rounds, again.Rounds) && r.Device.Name == again.Device.Name,
			"%+v became %+v: %v", r, again, err)
	})
}
