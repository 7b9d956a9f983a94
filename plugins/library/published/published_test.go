package published_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// Every time has a source with a licence, a size, an order of its figures, and a rate that a device can reach.
func TestTimes(t *testing.T) {
	times := published.Times()
	must.Need(t, len(times) >= 200_000, "%d times", len(times))
	for _, s := range published.Sources() {
		must.That(t, s.Address != "" && s.Licence != "" && s.Timed != "",
			"the source %s lacks an address, a licence or how it was timed", s.ID)
		must.That(t, slices.ContainsFunc(times, func(x published.Time) bool { return x.Source == s }),
			"the source %s has no time", s.ID)
	}
	for i := range times {
		x := &times[i]
		flops := 2 * float64(x.M) * float64(x.N) * float64(x.K)
		must.Need(t, x.M >= 1 && x.N >= 1 && x.K >= 1 && x.Median > 0 && flops/float64(x.Median) <= 20e15 &&
			x.Timing.Meaning() != "", "%+v of %+v", x, x.Series)
		must.Need(t, (x.Figures <= 1 || x.Low > 0 && x.Low <= x.Median && x.Median <= x.High) && x.Figures >= 1,
			"the figures of %+v", x)
	}
}

// The storage of the operands reaches the problem: a linear layer has weights that are contiguous along K.
func TestProblem(t *testing.T) {
	for i, x := range published.Times() {
		if x.Source.ID != "aiconfigurator" || x.DType != "bf16" {
			continue
		}
		p := must.Get(x.Problem())(t)
		must.Need(t, p.AMajor == gemm.MajorK && p.BMajor == gemm.MajorK && p.DType == gemm.BF16 && p.Output() == gemm.BF16 &&
			p.M == x.M && p.N == x.N && p.K == x.K && p.Batch == 1, "time %d is of %s", i, p)
		return
	}
	t.Error("no linear layer")
}

// Pairs of devices need the same shapes on both.
func TestShapesInCommon(t *testing.T) {
	type shape struct{ m, n, k int }
	shapes := map[string]map[shape]bool{}
	for _, x := range published.Times() {
		key := x.Device + " " + x.DType
		if shapes[key] == nil {
			shapes[key] = map[shape]bool{}
		}
		shapes[key][shape{x.M, x.N, x.K}] = true
	}
	common := func(a, b string) (n int) {
		for s := range shapes[a] {
			if shapes[b][s] {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		a, b string
		most int
	}{
		{"sm90@h100 bf16", "sm90@h200 bf16", 4000},
		{"sm90@h200 fp8", "gfx950@mi355x fp8", 900},
		{"sm90@h200 bf16", "gfx950@mi355x bf16", 150},
	} {
		n := common(c.a, c.b)
		must.That(t, n >= c.most, "%s and %s have %d shapes in common", c.a, c.b, n)
	}
}

// Every part that has a device file is one of the tables.
func TestParts(t *testing.T) {
	devices := map[string]string{}
	for _, x := range published.Times() {
		if x.Device == "" {
			continue
		}
		arch, device, ok := strings.Cut(x.Device, "@")
		must.Need(t, ok && arch != "" && device != "", "%s is %q", x.Part, x.Device)
		other := devices[x.Device]
		must.Need(t, other == "" || other == x.Part, "%s is %s and %s", x.Device, other, x.Part)
		devices[x.Device] = x.Part
	}
	must.That(t, len(devices) >= 25, "%d devices", len(devices))
}

// The page about the times has every source, with its licence and the number of its times.
func TestSourcesInDocs(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/published.md"))(t)
	counts := map[*published.Source]int{}
	for _, x := range published.Times() {
		counts[x.Source]++
	}
	for _, s := range published.Sources() {
		number := strconv.Itoa(counts[s])
		if n := len(number); n > 3 {
			number = number[:n-3] + "," + number[n-3:]
		}
		row := "| " + s.ID + " | " + number + " | " + s.Licence + " |"
		must.That(t, strings.Contains(string(page), row), "docs/published.md has no row %q", row)
	}
}
