package catalogcmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

func writeUncertainty(s *iostreams.Streams, u *arch.Uncertainty, evidence arch.Evidence) {
	section(s, fmt.Sprintf("Measured ÷ predicted time of %s, %s intervals", u.Kernel, digits.Level(u.Level)),
		ranges, u.Ranges)
	table.Line(s, "evidence", "%s", evidence)
	if u.Sigma > 0 {
		table.Line(s, "sigma",
			"%.3f of log(measured ÷ predicted) among the candidates of a problem, %.3f to plan measurements with",
			u.Sigma, u.PlanSigma)
	}
	if u.MedianError > 0 {
		table.Line(s, "error", "%s at the median", digits.Percent(u.MedianError))
	}
	if u.Checked.Sizes > 0 {
		table.Line(s, "found on", "%s", checkedText(&u.Checked))
	}
	if u.Widening > 0 {
		table.Line(s, "elsewhere", "for other sizes, the widest range, %.3f times as far out at both ends", u.Widening)
	}
	table.Line(s, "source", "%s", u.Source)
}

var ranges = table.Columns[arch.ErrorRange]{
	table.Text("bound", func(r *arch.ErrorRange) string {
		if r.Bound == arch.BoundUnknown {
			return "any"
		}
		return r.Bound.String()
	}),
	table.Text("predicted below", func(r *arch.ErrorRange) string {
		if r.Below == 0 {
			return ""
		}
		return r.Below.String()
	}),
	table.Text("from", func(r *arch.ErrorRange) string { return fmt.Sprintf("%.3f", r.Low) }),
	table.Text("to", func(r *arch.ErrorRange) string { return fmt.Sprintf("%.3f", r.High) }),
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
		"%.6g divides rows and addresses", table.SizesOf(c), strings.Join(layouts, ", "),
		ends(c.M), ends(c.N), ends(c.K), ends(c.Batch), ends(c.Flops), ends(c.Split), c.Divisor.Low)
}

// fitted are the columns of the data sets that the model was fitted to.
var fitted = table.Columns[arch.Fitted]{
	table.Col("data_set|-|data set", func(f *arch.Fitted) string { return f.DataSet }),
	table.Col("kernel", func(f *arch.Fitted) string { return f.Kernel }).Omit().Or("all"),
	table.Col("problems|-", func(f *arch.Fitted) []gemm.Record {
		records := []gemm.Record{}
		for _, p := range f.Problems {
			records = append(records, p.Record())
		}
		return records
	}),
	table.Text("problems", func(f *arch.Fitted) string {
		if len(f.Problems) == 0 {
			return "not listed"
		}
		return strconv.Itoa(len(f.Problems))
	}),
}
