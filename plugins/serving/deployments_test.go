package serving_test

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/serving"
)

// open opens the library's model on a device.
func open(t testing.TB, device string) *ask.Contender {
	t.Helper()
	providers, err := builtins.Providers()
	if err != nil {
		t.Fatal(err)
	}
	source := models.Providers(providers)
	targets, err := models.Parse([]string{device}, "")
	if err != nil {
		t.Fatal(err)
	}
	targets[0].Kernel = "library"
	found, err := models.Find(t.Context(), source, &targets[0])
	if err != nil {
		t.Fatal(err)
	}
	a, err := found.Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	side, err := ask.NewContender(source, &found, a)
	if err != nil {
		t.Fatal(err)
	}
	return &side
}

// config reads a config.json of testdata.
func config(t testing.TB, name string) *hf.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "configs", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := hf.Decode(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deployment is a row of deployments.csv.gz, with the parts of its time if each kernel ran alone.
type deployment struct {
	model, device, server, weights string
	batch, context, fresh          int
	seconds                        float64 // per token, measured
	alone                          float64 // the parts of its time, each alone
	layers                         float64
	sigma                          float64 // of the parts' sum
	predicted                      float64 // with the numbers of its server from other devices
}

func (d *deployment) time(s *serving.Server) float64 {
	return d.alone + s.Step + s.Layer*d.layers + s.Sequence*float64(d.batch)
}

// read reads the deployments. A row of a file of aiconfigurator-core 0.12.0 (Apache-2.0, systems/silicon_sample.csv) is
// one whose attention is not in groups, on at most eight GPUs, and of no device or model that is kept back. Rows that
// give the product of both sizes as --tp (16 and 64) are read as 4 and 8 GPUs.
func read(t testing.TB) (all []deployment) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "deployments.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	steps, configs := map[string]*ask.Steps{}, map[string]*hf.Config{}
	for _, r := range rows[1:] {
		number := func(i int) int { n, _ := strconv.Atoi(r[i]); return n }
		d := deployment{model: r[0], device: r[1], server: r[2], weights: r[3], batch: number(7), context: number(8),
			fresh: number(9)}
		ms, _ := strconv.ParseFloat(r[10], 64)
		d.seconds = ms / 1e3
		if steps[d.device] == nil {
			steps[d.device] = ask.StepsOn(open(t, d.device))
		}
		if configs[d.model] == nil {
			configs[d.model] = config(t, d.model)
		}
		plan, err := serving.New(d.model, configs[d.model],
			serving.Layout{TP: number(5), EP: number(6), Server: d.server, Weights: d.weights})
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		plan.SetBlocks(number(4) > 0)
		plan = plan.Alone()
		q := ask.StepQuestion{Plan: plan, Batch: d.batch, Context: d.context, New: d.fresh}
		one, err := steps[d.device].Of(t.Context(), q)
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		d.alone, d.layers = float64(one.Seconds), float64(plan.LayerCount())
		d.sigma = math.Log(float64(one.Interval[1]/one.Seconds)) / 1.6449 / plan.Spread()
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

// Each device is predicted with the numbers of servers that were fitted to the other devices.
func TestDeployments(t *testing.T) {
	rows := read(t)
	of := func(keep func(*deployment) bool) (list []deployment) {
		for i := range rows {
			if keep(&rows[i]) {
				list = append(list, rows[i])
			}
		}
		return list
	}
	var devices []string
	for i := range rows {
		d := &rows[i]
		if !slices.Contains(devices, d.device) {
			devices = append(devices, d.device)
		}
	}
	for _, server := range serving.Servers() {
		all := serverOf(of(func(d *deployment) bool { return d.server == server && d.device != "sm100@gb200" }))
		t.Logf("%-7s step %.3g layer %.3g sequence %.3g", server, all.Step, all.Layer, all.Sequence)
		for _, device := range devices {
			fit := serverOf(of(func(d *deployment) bool { return d.server == server && d.device != device }))
			for i := range rows {
				if d := &rows[i]; d.server == server && d.device == device {
					d.predicted = d.time(&fit)
				}
			}
		}
	}
	_, spread := serving.ServerOf("vllm")
	var z []float64
	for _, device := range append(devices, "") {
		var errors []float64
		in20, held, below := 0, 0, 0
		for i := range rows {
			d := &rows[i]
			if device != "" && d.device != device {
				continue
			}
			e := math.Abs(d.predicted/d.seconds - 1)
			errors = append(errors, e)
			if e < 0.2 {
				in20++
			}
			n := math.Log(d.predicted/d.seconds) / d.sigma / 1.6449
			if math.Abs(n) < spread {
				held++
			}
			if n < 0 {
				below++
			}
			if device == "" && d.device != "sm100@gb200" {
				z = append(z, math.Abs(n))
			}
		}
		n := float64(len(errors))
		t.Logf("%-12s %4d rows: median error %.1f %%, within 20 %%: %.0f %%, intervals hold %.1f %%, below %.0f %%", device,
			len(errors), 100*median(errors), 100*float64(in20)/n, 100*float64(held)/n, 100*float64(below)/n)
	}
	slices.Sort(z)
	t.Logf("spread for 88 %%: %.3f", z[int(0.88*float64(len(z)))])
	right, decided := 0, 0
	for i := range rows {
		for j := range i {
			a, b := &rows[i], &rows[j]
			if a.model != b.model || a.device != b.device || a.weights != b.weights {
				continue
			}
			if r := math.Log(a.seconds / b.seconds); math.Abs(r) > math.Log(1.1) {
				decided++
				if r*math.Log(a.predicted/b.predicted) > 0 {
					right++
				}
			}
		}
	}
	t.Logf("order of two configurations: %.1f %% of %d", 100*float64(right)/float64(decided), decided)
}
