package show

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
)

// Ranges are the columns of the ranges of measured ÷ predicted time.
func Ranges() []Column[arch.ErrorRangeRecord] {
	type ranges = arch.ErrorRangeRecord
	return []Column[ranges]{Key[ranges]("bound").Or("any"), Key[ranges]("below_seconds", "predicted below"),
		Text("from", func(r *ranges) string { return fmt.Sprintf("%.3f", r.Low) }),
		Text("to", func(r *ranges) string { return fmt.Sprintf("%.3f", r.High) })}
}

// UncertaintyLines say how far times are off beside their ranges, and what that was found on.
func UncertaintyLines(u *arch.UncertaintyRecord) (lines []string) {
	line := func(label, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-11s %s", label, fmt.Sprintf(format, args...)))
	}
	if u.Evidence != "" {
		line("evidence", "%s", u.Evidence)
	}
	if u.Spread > 0 {
		line("sigma", "%.4f of log(measured ÷ predicted) among the candidates of a problem, %.4f to plan measurements with",
			u.Spread, u.Plan)
	}
	if u.MedianError != nil {
		line("error", "%s at the median", digits.Percent(*u.MedianError))
	}
	if u.Checked != nil && u.Checked.Sizes > 0 {
		line("found on", "%s", checkedText(u.Checked))
	}
	if u.Widening != nil {
		line("elsewhere", "for other sizes, the widest range, %.3f times as far out at both ends", *u.Widening)
	}
	line("source", "%s", u.Source)
	return lines
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
