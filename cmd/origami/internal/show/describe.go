package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Heading names the device and the model that an answer comes from, and says whether the model was checked on the
// likes of an entry.
func Heading(a *ask.Ranking, e *ask.Entry) []string {
	return append(DeviceLines(a.Arch), ModelLine(a.Arch, a.Kernel),
		fmt.Sprintf("%-11s %s", "evidence", Evidence(a, e)))
}

// Evidence says what is known of the error of an entry's time: arch.Evidence, on what, what is different here, and
// whether times near the problem correct it.
func Evidence(a *ask.Ranking, e *ask.Entry) string {
	text := evidence(a, e)
	if e.Estimate.Spread > 0 {
		text += "; corrected by times near this size"
	}
	return text
}

func evidence(a *ask.Ranking, e *ask.Entry) string {
	scope, outside := a.Scope(e), strings.Join(a.Outside(e), "; ")
	switch {
	case !scope.Checked() && outside == "":
		return EvidenceCell(a, e)
	case !scope.Checked():
		text := string(scope.Evidence)
		if scope.Evidence == arch.EvidenceRelated || scope.Evidence == arch.EvidenceSister {
			text += " (" + scope.Uncertainty.Source + ")"
		}
		return text + ": " + outside
	case outside != "":
		return "checked " + CheckedOn(scope.Uncertainty) + "; outside of these: " + outside
	default:
		return "checked " + CheckedOn(scope.Uncertainty)
	}
}

// EvidenceCell is Evidence in few words.
func EvidenceCell(a *ask.Ranking, e *ask.Entry) string {
	word := string(a.Scope(e).Evidence)
	if outside := a.Outside(e); len(outside) > 0 {
		return word + ": " + strings.Join(outside, "; ")
	}
	return word
}

// Ways says how the other kernel families of the device run the problem, a line each: "library 180 µs (157-213 µs),
// 128x256x64, checked on 12575 published times of this device".
func Ways(a *ask.Ranking) (lines []string) {
	for _, way := range a.Ways {
		e := &way.Entries[0]
		line := way.Kernel + " " + TimeCell(way, e)
		if low, high, ok := way.Interval(e); ok {
			line += " (" + digits.Span(low, high) + ")"
		}
		lines = append(lines, line+", "+e.Config.String()+", "+Evidence(way, e))
	}
	return lines
}

// Advice says what would be faster, a line each: "6.11 times as fast: pad N from 5000 to 5008 with zeros: 412 µs,
// 128x256x64 w8 s4".
func Advice(a *ask.Ranking) (lines []string) {
	for i := range a.Advice {
		o := &a.Advice[i]
		what := "as fast"
		switch o.Rule {
		case "rows":
			what = "the rows per second"
		case "fuse":
			what = "as fast as two kernels"
		}
		lines = append(lines, fmt.Sprintf("%s times %s: %s (%s, %s)", digits.ThreeDigits(o.Gain), what, o.Do,
			unit.Seconds(o.Seconds), o.Config))
	}
	return lines
}

// CheckedOn says what an uncertainty was found on, and the median error there.
func CheckedOn(u *arch.Uncertainty) string {
	s := "on " + SizesOf(&u.Checked)
	if u.Checked.Times > 0 {
		s = fmt.Sprintf("on %s of this device", digits.Plural(u.Checked.Times, "published time", "published times"))
	}
	if u.MedianError > 0 {
		s += ", median error " + digits.Percent(u.MedianError)
	}
	return s
}

// SizesOf says how many sizes and times were measured: "40 sizes of h200-triton", "3187 sizes (6557 times) of …".
func SizesOf(c *arch.Checked) string {
	s := digits.Plural(c.Sizes, "size", "sizes")
	if c.Times > c.Sizes {
		s += fmt.Sprintf(" (%d times)", c.Times)
	}
	return s + " of " + SetOf(c)
}

// SetOf names the measurements, and the type that was timed if it is another one.
func SetOf(c *arch.Checked) string {
	if c.TimedType == "" {
		return c.DataSet
	}
	return c.DataSet + " (" + c.TimedType + ", which costs the same)"
}

// DeviceLines describes a device in one line. For a GPU of this machine a second line says where its numbers come from.
func DeviceLines(d *arch.Description) []string {
	units := fmt.Sprintf("%d %ss", d.Units, d.UnitName)
	if d.Partitions > 1 {
		units += fmt.Sprintf(" on %d dies", d.Partitions)
	}
	lines := []string{fmt.Sprintf("%-11s %s (%s), %s at %s", "device", d.DeviceName, d.ID(), units, d.Clock)}
	if live := ask.LiveOf(d); live != nil {
		lines = append(lines, fmt.Sprintf("%-11s %s", "derived", liveSources(d, live)))
	}
	return lines
}

// liveSources says how many numbers of a GPU of this machine come from its driver, and where the others come from. A
// device file of the user's has no numbers from the driver, and can have scaled ones.
func liveSources(d *arch.Description, live *ask.Live) string {
	if len(live.Driver) == 0 {
		return fmt.Sprintf("%d of %d numbers scaled from %s (%s): origami arch show %s", len(live.Scaled), len(d.Params),
			live.ScaledFrom, lastFive(live.Scaled), d.ID())
	}
	s := fmt.Sprintf("%d of %d numbers from the driver", len(live.Driver), len(d.Params))
	if len(live.Scaled) > 0 {
		s += fmt.Sprintf(", %d scaled from %s (%s)", len(live.Scaled), live.ScaledFrom, lastFive(live.Scaled))
	} else {
		s += fmt.Sprintf(" (%s)", lastFive(live.Driver))
	}
	return s + ": origami arch show auto"
}

// lastFive lists the last five names: devices list the numbers that predictions rest on last.
func lastFive(names []string) string {
	more := len(names) - 5
	if more <= 0 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[more:], ", "), more)
}

// ModelLine is Model with a mark for a model whose totals are no times.
func ModelLine(d *arch.Description, kernel string) string {
	if d.RanksOnly {
		return Model(d, kernel) + "; " + NotATime
	}
	return Model(d, kernel)
}

// Model describes a model in one line, with its rung, and the rung of the clock if that is another.
func Model(d *arch.Description, kernel string) string {
	s := fmt.Sprintf("%-11s %s, kernel family %s, rung %s", "model", d.Model, kernel, d.Rung)
	if d.RungReason != "" {
		s += ", " + d.RungReason
	}
	if d.Timing != "" {
		s += ", timing " + d.Timing
	}
	if d.ClockRung != d.Rung {
		s += fmt.Sprintf(" (clock: %s)", d.ClockRung)
	}
	return s
}

// NotATime marks what a model predicts that puts configurations in order and does not time them.
const NotATime = "not a time: this model ranks kernels of one size"

// Prediction is a predicted time, or the cycles of a model that ranks.
func Prediction(a *ask.Ranking, e *ask.Entry) string {
	if a.Arch.RanksOnly {
		return TimeCell(a, e) + ", " + NotATime
	}
	return TimeCell(a, e)
}

// TimeCell is a predicted time in a table, or the cycles of a model that ranks.
func TimeCell(a *ask.Ranking, e *ask.Entry) string {
	if a.Arch.RanksOnly {
		return digits.SixDigits(float64(e.Estimate.Cycles)) + " cycles"
	}
	return a.Seconds(e).String()
}

// TermCell is the value of a term in the unit in which people speak of it: cycles of a model that predicts times are a
// time.
func TermCell(d *arch.Description, v float64, of string) string {
	switch of {
	case "cycles":
		if d.RanksOnly {
			return digits.SixDigits(v) + " cycles"
		}
		return unit.Cycles(v).At(d.Clock).String()
	case "B":
		return unit.SI(v, "B")
	case "B/cycle":
		return unit.SI(v*float64(d.Clock), "B/s")
	default:
		return digits.Quantity(v, of)
	}
}

// TimeHeader is the header of a column of TimeCell.
func TimeHeader(d *arch.Description) string {
	if d.RanksOnly {
		return "not a time"
	}
	return "time"
}

// RateCell is a predicted rate in a table, and empty for a model that ranks.
func RateCell(a *ask.Ranking, e *ask.Entry) string {
	if a.Arch.RanksOnly {
		return ""
	}
	return digits.Rate(a.Rate(e), a.Problem.DType)
}

// Unused says that a model does not use a parameter. It is empty where the model does, or says nothing about it.
func Unused(d *arch.Description, param string) string {
	if !d.Ignores(param) {
		return ""
	}
	return fmt.Sprintf("not used by the %s model", d.Model)
}

// SourceOf is the source of a parameter, after what Unused says.
func SourceOf(d *arch.Description, p *hw.Param) string {
	if unused := Unused(d, p.Name); unused != "" {
		return unused + "; " + p.Source
	}
	return p.Source
}

// LaunchOrder says how workgroups are distributed to dies.
func LaunchOrder(m arch.Mapping) string {
	s := fmt.Sprintf("launch order: groups of %s, distributed to %s", digits.Plural(m.GroupM, "row", "rows"),
		digits.Plural(m.XCDs, "XCD", "XCDs"))
	if m.Chunk > 0 {
		s += fmt.Sprintf(" in chunks of %d", m.Chunk)
	}
	return s
}

// CandidateCounts says how many candidates are usable, and why the others were rejected, most frequent reason first.
func CandidateCounts(feasible int, rejected []selector.ReasonCount) string {
	s := fmt.Sprintf("%d usable", feasible)
	if len(rejected) == 0 {
		return s
	}
	sorted := slices.Clone(rejected)
	slices.SortStableFunc(sorted, func(a, b selector.ReasonCount) int { return b.Count - a.Count })
	total := 0
	parts := make([]string, len(sorted))
	for i, r := range sorted {
		total += r.Count
		parts[i] = fmt.Sprintf("%d %s", r.Count, r.Reason)
	}
	return fmt.Sprintf("%s, %d rejected (%s)", s, total, strings.Join(parts, ", "))
}

// Ranges are the columns of the ranges of measured ÷ predicted time.
func Ranges() []Column[arch.ErrorRange] {
	type ranges = arch.ErrorRange
	some := func(is bool, text string) string {
		if !is {
			return ""
		}
		return text
	}
	return []Column[ranges]{
		Text("bound", func(r *ranges) string { return some(r.Bound != arch.BoundUnknown, r.Bound.String()) }).Or("any"),
		Text("predicted below", func(r *ranges) string { return some(r.Below > 0, quantity(float64(r.Below), "s")) }),
		Text("from", func(r *ranges) string { return fmt.Sprintf("%.3f", r.Low) }),
		Text("to", func(r *ranges) string { return fmt.Sprintf("%.3f", r.High) })}
}

// UncertaintyLines say how far times are off beside their ranges, and what that was found on.
func UncertaintyLines(u *arch.Uncertainty) (lines []string) {
	line := func(label, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-11s %s", label, fmt.Sprintf(format, args...)))
	}
	if u.Evidence != "" {
		line("evidence", "%s", u.Evidence)
	}
	if u.Sigma > 0 {
		line("sigma", "%.4f of log(measured ÷ predicted) among the candidates of a problem, %.4f to plan measurements with",
			u.Sigma, u.PlanSigma)
	}
	if u.MedianError > 0 {
		line("error", "%s at the median", digits.Percent(u.MedianError))
	}
	if u.Checked.Sizes > 0 {
		line("found on", "%s", checkedText(&u.Checked))
	}
	if u.Widening > 0 {
		line("elsewhere", "for other sizes, the widest range, %.3f times as far out at both ends", u.Widening)
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
		"%.6g divides rows and addresses", SizesOf(c), strings.Join(layouts, ", "),
		ends(c.M), ends(c.N), ends(c.K), ends(c.Batch), ends(c.Flops), ends(c.Split), c.Divisor.Low)
}
