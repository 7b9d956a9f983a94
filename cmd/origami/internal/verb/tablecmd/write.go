package tablecmd

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/unit"
)

// row is a kernel of a layer.
type row struct {
	layer  *tableLayer
	kernel *kernel
}

func (o *invariantOptions) write(side *ask.Contender, t *invariantTable) error {
	s, format := o.factory.Streams, o.factory.Format()
	switch {
	case format == table.JSON:
		return table.JSONLine(s, t)
	case format != table.Table:
		return kernelColumns.Write(s, format, t.rows())
	}
	d := side.Describe()
	table.Lines(s, table.DeviceLines(d)...)
	table.Lines(s, table.ModelLine(d, side.Kernel))
	table.Line(s, "table", "%s for vLLM %s, %s", t.For, t.VLLM, t.DType)
	table.Line(s, "evidence", "%s", t.evidence())
	table.Line(s, "gain", "%s times as fast as vLLM's fixed tile %s (predicted; all layers, geometric mean over M)",
		s.Bold(digits.ThreeDigits(t.Gain)), &fixed)
	if o.explain {
		return kernelColumns.Write(s, format, t.rows())
	}
	if err := layerColumns.Write(s, format, t.Layers); err != nil {
		return err
	}
	s.Printf("\n")
	return passColumns.Write(s, format, t.Passes)
}

// answer writes an object about experts as JSON, its rows as CSV, or lines and rows for people.
func answer[T any](
	f *session.Factory, side *ask.Contender, object any, evidence string, columns table.Columns[T], rows []T,
	lines func(*iostreams.Streams),
) error {
	s, format := f.Streams, f.Format()
	if format == table.JSON {
		return table.JSONLine(s, object)
	}
	if format == table.Table {
		d := side.Describe()
		table.Lines(s, table.DeviceLines(d)...)
		table.Lines(s, table.ModelLine(d, side.Kernel))
		lines(s)
		table.Line(s, "evidence", "%s", evidence)
	}
	return columns.Write(s, format, rows)
}

// evidence says what the intervals rest on, and how wide they are.
func (t *invariantTable) evidence() string {
	first, widest := t.rows()[0].kernel, 0.0
	for _, r := range t.rows() {
		if i := r.kernel.Interval; i != nil {
			widest = max(widest, i[1]/i[0])
		}
	}
	text := string(first.Evidence)
	if widest > 0 {
		text += fmt.Sprintf("; the 90 %% intervals span a factor of %s at most", digits.ThreeDigits(widest))
	}
	return text
}

func (t *invariantTable) rows() (rows []row) {
	for i := range t.Layers {
		for j := range t.Layers[i].Kernels {
			rows = append(rows, row{&t.Layers[i], &t.Layers[i].Kernels[j]})
		}
	}
	return rows
}

func seconds(v float64) string { return unit.Seconds(v).String() }

func span(v *[2]float64) string {
	if v == nil {
		return ""
	}
	return digits.Span(unit.Seconds(v[0]), unit.Seconds(v[1]))
}

// intervals are the columns of the ends of an interval, empty without one.
func intervals[T any](of func(*T) *[2]float64) table.Column[T] {
	return table.Group([]string{"interval_low_seconds", "interval_high_seconds"}, func(row *T) []string {
		if v := of(row); v != nil {
			return []string{table.Cell(v[0]), table.Cell(v[1])}
		}
		return []string{"", ""}
	}).In(table.CSV)
}

func names(l *tableLayer) string { return strings.Join(l.Names, " ") }

var kernelColumns = table.Columns[row]{
	table.Col("layer", func(r *row) string { return names(r.layer) }),
	table.Col("n||N", func(r *row) int { return r.layer.N }),
	table.Col("k||K", func(r *row) int { return r.layer.K }),
	table.Col("m||M to", func(r *row) int { return r.kernel.M }),
	table.Col("block_m", func(r *row) int { return r.kernel.BlockM }).In(table.CSV),
	table.Col("block_n", func(r *row) int { return r.kernel.BlockN }).In(table.CSV),
	table.Col("block_k", func(r *row) int { return r.layer.BlockK }).In(table.CSV),
	table.Col("num_warps", func(r *row) int { return r.kernel.NumWarps }).In(table.CSV),
	table.Col("num_stages", func(r *row) int { return r.kernel.NumStages }).In(table.CSV),
	table.Text("kernel", func(r *row) string {
		k := r.kernel
		return fmt.Sprintf("%dx%dx%d w%d s%d", k.BlockM, k.BlockN, r.layer.BlockK, k.NumWarps, k.NumStages)
	}),
	table.Col("seconds||time", func(r *row) float64 { return r.kernel.Seconds }, seconds),
	intervals(func(r *row) *[2]float64 { return r.kernel.Interval }),
	table.Text("90 %", func(r *row) string { return span(r.kernel.Interval) }),
	table.Col("evidence", func(r *row) string { return string(r.kernel.Evidence) }),
	table.Col("bound", func(r *row) string { return r.kernel.Bound }).In(table.CSV),
	table.Col("price", func(r *row) float64 { return r.kernel.Price }, digits.Percent),
	table.Col("fixed_seconds||fixed tile", func(r *row) float64 { return r.kernel.FixedSeconds }, seconds),
	table.Col("gain", func(r *row) float64 { return r.kernel.Gain }, digits.ThreeDigits),
	table.Text("why", func(r *row) string { return r.kernel.Why }),
}

var layerColumns = table.Columns[tableLayer]{
	table.Text("layer", names),
	table.Col("N", func(l *tableLayer) int { return l.N }),
	table.Col("K", func(l *tableLayer) int { return l.K }),
	table.Col("BLOCK_K", func(l *tableLayer) int { return l.BlockK }),
	table.Col("its price", func(l *tableLayer) float64 { return l.MeanPrice }, digits.Percent),
	table.Col("at worst", func(l *tableLayer) float64 { return l.WorstPrice }, digits.Percent),
	table.Col("at M", func(l *tableLayer) int { return l.WorstM }),
	table.Col("kernels", func(l *tableLayer) int { return len(l.Kernels) }),
	table.Col("gain", func(l *tableLayer) float64 { return l.Gain }, digits.ThreeDigits),
}

var passColumns = table.Columns[pass]{
	table.Col("M", func(p *pass) int { return p.M }),
	table.Col("all layers", func(p *pass) float64 { return p.Seconds }, seconds),
	table.Col("fixed tile", func(p *pass) float64 { return p.FixedSeconds }, seconds),
	table.Col("gain", func(p *pass) float64 { return p.Gain }, digits.ThreeDigits),
}
