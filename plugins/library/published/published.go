// Package published has times of matrix multiplications with the tuned libraries of NVIDIA and AMD, which others
// measured and published. docs/published.md describes them. internal/gen writes series.csv and times.csv.gz from the
// folders tables and measured, which are not part of the program.
package published

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the tables
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	// Part is the device as the source names it. Device is its arch@device, empty without a device file.
	Part, Device string
	// DType is the type of A and B, Out that of C, empty if the source does not say it. They need not be types of gemm.
	DType, Out string
	// Scheme says which scales low-precision operands have: NoScheme, TensorScheme, "row", "block128", "block32" or
	// "block16". With "+quant" behind it, the time contains the quantisation of A. With "+preshuffle", B is stored in the
	// order in which the kernel reads it.
	Scheme         string
	TransA, TransB bool
	Timing         timing.Timing
	Library        string
	// Release is "early" for a library of the first year of a generation of GPUs, which later ones overtook, else
	// "current".
	Release string
	// Doubt is why the times are not scored, a word that docs/published.md explains. It is empty for most.
	Doubt  string
	Source *Source
}

// Time is a published time.
type Time struct {
	*Series
	M, N, K int
	// Median is that of several figures, Low and High are the least and the largest of them. Those are 0 for one figure.
	Median, Low, High unit.Seconds
	Figures           int
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

//go:embed times.csv.gz
var timesCSV []byte

// Sources lists the sources.
func Sources() []*Source { return slices.Clone(tables().sources) }

// Times lists all times, by shape and then by series. The result is shared: callers must not change it.
func Times() []Time { return tables().times }

type all struct {
	sources []*Source
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
	z, err := gzip.NewReader(bytes.NewReader(timesCSV))
	must(err)
	text, err := io.ReadAll(z)
	must(err)
	out.times, err = parseTimes(text, series)
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

// parseTimes reads times.csv, a quarter of a million lines of numbers, faster than package csv does.
func parseTimes(text []byte, series []*Series) ([]Time, error) {
	lines := string(text)
	_, lines, _ = strings.Cut(lines, "\n") // the header
	times := make([]Time, 0, strings.Count(lines, "\n"))
	var last Time
	for line := range strings.Lines(lines) {
		var cells [8]string
		rest := strings.TrimSuffix(line, "\n")
		for i := range cells {
			cells[i], rest, _ = strings.Cut(rest, ",")
		}
		t := Time{M: last.M, N: last.N, K: last.K, Figures: 1}
		number, err := strconv.Atoi(cells[3])
		if err != nil || number >= len(series) {
			return nil, fmt.Errorf("line %q: unknown series", line)
		}
		t.Series = series[number]
		for i, to := range []*int{0: &t.M, 1: &t.N, 2: &t.K, 7: &t.Figures} {
			if to != nil && cells[i] != "" {
				if *to, err = strconv.Atoi(cells[i]); err != nil {
					return nil, fmt.Errorf("line %q: %w", line, err)
				}
			}
		}
		for i, to := range []*unit.Seconds{4: &t.Median, 5: &t.Low, 6: &t.High} {
			if to != nil && cells[i] != "" {
				us, err := strconv.ParseFloat(cells[i], 64)
				if err != nil {
					return nil, fmt.Errorf("line %q: %w", line, err)
				}
				*to = unit.Seconds(us * 1e-6)
			}
		}
		times, last = append(times, t), t
	}
	return times, nil
}
