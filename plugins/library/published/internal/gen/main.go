// Command gen writes series.csv and times.csv.gz of package published from the files in its folder tables, which have
// one row per device, type, shape and library, and from what was measured for origami. It runs through go generate.
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

// The inputs, in the folder of the package: the list of the tables with their SHA-256, as sha256sum writes it, what was
// measured for origami, the speeds that AMD recorded, which package amdref has for its own models, and the devices of
// parts.
const (
	sums     = "tables/SHA256SUMS"
	measured = "measured/h200-cublas.csv.gz"
	tuned    = "../../amd-ref/data/tuned.csv.gz"
	partsCSV = "parts.csv"
)

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
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen FOLDER-OF-THE-PACKAGE")
	}
	if err := build(os.Args[1], os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// build reads the inputs in the folder of the package, and writes the tables into another folder.
func build(folder, to string) error {
	inputs, err := checked(folder)
	if err != nil {
		return err
	}
	known, err := knownParts(folder)
	if err != nil {
		return err
	}
	var all []timing
	for _, name := range append(inputs, measured, tuned) {
		rows, err := read(filepath.Join(folder, name), known)
		if err != nil {
			return err
		}
		all = append(all, rows...)
	}
	return write(to, fastest(sampled(all)))
}

// checked returns the files of tables. A file that is not as it was recorded is an error.
func checked(folder string) (names []string, err error) {
	list, err := os.ReadFile(filepath.Join(folder, sums))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		name = filepath.Join(filepath.Dir(sums), name)
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != sum {
			return nil, fmt.Errorf("%s: its SHA-256 is %s, and %s has %q", name, got, sums, sum)
		}
		names = append(names, name)
	}
	return names, nil
}

// knownParts are the parts of parts.csv, those without a device file too.
func knownParts(folder string) (map[string]bool, error) {
	f, err := os.Open(filepath.Join(folder, partsCSV))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	known := map[string]bool{}
	for _, row := range rows {
		known[row[0]] = true
	}
	return known, err
}

// read returns the rows of a file that are kept. Each is of a known part.
func read(path string, known map[string]bool) ([]timing, error) {
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
		if _, amd := row["cus"]; amd {
			if row, err = tunedRow(row); err != nil {
				return nil, fmt.Errorf("%s: %w: %v", path, err, cells)
			} else if row == nil {
				continue
			}
		}
		t, ok, err := timingOf(row)
		if ok && !known[t.series.part] {
			err = fmt.Errorf("the part %q has no row in %s; add one, without a device if there is no file of it",
				t.series.part, partsCSV)
		}
		if err != nil {
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
