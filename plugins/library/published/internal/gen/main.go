// Command gen draws times.csv.cols, which programs have, from the tables, which they do not have. It runs through go
// generate.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/columns"
)

// large are the sources with tens of thousands of shapes, of which one in sampleOf is kept.
var large = []string{"aiconfigurator", "vidur"}

const sampleOf = 5

// timing is a row of a table: a time in µs, and the least and the largest of several figures, empty for one.
type timing struct {
	k, n, m, series int
	us              float64
	low, high, many string
}

func (t *timing) shape() [3]int { return [...]int{t.k, t.n, t.m} }

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 && len(os.Args) != 3 {
		log.Fatal("usage: gen FOLDER-OF-THE-PACKAGE [FILE-FOR-THE-TIMES-OF-ALL-SHAPES]")
	}
	to, all := filepath.Join(os.Args[1], "times.csv.cols"), len(os.Args) == 3
	if all {
		to = os.Args[2]
	}
	text, err := build(os.Args[1], all)
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// build draws from the tables in the folder of the package, or takes all shapes.
func build(folder string, whole bool) ([]byte, error) {
	series, err := os.ReadFile(filepath.Join(folder, "series.csv"))
	if err != nil {
		return nil, err
	}
	var sources []string // by series
	for line := range strings.Lines(string(series)) {
		sources = append(sources, strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:]))
	}
	sources = sources[1:] // the header
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.csv"+columns.Suffix))
	if err != nil {
		return nil, err
	}
	var all []timing
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err == nil {
			all, err = read(all, path, file, len(sources))
		}
		if err != nil {
			return nil, err
		}
	}
	if !whole {
		all = sampled(all, sources)
	}
	return write(fastest(all))
}

// read adds the rows of a table that are of a series.
func read(all []timing, path string, file []byte, series int) ([]timing, error) {
	text, err := columns.Open(bytes.NewReader(file), path, "split it")
	if err != nil {
		return nil, err
	}
	table := columns.Table{Place: path, Fix: "restore it", Columns: []string{"series", "m", "n", "k", "time_us"}}
	err = table.Each(text, func(r *columns.Row) error {
		if r.Text("series") == "" {
			return nil
		}
		t := timing{series: r.Number("series"), m: r.Count("m"), n: r.Count("n"), k: r.Count("k"), us: r.Positive("time_us")}
		if t.series >= series {
			r.Fault("series", "there is no series %d", t.series)
		}
		if n := r.Text("figures"); n != "" && n != "1" && r.Text("time_us_min") != "" {
			t.low, t.high, t.many = digits(r.Text("time_us_min")), digits(r.Text("time_us_max")), n
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

// digits writes four digits, more of them than a clock of 1 µs or six runs can hold.
func digits(us string) string {
	v, _ := strconv.ParseFloat(us, 64) // 0 is no time, and a test finds it
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// sampled drops most shapes of the large sources. What is kept depends on the shape alone, so that the same shapes stay
// for all devices and types: one in sampleOf, and those that another source measured, which pairs need.
func sampled(all []timing, sources []string) []timing {
	ofLarge := func(t *timing) bool { return slices.Contains(large, sources[t.series]) }
	elsewhere := map[[3]int]bool{}
	for i := range all {
		if !ofLarge(&all[i]) {
			elsewhere[all[i].shape()] = true
		}
	}
	return slices.DeleteFunc(all, func(t timing) bool {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d,%d,%d", t.m, t.n, t.k))
		drawn := binary.BigEndian.Uint32(sum[:])%sampleOf == 0
		return ofLarge(&t) && !elsewhere[t.shape()] && !drawn
	})
}

// fastest sorts and keeps the fastest of several libraries that one source timed for the same problem.
func fastest(all []timing) []timing {
	slices.SortFunc(all, func(a, b timing) int {
		return cmp.Or(slices.Compare(a.place(), b.place()), cmp.Compare(a.us, b.us), strings.Compare(a.high, b.high))
	})
	return slices.CompactFunc(all, func(a, b timing) bool { return slices.Equal(a.place(), b.place()) })
}

func (t *timing) place() []int { return []int{t.k, t.n, t.m, t.series} }

// write returns the file. An empty size is that of the row before.
func write(all []timing) ([]byte, error) {
	text := []byte("m,n,k,series,us,low_us,high_us,figures\n")
	var last [3]int
	for i := range all {
		t := &all[i]
		sizes := ",,"
		if t.shape() != last {
			sizes, last = fmt.Sprintf("%d,%d,%d", t.m, t.n, t.k), t.shape()
		}
		text = fmt.Appendf(text, "%s,%d,%s,%s,%s,%s\n", sizes, t.series, digits(fmt.Sprint(t.us)), t.low, t.high, t.many)
	}
	var file bytes.Buffer
	err := columns.Write(&file, text)
	return file.Bytes(), err
}
