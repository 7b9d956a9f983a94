//go:build !race

package fit_test

import (
	"cmp"
	"flag"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library/nearby"
	"github.com/origami-gemm/origami/plugins/library/published"
)

var allTimes = flag.String("all-times", "", "write plugins/library/nearby/times.bin from all times in this file")

// placed is where a published time stands among those of package nearby.
type placed struct {
	device, scheme, release, types, source, timing, layout string
}

// place is empty for a time that does not stand there.
func place(t *published.Time) (at placed) {
	options, ok := optionsOf(t.Series)
	p, err := t.Problem()
	if err == nil && ok && t.Doubt == "" {
		at = placed{t.Device, options["scheme"], t.Release, nearby.TypesOf(p.DType), t.Source.ID, string(t.Timing),
			nearby.LayoutOf(arch.LayoutOf(&p), strings.HasPrefix(t.Device, "sm"))}
	}
	return at
}

// The stored residuals are those of the model as it is: a change of its numbers needs `make checked`.
func TestNearby(t *testing.T) {
	opened, _ := open(t)
	all, most := published.Times(), 40
	if *allTimes != "" {
		file, err := os.ReadFile(*allTimes)
		if err == nil {
			all, err = published.Parse(file)
		}
		must.Do(t, err)
		most = math.MaxInt32
	}
	all = slices.Concat(all, unsaid(all))
	s := must.Get(sampleOf(opened, all, func(x *published.Time) bool { return place(x) != placed{} }, most))(t)
	rows := map[placed][]residual.Row{}
	must.Do(t, s.Errors(t.Context(), nil, func(x *published.Time, err float64) {
		rows[place(x)] = append(rows[place(x)], residual.Row{M: x.M, N: x.N, K: x.K, Residual: -err})
	}))
	if *allTimes != "" {
		writeNearby(t, rows, opened)
		return
	}
	stored := map[placed]map[[3]int][]float64{}
	for _, p := range nearby.Of("", "", "") {
		for _, s := range p.Rows() {
			at := placed{p.Device, p.Scheme, p.Release, p.Types, s.Source, s.Timing, s.Layout}
			stored[at] = map[[3]int][]float64{}
			for _, r := range s.Rows() {
				shape := [...]int{r.M, r.N, r.K}
				stored[at][shape] = append(stored[at][shape], r.Residual)
			}
		}
	}
	compared := 0
	for at, list := range rows {
		for _, r := range list {
			same := func(stored float64) bool {
				return math.Abs(stored-max(min(r.Residual, 1.27), -1.28)) < 0.0051
			}
			if compared++; !slices.ContainsFunc(stored[at][[3]int{r.M, r.N, r.K}], same) {
				t.Fatalf("%v: the residual of %dx%dx%d is %.3f, and not stored: run make checked", at, r.M, r.N, r.K, r.Residual)
			}
		}
	}
	must.That(t, compared >= 5000, "only %d times were compared", compared)
}

// unsaid are times of fp4 as of a question without a word on scales, which fp4 always has.
func unsaid(all []published.Time) (times []published.Time) {
	as := map[*published.Series]*published.Series{}
	for i := range all {
		x := all[i]
		if x.DType != "fp4" || strings.HasSuffix(x.Scheme, "+quant") {
			continue
		}
		if as[x.Series] == nil {
			plain := *x.Series
			plain.Scheme = published.TensorScheme
			as[x.Series] = &plain
		}
		x.Series = as[x.Series]
		times = append(times, x)
	}
	return times
}

func writeNearby(t *testing.T, rows map[placed][]residual.Row, opened opener) {
	t.Helper()
	var pools []*nearby.Pool
	for _, at := range slices.SortedFunc(maps.Keys(rows), func(a, b placed) int {
		return cmp.Or(strings.Compare(a.device, b.device), strings.Compare(a.scheme, b.scheme),
			strings.Compare(a.release, b.release), strings.Compare(a.types, b.types), strings.Compare(a.source, b.source),
			strings.Compare(a.timing, b.timing), strings.Compare(a.layout, b.layout))
	}) {
		p := &nearby.Pool{Device: at.device, Scheme: at.scheme, Release: at.release, Types: at.types}
		if n := len(pools) - 1; n >= 0 && pools[n].Device == p.Device && pools[n].Scheme == p.Scheme &&
			pools[n].Release == p.Release && pools[n].Types == p.Types {
			p = pools[n]
		} else {
			m := must.Get(opened(p.Device, map[string]string{residual.Nearby: residual.None}))(t)
			p.Board = m.Board()
			pools = append(pools, p)
		}
		s := &residual.Series{Source: at.source, Timing: at.timing, Layout: at.layout}
		s.Add(rows[at])
		p.Series = append(p.Series, s)
	}
	for _, p := range pools {
		p.Local = p.With(p.Series).IsLocal()
	}
	file, err := nearby.Encode(pools)
	if err == nil {
		err = os.WriteFile("../nearby/times.bin", file, 0o644)
	}
	must.Do(t, err)
}
