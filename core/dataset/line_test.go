package dataset

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var toy = Conditions{
	Arch: "sm90", Device: "h200", DeviceName: "NVIDIA H200", DriverName: "NVIDIA H200 NVL", Kernel: "mma",
	Input: "normal", Executor: "cuda", ExecutorVersion: "0.1.0",
}

// full is a measurement with everything in it.
func full() Measurement {
	m := Measurement{
		Problem: gemm.Problem{M: 64, N: 128, K: 256, Batch: 2, AMajor: gemm.MajorM, BMajor: gemm.MajorK,
			DType: gemm.BF16},
		Config: gemm.Config{BlockM: 64, BlockN: 32, BlockK: 16, GroupM: 4, NumWarps: 4, NumStages: 3, SplitK: 2,
			Kernel: "mma"},
		Phase: Final, Block: 2, Arms: 5, Null: true, Status: OK, Host: "a test",
		Resources: exec.Resources{Registers: 128, SpillBytes: 8, SharedMemory: 4096, CTAsPerSM: 3},
		Numerics:  &exec.Numerics{MaxError: 1e-4, Tolerance: 1e-3, Checked: 8192, Reference: "a product"},
		Environment: &exec.Environment{
			Time: time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC), Driver: "580", Runtime: "13.0", Clock: 1.98e9,
			PowerWatts: 300, PowerLimitWatts: 700,
			TemperatureC: 41, ThrottleReasons: []string{"power"},
		},
	}
	m.SetSamples([]exec.Sample{{Time: 1e-5, Clock: 1.9e9}, {Time: 1.5e-5, Clock: 1.98e9}, {Time: 1.1e-5},
		{Time: 1.2e-5, Clock: 1.8e9}})
	return m
}

func text(t testing.TB, c Conditions, m Measurement) string {
	t.Helper()
	line := must.Get(AppendLine(nil, c, &m))(t)
	return string(line)
}

// unsummed is a line without its checksum, as other programs write it.
func unsummed(line string) string {
	at := strings.Index(line, `,"sum":`)
	return line[:at] + line[at+len(sumOf(nil))-1:]
}

func TestLine(t *testing.T) {
	wrong := full()
	wrong.Phase, wrong.Block, wrong.Arms, wrong.Null = Sweep, 0, 0, false
	wrong.Status, wrong.Detail = Wrong, "7 elements\nare wrong"
	wrong.SetSamples(nil)
	wrong.Numerics = &exec.Numerics{MaxError: math.Inf(1), Tolerance: 1e-3, Wrong: 7, OutOfBounds: 4}
	library := Measurement{Problem: gemm.New(1, 2, 3), Library: "cublas-best", Phase: Sweep, Status: Timeout,
		Detail: "hung"}
	for name, m := range map[string]Measurement{"full": full(), "wrong": wrong, "library": library} {
		line := text(t, toy, m)
		must.That(t, strings.Count(line, "\n") == 1 && strings.HasSuffix(line, "\n"), "%s is not one line: %q", name, line)
		c, got, err := ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		must.That(t, err == nil && c == toy, "%s: %v, %+v", name, err, c)
		if m.Samples == nil {
			m.Samples = []unit.Seconds{}
		}
		must.Equal(t, cmp.Diff(m, got), "", name)
	}
	m := full()
	must.That(t, m.Median == 1.15e-5 && math.Abs(m.RelativeMAD-1e-6/1.15e-5) <= 1e-12 && m.ClockMin == 1.8e9 &&
		m.ClockMax == 1.98e9 && m.ClockMoved(), "%+v", m)
	// A sensor without a reading does not cost the measurement; a time that is none is a fault of the program.
	m.Environment.PowerWatts = math.NaN()
	if _, _, err := ParseLine([]byte(text(t, toy, m))); err != nil {
		t.Error(err)
	}
	m.Samples[0] = unit.Seconds(math.NaN())
	if line, err := AppendLine([]byte("before"), toy, &m); err == nil || string(line) != "before" {
		t.Errorf("%s, %v", line, err)
	}
}

// A line says nothing that contradicts itself, and nothing that this version does not know.
func TestBadLines(t *testing.T) {
	good := strings.TrimSuffix(unsummed(text(t, toy, full())), "\n")
	const timed = `"samples_seconds":[0.00001,0.000015,0.000011,0.000012],` +
		`"median_seconds":0.0000115,"spread":0.08695652173913042,`
	for want, change := range map[string][2]string{
		"no JSON object":       {`{"schema"`, `{schema"`},
		"there is more":        {`"a product"}}`, `"a product"}}{}`},
		"schema is 2":          {`"schema":1`, `"schema":2`},
		`unknown field`:        {`"phase"`, `"hue"`},
		`phase "rest"`:         {`"final"`, `"rest"`},
		"block 0":              {`"block":2`, `"block":0`},
		"block 99999999":       {`"block":2`, `"block":99999999`},
		`status "good"`:        {`"ok"`, `"good"`},
		"arch is missing":      {`"sm90"`, `""`},
		"unknown dtype":        {`"bf16"`, `"bf17"`},
		"m is negative":        {`"m":64`, `"m":-64`},
		"a number outside":     {`"block_m":64`, `"block_m":0`},
		"either a config":      {`"warm_l2":false`, `"library":"cublas","warm_l2":false`},
		"not a time":           {`[0.00001,`, `[-1,`},
		"do not follow":        {`"median_seconds":0.0000115`, `"median_seconds":0.0000116`},
		"no samples":           {timed, ``},
		"contradict":           {`"clock_moved":true`, `"clock_moved":false`},
		"contradicts the num":  {`"wrong_elements":0`, `"wrong_elements":1`},
		"problem.batch is a":   {`"batch":2`, `"batch":2.5`},
		"reference has 5000 ":  {`"a product"`, `"` + strings.Repeat("x", 5000) + `"`},
		"throttle_reasons ha":  {`["power"]`, `["` + strings.Repeat(`x","`, 5000) + `"]`},
		"samples_seconds has":  {`[0.00001,`, `[` + strings.Repeat("1,", 10000)},
		`"status" is there t`:  {`"status":"ok"`, `"status":"failed","status":"ok"`},
		`"STATUS" is written`:  {`"status"`, `"STATUS"`},
		`"problem.m" is there`: {`"m":64`, `"m":64,"m":64`},
		`"block_m" is`:         {`"block_m":64`, `"block_m":32,"block_m":64`},
		`fault "executor" is`:  {`"status":"ok"`, `"status":"failed","fault":"executor"`},
		`status ok has no fa`:  {`"status":"ok"`, `"status":"ok","fault":"kernel"`},
	} {
		line := strings.Replace(good, change[0], change[1], 1)
		must.Need(t, line != good, "%s changes nothing in %s", change[0], good)
		_, _, err := ParseLine([]byte(line))
		must.That(t, err != nil && strings.Contains(err.Error(), want), "%v, want %s", err, want)
	}
}

// sweeps returns a dataset of two problems in lines.
func sweeps(t testing.TB) (description string, lines []string) {
	t.Helper()
	d := New("here", toy)
	d.Source, d.Software = "a test", "x"
	b := must.Get(AppendDescription(nil, d))(t)
	for _, size := range []int{64, 128} {
		m := full()
		m.Problem.M, m.Phase, m.Block, m.Arms, m.Null = size, Sweep, 0, 0, false
		lines = append(lines, text(t, toy, m))
		m.Config, m.Library = gemm.Config{}, "cublas"
		lines = append(lines, text(t, toy, m))
	}
	m := full()
	m.Arms = 2
	lines = append(lines, text(t, toy, m))
	m.Null = false
	return string(b), append(lines, text(t, toy, m))
}

// Each digit of a line that is changed is noticed, and a line without a checksum is read.
func TestChangedDigits(t *testing.T) {
	line := text(t, toy, full())
	if _, m, err := ParseLine([]byte(unsummed(line))); err != nil || m.Median != full().Median {
		t.Error(m, err)
	}
	for i := range line {
		if line[i] < '0' || line[i] > '9' {
			continue
		}
		for digit := byte('0'); digit <= '9'; digit++ {
			changed := line[:i] + string(digit) + line[i+1:]
			_, _, err := ParseLine([]byte(changed))
			must.That(t, err != nil || changed == line, "nothing is wrong with %s", changed)
		}
	}
}

// The median and the spread follow from the samples, and may be left out.
func TestSummaryLeftOut(t *testing.T) {
	line := strings.Replace(unsummed(text(t, toy, full())),
		`"median_seconds":0.0000115,"spread":0.08695652173913042,`, "", 1)
	_, m, err := ParseLine([]byte(line))
	must.That(t, err == nil && m.Median == full().Median &&
		m.RelativeMAD == full().RelativeMAD, "%v %v", m, err)
}

func inColumns(t testing.TB, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	must.Do(t, columns.Write(&file, []byte(text)))
	return file.Bytes()
}

func TestReadLines(t *testing.T) {
	description, lines := sweeps(t)
	all := strings.Join(lines, "")
	for name, files := range map[string]fstest.MapFS{
		"one file": {Log: {Data: []byte(all)}},
		"gzip":     {"old.jsonl.gz": {Data: gz(all)}},
		"columns":  {"old.jsonl.cols": {Data: inColumns(t, all)}},
		"several": {
			Log: {Data: []byte(strings.Join(lines[3:], ""))}, "a.jsonl.gz": {Data: gz(strings.Join(lines[:3], ""))},
		},
	} {
		files[DescriptionFile] = &fstest.MapFile{Data: []byte(description)}
		d := must.Get(Read("here", files))(t)
		p := full().Problem
		must.That(t, d.Len() == 6 && len(d.Problems()) == 2 && d.Problems()[0] == p &&
			reflect.DeepEqual(d.Libraries(), []string{"cublas"}) && d.Conditions == toy, "%s: %+v", name, d)
		m, ok := d.Find(p, full().Config)
		must.That(t, ok && len(m.Samples) == 4 && m.Environment != nil, "%s: %+v", name, m)
		// A candidate counts at the group it was measured at.
		c := full().Config
		c.GroupM = 16
		m, ok = d.Candidate(p, c)
		must.That(t, ok && m.Config.GroupM == 4, "%s: %+v", name, m)
		if finals := d.Finals(p); len(finals) != 1 || len(finals[0]) != 2 || !finals[0][0].Null || d.NextBlock(p) != 3 {
			t.Errorf("%s: finals %+v", name, finals)
		}
	}
}

// What was cut off while it was written is dropped when the sweep goes on, and an error when it is read; anything
// else is always an error that says where.
func TestBrokenLines(t *testing.T) {
	description, lines := sweeps(t)
	all := strings.Join(lines, "")
	other := toy
	other.ExecutorVersion = "0.2.0"
	last := len(all) - len(lines[5])
	cutOff := lines[0] + lines[1][:50] + "\n" + lines[2]
	badPhase := strings.Replace(unsummed(lines[2]), "sweep", "none", 1)
	for want, c := range map[string]struct {
		log       string
		truncated bool
	}{
		"here/measurements.jsonl:6: the last line is cut off":                 {all[:len(all)-100], true},
		"here/measurements.jsonl:6: the last line is cut off;":                {all[:len(all)-1], true},
		"here/measurements.jsonl:6: the line is no JSON object (":             {all[:last] + "\x00\x00\x00\n", true},
		"here/measurements.jsonl:2: the line is no JSON object (":             {cutOff, false},
		"here/measurements.jsonl:2: the line is no JSON object (unexpected ":  {lines[0] + "\n" + lines[2], false},
		"here/measurements.jsonl:3: phase \"none\" is none of":                {lines[0] + lines[1] + badPhase, false},
		"here/measurements.jsonl:7: 64x32x16 w4 s3 g4":                        {all + lines[0], false},
		`here/measurements.jsonl:7: executor_version is "0.2.0" and was "0.1`: {all + text(t, other, full()), false},
		`here/measurements.jsonl:2: the key "phase" is there twice`: {
			lines[0] + strings.Replace(lines[1], `"phase"`, `"phase":"final","phase"`, 1) + lines[2], false},
		"here/measurements.jsonl:1: the line is longer than": {strings.Repeat("x", limit.Line+1), false},
	} {
		files := fstest.MapFS{DescriptionFile: {Data: []byte(description)}, Log: {Data: []byte(c.log)}}
		d, err := Read("here", files)
		must.That(t, d == nil && diag.KindOf(err) == diag.Input &&
			strings.Contains(err.Error(), strings.TrimSuffix(want, "(unexpected ")), "read: %v, want %s", err, want)
		d, truncated, err := Recover("here", files)
		if !c.truncated {
			must.That(t, d == nil && err != nil, "recovered %s: %v, %v", want, d, err)
			continue
		}
		must.That(t, err == nil && truncated != nil && truncated.Keep == int64(last) && d.Len() == 5 &&
			(strings.HasPrefix(truncated.Where+": "+truncated.Why+";", want) ||
				strings.HasPrefix(truncated.Where+": "+truncated.Why, want)), "recovered %s: %+v, %v", want, truncated, err)
	}
	cut := inColumns(t, all)
	for _, file := range [][]byte{cut[:len(cut)-9], {}, []byte(all)} {
		files := fstest.MapFS{DescriptionFile: {Data: []byte(description)}, "a.jsonl.cols": {Data: file}}
		_, err := Read("here", files)
		must.Refuse(t, err, "here/a.jsonl.cols: it cannot be read")
	}
	both := files()
	both[Log] = &fstest.MapFile{Data: []byte(all)}
	must.Fail(t, must.Err(Read("here", both)), "two layouts")
	// Only what a sweep appends to can be cut off.
	if _, _, err := Recover("here", fstest.MapFS{DescriptionFile: {Data: []byte(description)},
		"a.jsonl": {Data: []byte(all[:len(all)-1])}}); err == nil {
		t.Error("another file was recovered")
	}
	if d, truncated, err := Recover("here", fstest.MapFS{DescriptionFile: {Data: []byte(description)}}); err != nil ||
		truncated != nil || d.Len() != 0 {
		t.Errorf("an empty folder: %v", err)
	}
}

// A later measurement takes the place of one that failed, and of no other.
func TestMeasuredAgain(t *testing.T) {
	description, _ := sweeps(t)
	in := func(statuses ...Status) string {
		all := ""
		for _, status := range statuses {
			m := full()
			m.Phase, m.Block, m.Arms, m.Null = Sweep, 0, 0, false
			if m.Status = status; status != OK {
				m.Detail, m.Numerics = string(status), nil
				m.SetSamples(nil)
			}
			all += text(t, toy, m)
		}
		return all
	}
	for _, c := range []struct {
		log  string
		want Status // "" is an error
	}{
		{in(Failed, OK), OK}, {in(Timeout, Failed, Timeout, OK), OK}, {in(Failed, Timeout), Timeout},
		{in(OK, Failed), ""}, {in(OK, OK), ""}, {in(NotBuilt, OK), ""}, {in(Failed, OK, OK), ""},
	} {
		d, err := Read("here", fstest.MapFS{DescriptionFile: {Data: []byte(description)}, Log: {Data: []byte(c.log)}})
		if c.want == "" {
			must.Fail(t, err, "is recorded twice")
			continue
		}
		must.Do(t, err)
		m, _ := d.Find(full().Problem, full().Config)
		p := full().Problem
		must.That(t, m.Status == c.want && d.Len() == 1 && len(d.Sweep(p)) == 1 &&
			d.Sweep(p)[0].Status == c.want, "%s counts as %s, %d measurements", c.log, m.Status, d.Len())
	}
}

func FuzzLine(f *testing.F) {
	_, lines := sweeps(f)
	for _, line := range append(lines, "", "{}", "null", "[1]", `{"schema":1}`, `{"Schema":1,"schema":2}`) {
		f.Add([]byte(strings.TrimSuffix(line, "\n")))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, m, err := ParseLine(line)
		if err != nil {
			return
		}
		// What is read can be written, and reads as the same again.
		again := must.Get(AppendLine(nil, c, &m))(t)
		c2, m2, err := ParseLine(bytes.TrimSuffix(again, []byte("\n")))
		must.Need(t, err == nil && c2 == c, "%s becomes %s: %v", line, again, err)
		third, err := AppendLine(nil, c2, &m2)
		must.Need(t, err == nil && bytes.Equal(again, third), "%s becomes %s: %v", again, third, err)
	})
}

// Named axes stand in the line by name and come back; a measurement without any is written as it was before there
// were any.
func TestLineWithNamedAxes(t *testing.T) {
	plain := full()
	plain.Phase, plain.Block, plain.Arms, plain.Null = Sweep, 0, 0, false
	named := plain
	axes := must.Get(gemm.NewAxes(gemm.AxisValue{Name: "schedule", Value: "ping-pong"},
		gemm.AxisValue{Name: "cluster", Value: "2x1"}))(t)
	named.Config.Axes = axes
	const numbers = `"config":{"block_m":64,"block_n":32,"block_k":16,"group_m":4,` +
		`"num_warps":4,"num_stages":3,"split_k":2`
	if line := text(t, toy, plain); !strings.Contains(line, numbers+`},`) {
		t.Error(line)
	}
	line := text(t, toy, named)
	must.That(t, strings.Contains(line, numbers+`,"axes":{"cluster":"2x1","schedule":"ping-pong"}},`), "%v", line)
	_, got, err := ParseLine([]byte(line))
	must.That(t, err == nil && got.Config == named.Config, "%s, %v, want %s", got.Config, err, named.Config)
	d := New("here", toy)
	for _, m := range []Measurement{plain, named} {
		must.Do(t, d.Add(m))
	}
	if m, ok := d.Find(named.Problem, named.Config); !ok || m.Config != named.Config {
		t.Errorf("found %+v", m)
	}
	_, _, err = ParseLine([]byte(strings.Replace(unsummed(line), `"cluster"`, `"Cluster"`, 1)))
	must.That(t, err != nil, "an axis that cannot be is read")
}

// Of 200 digits of a folder that are changed, one at a time, each is noticed, with its line.
func TestVerify(t *testing.T) {
	description, lines := sweeps(t)
	text := strings.Join(lines, "")
	look := func(log string) Verified {
		files := fstest.MapFS{DescriptionFile: {Data: []byte(description)}, Log: {Data: []byte(log)}}
		return must.Get(Verify("here", files))(t)
	}
	if v := look(text); v.Lines != 6 || v.Files != 1 || v.Unsummed != 0 || len(v.Damaged) > 0 {
		t.Errorf("%+v", v)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for changed := 0; changed < 200; {
		log, at := []byte(text), random.IntN(len(text))
		if log[at] < '0' || log[at] > '9' {
			continue
		}
		log[at] = '0' + (log[at]-'0'+byte(1+random.IntN(9)))%10
		changed++
		where := fmt.Sprintf("here/%s:%d: ", Log, 1+bytes.Count(log[:at], []byte("\n")))
		if v := look(string(log)); len(v.Damaged) != 1 || !strings.HasPrefix(v.Damaged[0], where) {
			t.Errorf("a digit of %s is changed: %v", where, v.Damaged)
		}
	}
	// Damaged lines hide no others, and what another program wrote is counted.
	bad := strings.Replace(lines[1], "64", "65", 1)
	if v := look(lines[0] + bad + unsummed(lines[2]) + bad + lines[3][:20]); len(v.Damaged) != 3 || v.Unsummed != 1 {
		t.Errorf("%+v", v)
	}
	if v := look(text + lines[0]); len(v.Damaged) != 1 || !strings.Contains(v.Damaged[0], "recorded twice") {
		t.Errorf("%+v", v)
	}
}
