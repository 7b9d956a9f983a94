package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// What was scored is what was checked: neither more, nor less.
func TestCheckedOn(t *testing.T) {
	var rows []Evaluation
	for _, p := range []gemm.Problem{gemm.New(16, 64, 256), gemm.New(1024, 32, 48)} {
		row := Evaluation{Problem: p}
		for _, split := range []int{2, 8} {
			row.Rows = append(row.Rows, Row{Config: gemm.Config{SplitK: split}})
		}
		rows = append(rows, row)
	}
	// A problem without a measured time was not checked.
	rows = append(rows, Evaluation{Problem: gemm.New(7, 7, 7)})
	c := checkedOn("some", rows)
	must.That(t, c.DataSet == "some" && c.Sizes == 2 && len(c.Layouts) == 1 && c.M == (arch.Range{Low: 16, High: 1024}) &&
		c.N == (arch.Range{Low: 32, High: 64}) && c.K == (arch.Range{Low: 48, High: 256}) &&
		c.Split == (arch.Range{Low: 2, High: 8}) && c.Divisor == (arch.Range{Low: 16, High: 16}) &&
		c.Flops == (arch.Range{Low: 2 * 16 * 64 * 256, High: 2 * 1024 * 32 * 48}), "%+v", c)
	d := arch.Description{Uncertainty: []arch.Uncertainty{{Checked: c, Ranges: []arch.ErrorRange{{Low: 1, High: 1}}}}}
	for i := range rows {
		if outside := d.Outside("", &rows[i].Problem, 4); (len(outside) > 0) != (i == 2) {
			t.Errorf("%s: outside in %q", rows[i].Problem, outside)
		}
	}
}

// The range of the other classes, widened, holds the times of a class that is predicted worse than they are.
func TestWidening(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	made := func(class Class, sizes int, bias float64) (rows []Evaluation) {
		for range sizes {
			row := Evaluation{Class: class}
			for range 50 {
				measured := unit.Seconds(1e-3)
				row.Rows = append(row.Rows, Row{
					Bound: arch.BoundCompute, Measured: measured,
					Predicted: measured / unit.Seconds(bias*math.Exp(0.05*random.NormFloat64())),
				})
			}
			rows = append(rows, row)
		}
		return rows
	}
	alike := append(made(Square, 20, 1), made(Decode, 20, 1)...)
	if w := widening(alike); w < 1 || w > 1.05 {
		t.Errorf("classes with the same errors widen by %v", w)
	}
	// One class takes twice its predicted time: the others reach up to 1.08.
	biased := append(made(Square, 30, 1), made(Decode, 15, 2)...)
	w := widening(biased)
	must.That(t, w >= 1.8 && w <= 2.1, "a class that takes twice its predicted time widens by %v", w)
	u := arch.Uncertainty{Ranges: ErrorRanges(made(Square, 30, 1)), Widening: w}
	held, of := 0, 0
	for _, row := range made(Decode, 40, 2) {
		h, n := Held(row.Rows, func(*gemm.Problem, int) arch.Scope { return arch.Scope{Uncertainty: &u, Wide: true} })
		held, of = held+h, of+n
	}
	share := float64(held) / float64(of)
	must.That(t, share >= 0.85, "the widened range holds %.2f of the class", share)
	// With one class there is nothing to leave out.
	must.Equal(t, widening(made(Square, 40, 1)), 0)
}

// With few measured picks, nothing is known of what they lose.
func TestSigmaNeedsPicks(t *testing.T) {
	var rows []Evaluation
	for i := range 20 {
		row := Evaluation{Leading: []unit.Seconds{1, 1.01, 1.02}, LeadingMeasured: []unit.Seconds{0, 1, 1.1}}
		for range 30 {
			row.Rows = append(row.Rows, Row{Predicted: 1, Measured: 1 + unit.Seconds(i)/100})
		}
		row.Best.Measured = 1
		rows = append(rows, row)
	}
	u, ok := Calibrate("", "", rows)
	must.That(t, ok && u.Sigma == 0 && u.PlanSigma == 0, "%v, %+v", ok, u)
	for i := range rows {
		rows[i].Pick.Measured, rows[i].LeadingMeasured[0] = 1.05, 1.05
	}
	u, ok = Calibrate("", "", rows)
	must.That(t, ok && u.Sigma > 0 && u.PlanSigma >= u.Sigma, "%v, %+v", ok, u)
}
