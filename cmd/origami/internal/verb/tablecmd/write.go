package tablecmd

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/unit"
)

// row is a kernel of a layer, in CSV.
type row struct {
	Layer  string `json:"layer"`
	N      int    `json:"n"`
	K      int    `json:"k"`
	BlockK int    `json:"block_k"`
	kernel
}

func (o *invariantOptions) write(side *ask.Contender, t *invariantTable) error {
	s, format := o.factory.Streams, o.factory.Format()
	key := show.Key[row]
	kernels := []show.Column[row]{key("layer"), key("n", "N"), key("k", "K"), key("m", "M to"),
		show.Text("kernel", func(r *row) string {
			return fmt.Sprintf("%dx%dx%d w%d s%d", r.BlockM, r.BlockN, r.BlockK, r.NumWarps, r.NumStages)
		}), key("seconds", "time"), show.Text("90 %", func(r *row) string { return span(r.Interval) }), key("evidence"),
		key("price"), key("fixed_seconds", "fixed tile"), key("gain"), key("why")}
	lines := func(s *iostreams.Streams) {
		show.Line(s, "table", "%s for vLLM %s, %s", t.For, t.VLLM, t.DType)
		show.Line(s, "gain", "%s times as fast as vLLM's fixed tile %s (predicted; all layers, geometric mean over M)",
			s.Bold(digits.ThreeDigits(t.Gain)), &fixed)
	}
	if o.Explain || format != show.Table {
		return answer(o.factory, side, t, t.evidence(), lines, t.rows(), kernels...)
	}
	layer, all := show.Key[tableLayer], show.Key[pass]
	if err := answer(o.factory, side, t, t.evidence(), lines, t.Layers,
		show.Text("layer", func(l *tableLayer) string { return strings.Join(l.Names, " ") }),
		layer("n", "N"), layer("k", "K"),
		layer("block_k", "BLOCK_K"), layer("mean_price", "its price"), layer("worst_price", "at worst"),
		layer("worst_m", "at M"), show.Text("kernels", func(l *tableLayer) string { return fmt.Sprint(len(l.Kernels)) }),
		layer("gain")); err != nil {
		return err
	}
	s.Printf("\n")
	return show.Write(s, format, t.Passes, all("m", "M"), all("seconds", "all layers"), all("fixed_seconds", "fixed tile"),
		all("gain"))
}

// answer writes a table of kernels as JSON, its rows as CSV, or lines and rows for people.
func answer[T any](
	f *session.Factory, side *ask.Contender, object any, evidence string, lines func(*iostreams.Streams), rows []T,
	columns ...show.Column[T],
) error {
	s := f.Streams
	return show.Answer(s, f.Format(), object, func() {
		d := side.Describe()
		show.Lines(s, show.DeviceLines(d)...)
		show.Lines(s, show.ModelLine(d, side.Kernel))
		lines(s)
		show.Line(s, "evidence", "%s", evidence)
	}, rows, columns...)
}

// evidence says what the intervals rest on, and how wide they are.
func (t *invariantTable) evidence() string {
	rows, widest := t.rows(), 0.0
	for i := range rows {
		if v := rows[i].Interval; v != nil {
			widest = max(widest, v[1]/v[0])
		}
	}
	text := string(rows[0].Evidence)
	if widest > 0 {
		text += fmt.Sprintf("; the 90 %% intervals span a factor of %s at most", digits.ThreeDigits(widest))
	}
	return text
}

func (t *invariantTable) rows() (rows []row) {
	for i := range t.Layers {
		l := &t.Layers[i]
		for _, k := range l.Kernels {
			rows = append(rows, row{strings.Join(l.Names, " "), l.N, l.K, l.BlockK, k})
		}
	}
	return rows
}

// span writes an interval, if there is one.
func span(v *[2]float64) string {
	if v == nil {
		return ""
	}
	return digits.Span(unit.Seconds(v[0]), unit.Seconds(v[1]))
}
