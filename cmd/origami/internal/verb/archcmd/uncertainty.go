package archcmd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

func (t tables) writeUncertainty(u *arch.Uncertainty) {
	var rows [][]string
	for _, r := range u.Ranges {
		bound, below := r.Bound.String(), r.Below.String()
		if r.Bound == arch.BoundUnknown {
			bound = "any"
		}
		if r.Below == 0 {
			below = ""
		}
		rows = append(rows, []string{bound, below, fmt.Sprintf("%.3f", r.Low), fmt.Sprintf("%.3f", r.High)})
	}
	t.write(fmt.Sprintf("Measured ÷ predicted time of %s, %s intervals", u.Kernel, table.Level(u.Level)),
		[]string{"bound", "predicted below", "from", "to"}, rows)
	table.Line(t.s, "sigma",
		"%.3f of log(measured ÷ predicted) among the candidates of a problem, %.3f to plan measurements with",
		u.Sigma, u.PlanSigma)
	if u.MedianError > 0 {
		table.Line(t.s, "error", "%s at the median", table.Percent(u.MedianError))
	}
	if len(u.Checked.Layouts) > 0 {
		table.Line(t.s, "found on", "%s", checkedText(&u.Checked))
	}
	if u.Widening > 0 {
		table.Line(t.s, "elsewhere", "for other sizes, the widest range, %.3f times as far out at both ends", u.Widening)
	}
	table.Line(t.s, "source", "%s", u.Source)
}

// checkedText says what the error of a model was found on.
func checkedText(c *arch.Checked) string {
	layouts := make([]string, len(c.Layouts))
	for i, l := range c.Layouts {
		layouts[i] = fmt.Sprintf("%s (A along %c, B along %c)", l.Types.Text(), l.AMajor, l.BMajor)
	}
	ends := func(r arch.Range) string {
		if r.Low == r.High {
			return fmt.Sprintf("%.6g", r.Low)
		}
		return fmt.Sprintf("%.6g–%.6g", r.Low, r.High)
	}
	return fmt.Sprintf("%s: %s; M %s, N %s, K %s, batch %s, %s operations, split %s; "+
		"%.6g divides rows and addresses", render.SizesOf(c), strings.Join(layouts, ", "),
		ends(c.M), ends(c.N), ends(c.K), ends(c.Batch), ends(c.Flops), ends(c.Split), c.Divisor.Low)
}

// fitted is a data set that the model was fitted to, in JSON.
type fitted struct {
	DataSet  string        `json:"data_set"`
	Kernel   string        `json:"kernel,omitempty"`
	Problems []gemm.Record `json:"problems"`
}

func fittedJSON(list []arch.Fitted) (out []fitted) {
	for _, f := range list {
		one := fitted{DataSet: f.DataSet, Kernel: f.Kernel, Problems: []gemm.Record{}}
		for _, p := range f.Problems {
			one.Problems = append(one.Problems, p.Record())
		}
		out = append(out, one)
	}
	return out
}

func (t tables) writeFitted(list []arch.Fitted) {
	var rows [][]string
	for _, f := range list {
		problems := "not listed"
		if len(f.Problems) > 0 {
			problems = strconv.Itoa(len(f.Problems))
		}
		rows = append(rows, []string{f.DataSet, cmp.Or(f.Kernel, "all"), problems})
	}
	t.writeIfAny("Fitted to", []string{"data set", "kernel", "problems"}, rows)
}
