package serving_test

import (
	"compress/gzip"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/serving"
)

// open opens the library's model on a device.
func open(t testing.TB, device string) *ask.Contender {
	t.Helper()
	providers := must.Get(builtins.Providers())(t)
	source := models.Providers(providers)
	targets := must.Get(models.Parse([]string{device}, ""))(t)
	targets[0].Kernel = "library"
	found := must.Get(models.Find(t.Context(), source, &targets[0]))(t)
	a := must.Get(found.Open(t.Context(), source))(t)
	side := must.Get(ask.NewContender(source, &found, a))(t)
	return &side
}

// config reads a config.json of testdata.
func config(t testing.TB, name string) *hf.Config {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", "configs", name+".json")))(t)
	return must.Get(hf.Decode(name, text))(t)
}

// deployment is a row of deployments.csv.gz, with the parts of its time if each kernel ran alone.
type deployment struct {
	model, device, server, weights string
	layout                         string // all that is known of it besides these
	groups, batch, context, fresh  int
	seconds                        float64 // per token, measured
	alone                          float64 // the parts of its time, each alone
	layers                         float64
	within                         float64 // half of its interval, as a logarithm
	predicted                      float64 // with the numbers of its server from other devices
}

func (d *deployment) time(s *serving.Server) float64 {
	return d.alone + s.Step + s.Layer*d.layers + s.Sequence*float64(d.batch)
}

// read reads the deployments: the aggregated rows on at most eight GPUs of a file of aiconfigurator-core 0.12.0
// (Apache-2.0, systems/silicon_sample.csv), without devices and models that are kept back. experiments/run.py
// step-deployments reads rows.
func read(t testing.TB) (all []deployment) {
	t.Helper()
	f := must.Get(os.Open(filepath.Join("testdata", "deployments.csv.gz")))(t)
	defer f.Close()
	z := must.Get(gzip.NewReader(f))(t)
	rows := must.Get(csv.NewReader(z).ReadAll())(t)
	steps, configs := map[string]*ask.Steps{}, map[string]*hf.Config{}
	for _, r := range rows[1:] {
		number := func(i int) int { n, _ := strconv.Atoi(r[i]); return n }
		d := deployment{model: r[0], device: r[1], server: r[2], weights: r[3], groups: number(7), batch: number(8),
			context: number(9), fresh: number(10)}
		d.layout = strings.Join(append([]string{d.server}, r[4:11]...), " ")
		ms, _ := strconv.ParseFloat(r[11], 64)
		d.seconds = ms / 1e3
		if steps[d.device] == nil {
			steps[d.device] = ask.StepsOn(open(t, d.device))
		}
		if configs[d.model] == nil {
			configs[d.model] = config(t, d.model)
		}
		plan, err := serving.New(d.model, configs[d.model],
			serving.Layout{TP: number(5), EP: number(6), DP: d.groups, Server: d.server, Weights: d.weights})
		must.Need(t, err == nil, "%v: %v", r, err)
		plan = plan.Alone()
		q := ask.StepQuestion{Plan: plan, Batch: d.batch, Context: d.context, New: d.fresh}
		one, err := steps[d.device].Of(t.Context(), q)
		must.Need(t, err == nil, "%v: %v", r, err)
		d.alone, d.layers = float64(one.Seconds), float64(plan.LayerCount())
		d.within = math.Log(float64(one.Interval[1] / one.Seconds))
		all = append(all, d)
	}
	return all
}

// serverOf fits the three numbers of a server to deployments: the least sum of soft absolute errors of the log, with
// each model on a device counted as the root of its rows.
func serverOf(rows []deployment) serving.Server {
	counts := map[string]float64{}
	for i := range rows {
		counts[rows[i].model+rows[i].device+rows[i].weights]++
	}
	loss := func(s *serving.Server) (sum float64) {
		for i := range rows {
			d := &rows[i]
			e := math.Log(d.time(s)/d.seconds) / 0.1
			sum += (math.Sqrt(1+e*e) - 1) / math.Sqrt(max(10, counts[d.model+d.device+d.weights]))
		}
		return sum
	}
	best := serving.Server{Step: 5e-4, Layer: 5e-6, Sequence: 2e-6}
	least := loss(&best)
	for width := 1.0; width > 0.005; {
		improved := false
		for i := range 6 {
			s, factor := best, math.Exp(width*float64(1-2*(i%2)))
			*[]*float64{&s.Step, &s.Layer, &s.Sequence}[i/2] *= factor
			if l := loss(&s); l < least {
				best, least, improved = s, l, true
			}
		}
		if !improved {
			width /= 2
		}
	}
	return best
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// predictions is where to write what is predicted, for experiments/run.py step-compared.
var predictions = flag.String("predictions", "", "write the predicted milliseconds of the deployments to `FILE`")

// mislabelled is the device whose rows are said and not fitted: the batch and the GPUs of most of them are not those
// that were measured (the time per token rises fivefold from one client to two with a batch of one).
const mislabelled = "sm100@gb200"

// Each device is predicted with the numbers of servers that were fitted to the other devices. No deployment is in the
// operators, and none with attention in groups in the numbers of servers. The shipped ones are those of all devices.
func TestDeployments(t *testing.T) {
	rows := read(t)
	of := func(keep func(*deployment) bool) (list []deployment) {
		for i := range rows {
			if rows[i].device != mislabelled && keep(&rows[i]) {
				list = append(list, rows[i])
			}
		}
		return list
	}
	devices := []string{"sm90@h100", "sm90@h200", "sm100@b200", mislabelled}
	for _, name := range serving.Servers() {
		fit := serverOf(of(func(d *deployment) bool { return d.server == name && d.groups == 1 }))
		shipped := serving.ServerOf(name)
		t.Logf("%-7s %.3g s per step, %.3g per layer, %.3g per sequence", name, fit.Step, fit.Layer, fit.Sequence)
		for i, d := range rows {
			if a, b := d.time(&fit), d.time(&shipped); d.server == name && math.Abs(a/b-1) > 0.005 {
				t.Errorf("%s, row %d: %v with the fit, %v with what is shipped", name, i, a, b)
				break
			}
		}
		for _, device := range devices {
			fit := serverOf(of(func(d *deployment) bool { return d.server == name && d.device != device && d.groups == 1 }))
			for i := range rows {
				if d := &rows[i]; d.server == name && d.device == device {
					d.predicted = d.time(&fit)
				}
			}
		}
	}
	if *predictions != "" {
		var text strings.Builder
		for i := range rows {
			fmt.Fprintf(&text, "%.4g\n", 1e3*rows[i].predicted)
		}
		if err := os.WriteFile(*predictions, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	score := func(name string, list []deployment) (middle, close, held float64) {
		var errors []float64
		for i := range list {
			d := &list[i]
			e := math.Abs(d.predicted/d.seconds - 1)
			errors = append(errors, e)
			if e < 0.2 {
				close++
			}
			if math.Abs(math.Log(d.predicted/d.seconds)) < d.within {
				held++
			}
		}
		n := float64(len(list))
		middle, close, held = median(errors), close/n, held/n
		t.Logf("%-12s %4d rows: median error %4.1f %%, within 20 %%: %.0f %%, intervals hold %.1f %%", name, len(list),
			100*middle, 100*close, 100*held)
		return middle, close, held
	}
	for i, most := range []float64{0.12, 0.101, 0.1} {
		list := of(func(d *deployment) bool { return d.device == devices[i] })
		if middle, _, _ := score(devices[i], list); middle > most {
			t.Errorf("%s: the median error is %.3f, at most %.3f", devices[i], middle, most)
		}
	}
	bad := slices.DeleteFunc(slices.Clone(rows), func(d deployment) bool { return d.device != mislabelled })
	score(mislabelled, bad)
	score("in groups", slices.DeleteFunc(slices.Clone(rows), func(d deployment) bool { return d.groups == 1 }))
	score("all", rows)
	list := of(func(*deployment) bool { return true })
	if _, close, held := score("without it", list); close < 0.76 || held < 0.85 || held > 0.92 {
		t.Errorf("%.3f are within 20 %%, at least 0.76; intervals hold %.3f, from 0.85 to 0.92", close, held)
	}
	same := agreed(list)
	score("that agree", same)
	for i, list := range [][]deployment{list, same} {
		right, decided := order(list)
		t.Logf("two configurations of a model on a device that differ by more than 10 %%: %.1f %% of %d in the right order",
			100*right/decided, int(decided))
		if least := []float64{0.935, 0.95}[i]; right/decided < least {
			t.Errorf("%.3f are in the right order, at least %v", right/decided, least)
		}
	}
}

// order counts the pairs of configurations of a model in one type on one device that differ by more than 10 %, and how
// many are predicted in the same order. Two rows of one configuration are no pair.
func order(list []deployment) (right, decided float64) {
	for i := range list {
		for j := range i {
			a, b := &list[i], &list[j]
			r := math.Log(a.seconds / b.seconds)
			if a.model != b.model || a.device != b.device || a.weights != b.weights || a.layout == b.layout ||
				math.Abs(r) < math.Log(1.1) {
				continue
			}
			if decided++; r*math.Log(a.predicted/b.predicted) > 0 {
				right++
			}
		}
	}
	return right, decided
}

// agreed leaves out the rows of configurations that were measured more than once, with times that differ by more than
// 20 %: of releases with and without drafts, which no row says.
func agreed(list []deployment) (agreed []deployment) {
	ends := map[string][2]float64{}
	key := func(d *deployment) string { return d.model + d.device + d.weights + d.layout }
	for i := range list {
		d := &list[i]
		e, there := ends[key(d)]
		if !there {
			e = [2]float64{d.seconds, d.seconds}
		}
		ends[key(d)] = [2]float64{min(e[0], d.seconds), max(e[1], d.seconds)}
	}
	for i := range list {
		if e := ends[key(&list[i])]; e[1] <= 1.2*e[0] {
			agreed = append(agreed, list[i])
		}
	}
	return agreed
}
