// Package published has times of matrix multiplications with the tuned libraries of NVIDIA and AMD, which others
// measured and published. docs/published.md describes them. internal/gen draws times.csv.cols from the folders tables
// and measured, which are not part of the program.
package published

import (
	"bufio"
	"bytes"
	_ "embed" // the tables
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/gemm"
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
	err := rows(sourcesCSV, 5, func(c []string) error {
		out.sources = append(out.sources, &Source{c[0], c[1], c[2], c[3], c[4] == "stacks"})
		return nil
	})
	must(err)
	devices := map[string]string{}
	must(rows(partsCSV, 2, func(c []string) error {
		devices[c[0]] = c[1]
		return nil
	}))
	var series []*Series
	must(rows(seriesCSV, 12, func(c []string) error {
		at := slices.IndexFunc(out.sources, func(s *Source) bool { return s.ID == c[11] })
		if at < 0 || c[0] != strconv.Itoa(len(series)) {
			return fmt.Errorf("series %s of source %s", c[0], c[11])
		}
		device, ok := devices[c[1]]
		if !ok {
			return fmt.Errorf("series %s is of the part %q, which has no row in parts.csv", c[0], c[1])
		}
		of, err := timing.Parse(c[7])
		series = append(series, &Series{
			Part: c[1], Device: device, DType: c[2], Scheme: c[3], Out: c[4], TransA: c[5] == "1",
			TransB: c[6] == "1", Timing: of, Library: c[8], Release: c[9], Doubt: c[10], Source: out.sources[at],
		})
		return err
	}))
	out.series = series
	out.times, err = parseTimes(timesCSV, series)
	must(err)
	return out
}

// rows calls a function with the cells of each row below the header.
func rows(text []byte, columns int, row func([]string) error) error {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = columns
	all, err := r.ReadAll()
	if err != nil {
		return err
	}
	for _, cells := range all[1:] {
		if err := row(cells); err != nil {
			return err
		}
	}
	return nil
}

// parseTimes reads a quarter of a million rows of numbers, faster than package csv does.
func parseTimes(file []byte, series []*Series) (times []Time, err error) {
	text, err := columns.NewReader(bytes.NewReader(file), "times.csv.cols", "restore it")
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(text)
	lines.Scan() // the header
	var last Time
	for lines.Scan() {
		t := Time{M: last.M, N: last.N, K: last.K, Figures: 1}
		rest, number := lines.Text(), len(series)
		for _, to := range []any{&t.M, &t.N, &t.K, &number, &t.Median, &t.Low, &t.High, &t.Figures} {
			var cell string
			switch cell, rest, _ = strings.Cut(rest, ","); to := to.(type) {
			case *int:
				if cell != "" {
					*to, err = strconv.Atoi(cell)
				}
			case *unit.Seconds:
				if cell != "" {
					var us float64
					us, err = strconv.ParseFloat(cell, 64)
					*to = unit.Seconds(us * 1e-6)
				}
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lines.Text(), err)
			}
		}
		if number >= len(series) {
			return nil, fmt.Errorf("%s: unknown series", lines.Text())
		}
		t.Series = series[number]
		times, last = append(times, t), t
	}
	return times, lines.Err()
}
