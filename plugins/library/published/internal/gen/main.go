// Command gen writes the tables of package published from tables of published times with one row per device, type,
// shape and library: `go run ./plugins/library/published/internal/gen FOLDER plugins/library/published`.
package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// inputs are the files of the folder.
var inputs = []string{"vendor_fp16_bf16.csv.gz", "low_precision.csv.gz", "fp32_tf32.csv.gz"}

// measured is the file of what was measured for origami, in the folder of the package.
const measured = "measured/h200-cublas.csv.gz"

// sampleOf is the share of the shapes that is kept of the sources that measured tens of thousands: one in so many.
const sampleOf = 5

// shape is the sizes of a problem.
type shape struct{ m, n, k int }

// timing is a published time in µs, as text; low and high are empty for a single figure.
type timing struct {
	shape
	series          series
	us              float64
	median          string
	low, high, many string
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: gen FOLDER-OF-TABLES FOLDER-OF-THE-PACKAGE")
	}
	var all []timing
	for _, name := range inputs {
		rows, err := read(filepath.Join(os.Args[1], name))
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, rows...)
	}
	own, err := read(filepath.Join(os.Args[2], measured))
	if err != nil {
		log.Fatal(err)
	}
	all = append(all, own...)
	all = fastest(sampled(all))
	if err := write(os.Args[2], all); err != nil {
		log.Fatal(err)
	}
}

// read returns the rows of a file that are kept.
func read(path string) ([]timing, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(z)
	header, err := r.Read()
	if err != nil {
		return nil, err
	}
	var out []timing
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, name := range header {
			row[name] = cells[i]
		}
		if row["source"]+row["sources"] == "" {
			ownRow(row)
		}
		if t, ok, err := timingOf(row); err != nil {
			return nil, fmt.Errorf("%s: %w: %v", path, err, cells)
		} else if ok {
			out = append(out, t)
		}
	}
}

func timingOf(row map[string]string) (t timing, ok bool, err error) {
	if t.series, ok, err = seriesOf(row); !ok || err != nil {
		return t, false, err
	}
	for _, size := range []struct {
		name string
		to   *int
	}{{"m", &t.m}, {"n", &t.n}, {"k", &t.k}} {
		if *size.to, err = strconv.Atoi(row[size.name]); err != nil {
			return t, false, err
		}
	}
	if t.us, err = strconv.ParseFloat(row["time_us"], 64); err != nil {
		return t, false, err
	}
	if top := highest[t.series.part+" "+t.series.dtype]; top > 0 && t.teraflops() > top {
		return t, false, nil
	}
	t.median = digits(t.us)
	if n := row["figures"]; n != "1" && row["time_us_min"] != "" {
		t.many = n
		for _, end := range []struct {
			name string
			to   *string
		}{{"time_us_min", &t.low}, {"time_us_max", &t.high}} {
			us, err := strconv.ParseFloat(row[end.name], 64)
			if err != nil {
				return t, false, err
			}
			*end.to = digits(us)
		}
	}
	return t, true, nil
}

// highest are rates in TFLOP/s that a part cannot exceed, where a table has some that do: the 80 CUs of an MI308X reach
// 590 at 1.8 GHz.
var highest = map[string]float64{"MI308X fp8": 600}

func (t *timing) teraflops() float64 { return 2e-6 * float64(t.m) * float64(t.n) * float64(t.k) / t.us }

// digits writes four digits, more of them than a clock of 1 µs or six runs can hold.
func digits(us float64) string {
	v, err := strconv.ParseFloat(strconv.FormatFloat(us, 'g', 4, 64), 64)
	if err != nil {
		panic(err) // it was just written
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// sampled drops most shapes of the large sources. What is kept depends on the shape alone, so that the same shapes stay
// for all devices and types: one in sampleOf, and those that another source measured, which pairs need.
func sampled(all []timing) []timing {
	elsewhere := map[shape]bool{}
	for i := range all {
		if !large[all[i].series.source] {
			elsewhere[all[i].shape] = true
		}
	}
	return slices.DeleteFunc(all, func(t timing) bool {
		return large[t.series.source] && !elsewhere[t.shape] && !drawn(t.shape)
	})
}

func drawn(s shape) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d,%d,%d", s.m, s.n, s.k))
	return binary.BigEndian.Uint32(sum[:])%sampleOf == 0
}

// fastest sorts and keeps the fastest of several libraries that one source timed for the same problem.
func fastest(all []timing) []timing {
	slices.SortFunc(all, func(a, b timing) int {
		if d := a.compare(b.shape); d != 0 {
			return d
		}
		if d := a.series.compare(b.series); d != 0 {
			return d
		}
		if a.us != b.us {
			return less(a.us < b.us)
		}
		return strings.Compare(a.high, b.high)
	})
	return slices.CompactFunc(all, func(a, b timing) bool { return a.shape == b.shape && a.series == b.series })
}

func (s shape) compare(o shape) int {
	return slices.Compare([]int{s.k, s.n, s.m}, []int{o.k, o.n, o.m})
}

func less(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// write writes series.csv and times.csv.gz. An empty size in times.csv.gz is that of the row before.
func write(folder string, all []timing) error {
	var list []series
	for i := range all {
		list = append(list, all[i].series)
	}
	slices.SortFunc(list, series.compare)
	list = slices.Compact(list)
	number := map[series]int{}
	text := strings.Join(seriesColumns, ",") + "\n"
	for i, s := range list {
		number[s] = i
		text += strconv.Itoa(i) + "," + strings.Join(s.cells(), ",") + "\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "series.csv"), []byte(text), 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, "times.csv.gz"))
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	fmt.Fprintln(z, "m,n,k,series,us,low_us,high_us,figures")
	var last shape
	for i := range all {
		t := &all[i]
		sizes := ",,"
		if t.shape != last {
			sizes = fmt.Sprintf("%d,%d,%d", t.m, t.n, t.k)
			last = t.shape
		}
		line := fmt.Sprintf("%s,%d,%s,%s,%s,%s", sizes, number[t.series], t.median, t.low, t.high, t.many)
		if _, err := fmt.Fprintln(z, line); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	log.Printf("%d times in %d series", len(all), len(list))
	return f.Close()
}
