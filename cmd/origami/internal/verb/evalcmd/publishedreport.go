package evalcmd

import (
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// mostOnCurve is how many points a curve has: more cannot be seen, and fill the files.
const mostOnCurve = 200

// contents are the files of a report: published.md with the tables and the plots, published.csv, pairs.csv and
// published.json with the scores, times.csv with each time, its prediction and its source.
func (o *publishedOutcome) contents() report.Contents {
	scores := *o
	scores.pairs = false // they have a file of their own
	return report.Contents{Name: "published", Subject: "all devices of the times", Numbers: scores.write, Page: o.page}
}

func (o *publishedOutcome) page(r *report.Report) {
	title := "Predicted against published times, kernel family " + o.kernel
	pairs, _ := o.comparisons()
	report.CSV(r, "pairs", pairColumns, pairs)
	report.CSV(r, "times", timeColumns, o.times)
	t := o.text()
	t.page(r, title)
	r.Table(pairColumns.Text(pairs))
	r.Figure("agreement", "agreement by class of shape", figure.Sorted(title, "share of the times",
		"the smaller ÷ the larger of predicted and published time", o.curves()))
	r.Agreement(title, o.points())
}

func (o *publishedOutcome) points() []score.Point {
	var all []score.Point
	for i := range o.times {
		if t := &o.times[i]; t.Err == nil {
			all = append(all, t.point())
		}
	}
	return all
}

// curves are the agreement of predicted and published times by class of shape.
func (o *publishedOutcome) curves() []figure.Curve {
	values := map[score.Layer][]float64{}
	for i := range o.times {
		if t := &o.times[i]; t.Err == nil {
			l := score.LayerOf(t.problem)
			values[l] = append(values[l], min(t.ratio(), 1/t.ratio()))
		}
	}
	var out []figure.Curve
	for _, l := range score.Layers() {
		if len(values[l]) == 0 {
			continue
		}
		slices.Sort(values[l])
		n := min(mostOnCurve, len(values[l]))
		s := figure.Curve{Name: l.String()}
		for i := range n {
			s.Values = append(s.Values, stats.Quantile(values[l], float64(i+1)/float64(n)))
		}
		out = append(out, s)
	}
	return out
}

var timeColumns = table.Columns[publishedTime]{
	table.Group([]string{
		"device", "part", "dtype", "out_dtype", "scheme", "m", "n", "k", "trans_a", "trans_b", "class", "timing", "library",
		"published_us", "predicted_us", "predicted_by_published", "reason", "source", "licence",
	}, (*publishedTime).cells),
}

func (t *publishedTime) cells() []string {
	class, predicted, ratio, reason := "", "", "", ""
	micros := func(t unit.Seconds) string { return digits.SixDigits(float64(t) * 1e6) }
	if t.Err == nil {
		class, predicted = score.LayerOf(t.problem).String(), micros(t.Prediction.Time)
		ratio = digits.SixDigits(t.ratio())
	} else {
		reason = t.Err.Error()
	}
	return []string{t.Device, t.Part, t.DType, t.Out, t.Scheme, strconv.Itoa(t.M), strconv.Itoa(t.N), strconv.Itoa(t.K),
		table.Flag(t.TransA), table.Flag(t.TransB), class, string(t.Timing), t.Library, micros(t.Median),
		predicted, ratio, reason, t.Source.ID, t.Source.Licence}
}
