// Package published has times of matrix multiplications with the tuned libraries of NVIDIA and AMD, which others
// measured and published. docs/published.md describes them. internal/gen draws times.csv.cols from the folders tables
// and measured, which are not part of the program.
package published

import (
	"bytes"
	_ "embed" // the tables
	"fmt"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// Source is where times were published.
type Source struct {
	ID      string `json:"id"`      // its name
	Address string `json:"address"` // where it is
	Licence string `json:"licence"` // its licence
	Timed   string `json:"timing"`  // how it was timed
	// Stacks: several figures of a problem are those of different software. Otherwise they are repeats.
	Stacks bool `json:"-"`
}

// The schemes of scales that need no word: none, and one scale for a whole matrix, whose times are those of the
// multiplication alone.
const (
	NoScheme     = "none"
	TensorScheme = "tensor"
)

// Series is what many times have in common.
type Series struct {
	// Device is the arch@device of Part, empty without a device file. Part is the device as the source names it.
	Device string `json:"device"`
	Part   string `json:"part"`
	// DType is the type of A and B, Out that of C, empty if the source does not say it. They need not be types of gemm.
	DType string `json:"dtype"`
	Out   string `json:"out_dtype"`
	// Scheme says which scales low-precision operands have: NoScheme, TensorScheme, "row", "block128", "block32" or
	// "block16". With "+quant" behind it, the time contains the quantisation of A. With "+preshuffle", B is stored in the
	// order in which the kernel reads it.
	Scheme  string        `json:"scheme"`
	TransA  bool          `json:"trans_a"`
	TransB  bool          `json:"trans_b"`
	Timing  timing.Timing `json:"timing"`
	Library string        `json:"library"`
	// Release is "early" for a library of the first year of a generation of GPUs, which later ones overtook, else
	// "current".
	Release string `json:"-"`
	// Doubt is why the times are not scored, a word that docs/published.md explains. It is empty for most.
	Doubt  string  `json:"-"`
	Source *Source `json:"-"`
}

// Time is a published time.
type Time struct {
	*Series
	M int `json:"m"`
	N int `json:"n"`
	K int `json:"k"`
	// Median is that of several figures, Low and High are the least and the largest of them. Those are 0 for one figure.
	Median    unit.Seconds `json:"published_seconds"`
	Low, High unit.Seconds `json:"-"`
	Figures   int          `json:"-"`
}

// Problem returns the problem that was timed. The error is that of a type that origami does not have.
func (t *Time) Problem() (gemm.Problem, error) {
	r := gemm.Record{M: t.M, N: t.N, K: t.K, Batch: 1, TransA: t.TransA, TransB: t.TransB, DType: t.DType, Out: t.Out}
	return r.Problem()
}

// EitherB reports whether the library takes as long for B along N as along K, so that times of one are times of the
// other. cuBLAS does so for 16-bit types: docs/published.md has the figures of an H200.
func (s *Series) EitherB() bool {
	return s.Library == "cuBLAS" && (s.DType == "bf16" || s.DType == "fp16")
}

// Stacks returns the times that different software took for the problem: two, or the least, the median and the largest.
// It is nil if the figures are those of one.
func (t *Time) Stacks() []unit.Seconds {
	switch {
	case !t.Source.Stacks || t.Figures < 2:
		return nil
	case t.Figures == 2:
		return []unit.Seconds{t.Low, t.High}
	default:
		return []unit.Seconds{t.Low, t.Median, t.High}
	}
}

//go:generate go run ./internal/gen .

//go:embed sources.csv
var sourcesCSV []byte

//go:embed parts.csv
var partsCSV []byte

//go:embed series.csv
var seriesCSV []byte

//go:embed times.csv.cols
var timesCSV []byte

// Sources lists the sources.
func Sources() []*Source { return slices.Clone(tables().sources) }

// Times lists all times, by shape and then by series. The result is shared: callers must not change it.
func Times() []Time { return tables().times }

// Parse reads times as times.csv.cols has them, of the series of this package.
func Parse(file []byte) ([]Time, error) { return parseTimes(file, tables().series) }

type all struct {
	sources []*Source
	series  []*Series
	times   []Time
}

// decoded are the embedded tables, once. They are not the initial value of a variable: a program that asks for none
// does not contain them.
var decoded struct {
	once sync.Once
	all  all
}

func tables() *all {
	decoded.once.Do(func() { decoded.all = decode() })
	return &decoded.all
}

// decode decodes the embedded tables.
func decode() all {
	var out all
	must := func(err error) {
		if err != nil {
			panic(fmt.Sprintf("published: %v", err)) // a test reads them
		}
	}
	must(table("sources.csv", "id", "address", "licence", "timing", "figures").Each(bytes.NewReader(sourcesCSV),
		func(r *columns.Row) error {
			out.sources = append(out.sources, &Source{r.Text("id"), r.Text("address"), r.Text("licence"), r.Text("timing"),
				r.Text("figures") == "stacks"})
			return nil
		}))
	devices := map[string]string{}
	must(table("parts.csv", "part", "device").Each(bytes.NewReader(partsCSV), func(r *columns.Row) error {
		devices[r.Text("part")] = r.Text("device")
		return nil
	}))
	var series []*Series
	must(table("series.csv", "series", "part", "dtype", "scheme", "out_dtype", "trans_a", "trans_b", "timing", "library",
		"release", "doubt", "source").Each(bytes.NewReader(seriesCSV), func(r *columns.Row) error {
		at := slices.IndexFunc(out.sources, func(s *Source) bool { return s.ID == r.Text("source") })
		device, ok := devices[r.Text("part")]
		of, err := timing.Parse(r.Text("timing"))
		switch {
		case at < 0:
			r.Fault("source", "there is no source %s", r.Text("source"))
		case !ok:
			r.Fault("part", "the part %q has no row in parts.csv", r.Text("part"))
		case r.Number("series") != len(series):
			r.Fault("series", "the number does not follow the one before")
		default:
			series = append(series, &Series{Part: r.Text("part"), Device: device, DType: r.Text("dtype"),
				Scheme: r.Text("scheme"), Out: r.Text("out_dtype"), TransA: r.Text("trans_a") == "1",
				TransB: r.Text("trans_b") == "1", Timing: of, Library: r.Text("library"), Release: r.Text("release"),
				Doubt: r.Text("doubt"), Source: out.sources[at]})
		}
		return err
	}))
	out.series = series
	times, err := parseTimes(timesCSV, series)
	must(err)
	out.times = times
	return out
}

// table is one of the embedded tables.
func table(name string, wanted ...string) columns.Table {
	return columns.Table{Place: name, Fix: "restore it", Columns: wanted}
}

// parseTimes reads times. An empty size is that of the row before.
func parseTimes(file []byte, series []*Series) (times []Time, err error) {
	const name = "times.csv" + columns.Suffix
	text, err := columns.Open(bytes.NewReader(file), name, "restore it")
	if err != nil {
		return nil, err
	}
	last := Time{}
	err = table(name, "m", "n", "k", "series", "us", "low_us", "high_us", "figures").Each(text,
		func(r *columns.Row) error {
			t, number := Time{M: last.M, N: last.N, K: last.K, Figures: 1}, r.Number("series")
			if r.Text("m") != "" {
				t.M, t.N, t.K = r.Count("m"), r.Count("n"), r.Count("k")
			}
			seconds := func(column string) unit.Seconds { return unit.Seconds(r.Positive(column) * 1e-6) }
			if t.Median = seconds("us"); r.Text("figures") != "" {
				t.Low, t.High, t.Figures = seconds("low_us"), seconds("high_us"), r.Count("figures")
			}
			if number >= len(series) {
				r.Fault("series", "there is no series %d", number)
				return nil
			}
			t.Series = series[number]
			times, last = append(times, t), t
			return nil
		})
	return times, err
}

// winners.csv is written with the scores of the models.
//
//go:embed winners.csv
var winnersCSV []byte

// Named says how often the family library named the faster one of two devices, of the shapes of a class that were timed
// on both, with times that differ by more than score.Decided.
type Named struct{ Right, Decided int }

type pair struct {
	first, second, dtype, scheme string
	class                        string
}

// WinnerNamed returns how often the faster one of two devices, in any order, was named right. An empty scheme is that
// of operands without scales, or with one for the matrix. Without enough shapes it returns zeros.
func WinnerNamed(first, second, dtype, scheme string, class score.Layer) Named {
	if first > second {
		first, second = second, first
	}
	if scheme != "" {
		return winners()[pair{first, second, dtype, scheme, class.String()}]
	}
	none := winners()[pair{first, second, dtype, NoScheme, class.String()}]
	if none.Decided > 0 {
		return none
	}
	return winners()[pair{first, second, dtype, TensorScheme, class.String()}]
}

var winners = sync.OnceValue(func() map[pair]Named {
	out := map[pair]Named{}
	err := table("winners.csv", "first", "second", "dtype", "scheme", "class", "decided", "right").Each(
		bytes.NewReader(winnersCSV), func(r *columns.Row) error {
			p := pair{r.Text("first"), r.Text("second"), r.Text("dtype"), r.Text("scheme"), r.Text("class")}
			out[p] = Named{r.Number("right"), r.Number("decided")}
			return nil
		})
	if err != nil {
		panic(fmt.Sprintf("published: %v", err)) // a test reads it
	}
	return out
})
