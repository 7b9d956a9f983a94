//go:build !race

// Arithmetic, which the race detector would only slow down tenfold.

package main

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var writeScores = flag.Bool("scores", false, "write the floors of the scores on published times, and docs/published.md")

// publishedScore is part of what `eval --published --json` writes.
type publishedScore struct {
	Groups []struct {
		Device, DType, Scheme string
		Score                 accuracy
		Refused               int `json:"not_modelled"`
	}
	Classes []struct {
		Class string
		accuracy
	}
	Pairs []struct {
		First, Second, DType, Scheme, Class string
		Decided                             int
		Winner                              float64
	}
	AllPairs struct {
		Shapes, Decided int
		Within, Winner  float64
		Sure            int
		SureRight       float64 `json:"sure_right"`
		Brier           float64
		BrierApart      float64 `json:"brier_apart"`
	} `json:"all_pairs"`
	LeftOut []struct {
		Evidence    arch.Evidence
		Held, Width float64
		Classes     map[string]float64
		Groups      []struct {
			Name, Of    string
			Times       int
			Held, Width float64
			Error       float64 `json:"error_median"`
		}
	} `json:"left_out"`
}

// accuracy is a score. Numbers that are null stay 0.
type accuracy struct {
	Times                              int
	Geomean, P10, P90, Within, Ceiling float64
}

func (a *accuracy) cells() string {
	ceiling := "–"
	if a.Ceiling > 0 {
		ceiling = fmt.Sprintf("%.1f %%", 100*a.Ceiling)
	}
	return fmt.Sprintf("%d | %.2f | %.2f | %.2f | %.1f %% | %s", a.Times, a.Geomean, a.P10, a.P90, 100*a.Within, ceiling)
}

// manyTimes is the least number of times of a group that has a floor.
const manyTimes = 100

// margin is how far floors lie below the scores of the last change.
const margin = 0.005

const floorsFile = "testdata/published_floors.csv"

// The models are as close to published times as they were, on every device and type with many times, and for pairs of
// devices. A commit that lowers a floor says why. The table in docs has the scores.
func TestPublishedScores(t *testing.T) {
	var got publishedScore
	text := command(t, nil, "--in-process", "eval", "--published", "--model", "refined", "--json")
	must.Do(t, json.Unmarshal([]byte(text), &got))
	// Times that are left out must not correct predictions either.
	var alone publishedScore
	text = command(t, nil, "--in-process", "eval", "--published", "--model", "refined", "--option", "nearby=none",
		"--json")
	must.Do(t, json.Unmarshal([]byte(text), &alone))
	got.LeftOut = alone.LeftOut
	scores := map[string]float64{"pairs within": got.AllPairs.Within, "pairs winner": got.AllPairs.Winner}
	order := []string{"pairs within", "pairs winner"}
	for _, g := range got.Groups {
		if g.Score.Times >= manyTimes {
			name := g.Device + " " + g.DType + " " + g.Scheme
			order, scores[name] = append(order, name), g.Score.Within
		}
	}
	if *writeScores {
		text := "score,at_least\n"
		for _, name := range order {
			text += fmt.Sprintf("%s,%.3f\n", name, math.Max(0, scores[name]-margin))
		}
		must.Do(t, os.WriteFile(floorsFile, []byte(text), 0o644))
	}
	floors := csvtest.Named(t, floorsFile)
	for _, row := range floors {
		floor, err := strconv.ParseFloat(row["at_least"], 64)
		if score, ok := scores[row["score"]]; err != nil || !ok || score < floor {
			t.Errorf("%s is %.4f, and was at least %s (%v)", row["score"], score, row["at_least"], err)
		}
	}
	must.That(t, len(floors) >= len(order), "%d of %d scores have a floor; run `make checked`", len(floors), len(order))
	inDocs(t, &got)
	winners(t, &got)
	sure(t, &got)
	hardest(t, &got)
}

// winners holds the recorded share of right winners, of pairs of devices that differ on enough shapes, to the scores.
func winners(t *testing.T, got *publishedScore) {
	t.Helper()
	const enough = 10
	var b strings.Builder
	b.WriteString("first,second,dtype,scheme,class,decided,right\n")
	for _, p := range got.Pairs {
		if p.Decided >= enough {
			fmt.Fprintf(&b, "%s,%s,%s,%s,%s,%d,%.0f\n", p.First, p.Second, p.DType, p.Scheme, p.Class, p.Decided,
				p.Winner*float64(p.Decided))
		}
	}
	current(t, "../../plugins/library/published/winners.csv", b.String())
}

const trustPage = "../../docs/trust.md"

// hardest holds the part of docs/trust.md about what was left out to the scores: the groups whose times the intervals
// hold least, of those with many times.
func hardest(t *testing.T, got *publishedScore) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| left out | kind | evidence without it | times | held | high ÷ low | median error |\n" +
		"| --- | --- | --- | ---: | ---: | ---: | ---: |\n")
	for _, l := range got.LeftOut {
		listed := 0
		for _, g := range l.Groups {
			if g.Times >= manyTimes && listed < 3 {
				listed++
				of := strings.NewReplacer("[", " ", "]", " ").Replace(g.Of)
				fmt.Fprintf(&b, "| %s | %s | %s | %d | %.0f %% | %.2f | %.1f %% |\n", g.Name, strings.TrimSpace(of), l.Evidence,
					g.Times, 100*g.Held, g.Width, 100*g.Error)
			}
		}
	}
	for _, l := range got.LeftOut {
		fmt.Fprintf(&b, "\nIntervals of the grade `%s` hold %.1f %% of all times left out. "+
			"Their median high ÷ low is %.2f.\n", l.Evidence, 100*l.Held, l.Width)
	}
	fmt.Fprintf(&b, "\nOf %d times that a device is called faster than another with 90 to 95 %% probability, %.1f %% are "+
		"right.\n", got.AllPairs.Sure, 100*got.AllPairs.SureRight)
	shown(t, trustPage, "<!-- left out: written by `make checked` -->", "<!-- end of left out -->", b.String())
}

// trusted is a line of `origami trust --json`.
type trusted struct {
	Device, Kernel, From string
	DTypes               []string
	Evidence             arch.Evidence
	Error                float64 `json:"median_error"`
	Low                  float64 `json:"width_low"`
	High                 float64 `json:"width_high"`
}

// docs/trust.md has what `origami trust` says is checked, a row for each device and family.
func TestTrustInDocs(t *testing.T) {
	var rows []trusted
	for line := range strings.Lines(command(t, nil, "--in-process", "trust", "--json")) {
		var row trusted
		must.Do(t, json.Unmarshal([]byte(line), &row))
		if row.Evidence == arch.EvidenceChecked && !strings.HasSuffix(row.From, "which costs the same)") {
			rows = append(rows, row)
		}
	}
	var b strings.Builder
	b.WriteString("| device | family | types | high ÷ low | median error |\n| --- | --- | --- | --- | --- |\n")
	for _, of := range score.GroupBy(rows, func(r *trusted) string { return r.Device + r.Kernel }) {
		var types []string
		low, high, least, most := of[0].Low, of[0].High, of[0].Error, of[0].Error
		for _, r := range of {
			types = append(types, slices.DeleteFunc(r.DTypes, func(t string) bool { return slices.Contains(types, t) })...)
			low, high = min(low, r.Low), max(high, r.High)
			least, most = min(least, r.Error), max(most, r.Error)
		}
		median := ""
		if least > 0 {
			median = fromTo("%.0f", 100*least, 100*most) + " %"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", of[0].Device, of[0].Kernel, strings.Join(types, ", "),
			fromTo("%.2f", low, high), median)
	}
	shown(t, trustPage, "<!-- checked: written by `make checked` -->", "<!-- end of checked -->", b.String())
}

// fromTo is a range in a table, or the number that both ends are.
func fromTo(format string, low, high float64) string {
	first, last := fmt.Sprintf(format, low), fmt.Sprintf(format, high)
	if first == last {
		return first
	}
	return first + "–" + last
}

// sure holds intervals and odds to what they promise, on times that they were not found on.
func sure(t *testing.T, got *publishedScore) {
	t.Helper()
	least := map[arch.Evidence]float64{arch.EvidenceChecked: 0.85, arch.EvidenceSister: 0.8}
	widest := map[arch.Evidence]float64{arch.EvidenceChecked: 1.6, arch.EvidenceSister: 2.2}
	must.Need(t, len(got.LeftOut) == len(least), "%d grades", len(got.LeftOut))
	for _, l := range got.LeftOut {
		t.Logf("%s: %.3f held, median width %.2f, %v", l.Evidence, l.Held, l.Width, l.Classes)
		must.That(t, l.Held >= least[l.Evidence] && l.Width <= widest[l.Evidence],
			"%s: %.3f of the times left out are held, high ÷ low is %.2f", l.Evidence, l.Held, l.Width)
		for class, held := range l.Classes {
			must.That(t, held >= 0.85, "%s, %s: %.3f of the times left out are held", l.Evidence, class, held)
		}
	}
	p := &got.AllPairs
	t.Logf("%.3f of %d pairs that are 90 to 95 %% sure are right, Brier score %.4f, of intervals that do not touch %.4f",
		p.SureRight, p.Sure, p.Brier, p.BrierApart)
	must.That(t, p.SureRight >= 0.85 && p.SureRight <= 0.97 && p.Brier <= 0.7*p.BrierApart, "the odds are not calibrated")
}

// fewTimes is what a group of docs/published.md needs at least.
const fewTimes = 40

// inDocs holds the tables of docs/published.md to the scores. They list the groups with the least within 20 %.
func inDocs(t *testing.T, got *publishedScore) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| device | type | times | predicted ÷ measured | p10 | p90 | within 20 % | stacks agree |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	refused, modelled, others, least := 0, 0, 0, 1.0
	for _, g := range got.Groups {
		refused, modelled = refused+g.Refused, modelled+g.Score.Times
		switch {
		case g.Score.Times < fewTimes:
		case g.Score.Within >= 0.8:
			others, least = others+1, min(least, g.Score.Within)
		default:
			kind := g.DType
			if g.Scheme != "none" && g.Scheme != "tensor" {
				kind += " " + g.Scheme
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", g.Device, kind, g.Score.cells())
		}
	}
	fmt.Fprintf(&b, "\nIn each of the %d other groups with %d times or more, %.0f %% or more are within 20 %%.\n", others,
		fewTimes, math.Floor(100*least))
	b.WriteString("\n| shapes | times | predicted ÷ measured | p10 | p90 | within 20 % | stacks agree |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for i := range got.Classes {
		fmt.Fprintf(&b, "| %s | %s |\n", got.Classes[i].Class, got.Classes[i].cells())
	}
	fmt.Fprintf(&b, "\nPairs of devices: %.1f %% of %d ratios of times are predicted within 20 %%. Of the %d ratios\n"+
		"over 1.1, %.1f %% have the right winner. %d of %d times are not modelled.\n", 100*got.AllPairs.Within,
		got.AllPairs.Shapes, got.AllPairs.Decided, 100*got.AllPairs.Winner, refused, refused+modelled)

	shown(t, "../../docs/published.md", "<!-- scores: written by `make checked` -->", "<!-- end of scores -->", b.String())
}

// shown holds the part of a page between two lines to a text, or writes it.
func shown(t *testing.T, path, begin, end, text string) {
	t.Helper()
	begin, end = begin+"\n\n", "\n"+end
	page := must.Get(os.ReadFile(path))(t)
	before, rest, ok := strings.Cut(string(page), begin)
	found, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no place for the scores", path)
	case found == text:
	case *writeScores:
		must.Do(t, os.WriteFile(path, []byte(before+begin+text+end+after), 0o644))
	default:
		t.Errorf("%s shows other scores; run `make checked`", path)
	}
}

// sides are two devices with the type and the schemes of the times that are compared.
type sides struct{ first, second, dtype, schemeOfFirst, schemeOfSecond string }

// eachTime is part of a line of `eval --published --each --json`.
type eachTime struct {
	Device, DType, Scheme, Timing, Class string
	M, N, K                              int
	TransA                               bool    `json:"trans_a"`
	TransB                               bool    `json:"trans_b"`
	Published                            float64 `json:"published_seconds"`
	Predicted                            float64 `json:"predicted_seconds"` // 0 without
}

// The recorded ratios of NVIDIA's to AMD's times are of the published times and the predictions of today.
func TestPublishedSides(t *testing.T) {
	var times []eachTime
	text := command(t, nil, "--in-process", "eval", "--published", "--arch", "h100,mi300x,h200,mi355x", "--model",
		"refined", "--each", "--json")
	for line := range strings.Lines(text) {
		var one eachTime
		must.Do(t, json.Unmarshal([]byte(line), &one))
		times = append(times, one)
	}
	var b strings.Builder
	b.WriteString("first,second,dtype,scheme_of_first,scheme_of_second,shapes,number,published,predicted," +
		"first_is_faster,predicted_so,within_20_percent,right_winner\n")
	for _, s := range []sides{
		{"sm90@h100", "gfx942@mi300x", "fp16", "none", "none"},
		{"sm90@h100", "gfx942@mi300x", "fp8", "block128+quant", "block128"},
		{"sm90@h200", "gfx950@mi355x", "bf16", "none", "none"},
		{"sm90@h200", "gfx950@mi355x", "fp8", "block128+quant", "block128"},
	} {
		s.table(&b, times)
	}
	current(t, "../../experiments/nvidia-amd-published/sides.csv", b.String())
}

// current holds a file to a text, or writes it.
func current(t *testing.T, path, text string) {
	t.Helper()
	if *writeScores {
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	file, err := os.ReadFile(path)
	must.That(t, err == nil && string(file) == text, "%s has other numbers (%v); run `make checked`", path, err)
}

// table writes a row for each class of shape that both devices have at least ten times of.
func (s sides) table(b *strings.Builder, all []eachTime) {
	type shape struct {
		m, n, k        int
		transA, transB bool
	}
	times := [2]map[shape]eachTime{{}, {}} // of the first device and of the second
	for _, x := range all {
		at := slices.Index([]string{s.first + " " + s.schemeOfFirst, s.second + " " + s.schemeOfSecond},
			x.Device+" "+x.Scheme)
		if at < 0 || x.DType != s.dtype || x.Predicted == 0 {
			continue
		}
		of := shape{x.M, x.N, x.K, x.TransA, x.TransB}
		// Of several conditions that of layers counts, as for pairs.
		if _, again := times[at][of]; !again || x.Timing == "layers" {
			times[at][of] = x
		}
	}
	both := map[string][]score.Versus{}
	for of, first := range times[0] {
		if second, there := times[1][of]; there {
			v := score.Versus{Measured: first.Published / second.Published, Predicted: first.Predicted / second.Predicted}
			both[first.Class], both["all"] = append(both[first.Class], v), append(both["all"], v)
		}
	}
	names := []string{}
	for _, class := range score.Layers() {
		names = append(names, class.String())
	}
	for _, name := range append(names, "all") {
		list := both[name]
		if len(list) < 10 {
			continue
		}
		var measured, predicted []float64
		var faster, saysSo float64
		for _, v := range list {
			measured, predicted = append(measured, v.Measured), append(predicted, v.Predicted)
			if v.Measured < 1 {
				faster++
			}
			if v.Predicted < 1 {
				saysSo++
			}
		}
		n, c := float64(len(list)), score.ComparabilityOf(list)
		fmt.Fprintf(b, "%s,%s,%s,%s,%s,%s,%d,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f\n", s.first, s.second, s.dtype, s.schemeOfFirst,
			s.schemeOfSecond, name, len(list), stats.Geomean(measured), stats.Geomean(predicted), faster/n, saysSo/n, c.Within,
			c.Winner)
	}
}

// What the models ship of their error is what the published times give.
func TestCheckedIsCurrent(t *testing.T) {
	type line struct {
		Device, Scheme string
		DTypes         []string
		Uncertainty    arch.Uncertainty
	}
	read := func(text string) map[string]arch.Uncertainty {
		all := map[string]arch.Uncertainty{}
		for one := range strings.Lines(text) {
			var l line
			must.Do(t, json.Unmarshal([]byte(one), &l))
			all[fmt.Sprint(l.Device, l.DTypes, l.Scheme)] = l.Uncertainty
		}
		return all
	}
	file := must.Get(os.Open("../../plugins/library/checked/checked.jsonl.gz"))(t)
	defer file.Close()
	z := must.Get(gzip.NewReader(file))(t)
	text := must.Get(io.ReadAll(z))(t)
	shipped := read(string(text))
	// Those of fp32, which have one release each, stand for all: finding the intervals of all takes minutes.
	found := read(command(t, nil, "--in-process", "eval", "--published", "--model", "refined", "--dtype", "fp32",
		"--intervals", "--json"))
	must.That(t, len(found) >= 10, "%d devices", len(found))
	near := func(a, b float64) bool { return a == b || math.Abs(a/b-1) < 0.01 }
	for name, f := range found {
		s, ok := shipped[name]
		if !ok || len(s.Ranges) != len(f.Ranges) || s.Checked.Times != f.Checked.Times ||
			!near(s.MedianError, f.MedianError) || !near(s.Widening, f.Widening) {
			t.Errorf("%s ships %+v, and the published times show %+v; run `make checked`", name, s, f)
			continue
		}
		for i := range s.Ranges {
			// By how much both ends are widened follows from the sources of all types.
			shipped, shown := s.Ranges[i].Low*s.Ranges[i].High, f.Ranges[i].Low*f.Ranges[i].High
			if !near(shipped, shown) {
				t.Errorf("range %d of %s is %+v, and the published times show %+v; run `make checked`", i, name,
					s.Ranges[i], f.Ranges[i])
			}
		}
	}
}
