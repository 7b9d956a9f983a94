package record

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// description is dataset.json.
type description struct {
	Arch     string `json:"arch"`
	Device   string `json:"device"`
	Kernel   string `json:"kernel"`
	DType    string `json:"dtype"`
	TransA   bool   `json:"trans_a"`
	TransB   bool   `json:"trans_b"`
	GroupM   int    `json:"group_m"`
	WarmL2   bool   `json:"warm_l2"`
	Input    string `json:"input"`
	Library  string `json:"library"`
	Software string `json:"software"`
	Source   string `json:"source"`
}

// Read reads the dataset at the root of a file system: dataset.json, every times*.csv or times*.csv.gz, kernels.csv and,
// if there is one, the vendor library's <library>.csv. name is what errors call the place. A malformed or truncated file
// is an error that names file, line and column; nothing of a broken dataset is returned, as a hole in a sweep would make
// the wrong configuration the best.
func Read(name string, files fs.FS) (*Dataset, error) {
	r := reader{name: name, files: files, seen: map[gemm.Problem]bool{}}
	d, err := r.describe()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pattern := range []string{"times*.csv", "times*.csv.gz"} {
		found, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return nil, diag.Inputf("there are no times*.csv or times*.csv.gz").At("%s", name).Do("a dataset has at least one; see plugins/nvidia/records/README.md")
	}
	slices.Sort(names)
	for _, file := range names {
		if err := r.times(file, d); err != nil {
			return nil, err
		}
	}
	if err := r.kernels("kernels.csv", d); err != nil {
		return nil, err
	}
	if d.Library != "" {
		if err := r.library(d.Library+".csv", d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Describe reads dataset.json alone: what was measured, without the measurements.
func Describe(name string, files fs.FS) (*Dataset, error) {
	r := reader{name: name, files: files}
	return r.describe()
}

type reader struct {
	name  string
	files fs.FS
	// seen are the problems listed so far.
	seen map[gemm.Problem]bool
	// base is what all problems of the dataset have in common.
	base gemm.Problem
}

func (r *reader) describe() (*Dataset, error) {
	const file = "dataset.json"
	f, err := r.files.Open(file)
	if err != nil {
		return nil, r.unreadable(file, err)
	}
	defer func() { _ = f.Close() }()
	var own description
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&own); err != nil {
		return nil, diag.Inputf("not a dataset description: %v", err).At("%s", path.Join(r.name, file)).Do("see plugins/nvidia/records/README.md")
	}
	for _, field := range []struct{ name, value string }{{"arch", own.Arch}, {"device", own.Device}, {"kernel", own.Kernel}, {"input", own.Input}, {"source", own.Source}} {
		if field.value == "" {
			return nil, diag.Inputf("%s is missing", field.name).At("%s", path.Join(r.name, file)).Do("see plugins/nvidia/records/README.md")
		}
	}
	dtype, err := gemm.ParseDType(own.DType)
	if err != nil {
		return nil, diag.Inputf("%v", err).At("%s", path.Join(r.name, file))
	}
	r.base = gemm.Problem{Batch: 1, DType: dtype}
	r.base.SetTrans(own.TransA, own.TransB)
	return &Dataset{
		Name: r.name, Arch: own.Arch, Device: own.Device, Kernel: own.Kernel, Library: own.Library, GroupM: own.GroupM,
		WarmL2: own.WarmL2, Input: own.Input, Software: own.Software,
		records: map[key]Record{}, resources: map[kernel]exec.Resources{},
	}, nil
}

func (r *reader) times(file string, d *Dataset) error {
	return r.rows(file, []string{"m", "n", "k", "bm", "bn", "bk", "stages", "warps", "gm", "ms", "reps"}, func(row *row) error {
		record := Record{Problem: row.problem(r.base), Config: row.config(d.Kernel), Time: row.milliseconds("ms"), Repeats: row.count("reps")}
		if row.err != nil {
			return row.err
		}
		if !d.add(record) {
			return row.fault("m", "%s of %s is recorded twice", record.Config, record.Problem)
		}
		if !r.seen[record.Problem] {
			r.seen[record.Problem] = true
			d.problems = append(d.problems, record.Problem)
		}
		return nil
	})
}

func (r *reader) kernels(file string, d *Dataset) error {
	return r.rows(file, []string{"bm", "bn", "bk", "stages", "warps", "gm", "even_k", "n_regs", "n_spills", "shared", "status"}, func(row *row) error {
		if row.text("status") != "ok" {
			return row.err // did not compile, so nothing is known of it
		}
		k := kernel{row.config(d.Kernel), row.number("even_k") == 1}
		d.resources[k] = exec.Resources{Registers: row.number("n_regs"), SpillBytes: unit.Bytes(4 * row.number("n_spills")), SharedMemory: unit.Bytes(row.number("shared"))}
		return row.err
	})
}

func (r *reader) library(file string, d *Dataset) error {
	return r.rows(file, []string{"m", "n", "k", "ms", "reps"}, func(row *row) error {
		record := Record{Problem: row.problem(r.base), Config: gemm.Config{Kernel: d.Library}, Time: row.milliseconds("ms"), Repeats: row.count("reps")}
		if row.err == nil && !d.add(record) {
			return row.fault("m", "%s is recorded twice", record.Problem)
		}
		return row.err
	})
}

// rows calls each for every row of a CSV file, which must have the columns; others are passed over.
func (r *reader) rows(file string, columns []string, each func(*row) error) error {
	f, err := r.files.Open(file)
	if err != nil {
		return r.unreadable(file, err)
	}
	defer func() { _ = f.Close() }()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return r.unreadable(file, err)
		}
	}
	c := csv.NewReader(in)
	c.ReuseRecord = true
	header, err := c.Read()
	if err != nil {
		return r.unreadable(file, err)
	}
	own := row{place: path.Join(r.name, file), csv: c, column: map[string]int{}}
	for i, name := range header {
		own.column[name] = i
	}
	for _, name := range columns {
		if _, ok := own.column[name]; !ok {
			return diag.Inputf("column %s is missing", name).At("%s:1", own.place).Do("the columns are %s", strings.Join(columns, ","))
		}
	}
	for {
		own.cells, err = c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.unreadable(file, err)
		}
		if err := each(&own); err != nil {
			return err
		}
	}
}

func (r *reader) unreadable(file string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return diag.Inputf("it cannot be read: %v", err).At("%s", path.Join(r.name, file)).Do("the file may be truncated; restore it")
}

// row reads the cells of one row and keeps the first error.
type row struct {
	place  string
	csv    *csv.Reader
	column map[string]int
	cells  []string
	err    error
}

func (r *row) fault(column, format string, args ...any) error {
	line, at := r.csv.FieldPos(r.column[column])
	return diag.Inputf("%s", fmt.Sprintf(format, args...)).At("%s:%d:%d", r.place, line, at).Do("restore the file")
}

func (r *row) text(column string) string { return r.cells[r.column[column]] }

func (r *row) number(column string) int {
	v, err := strconv.Atoi(r.text(column))
	if (err != nil || v < 0) && r.err == nil {
		r.err = r.fault(column, "%s %q is not a whole number of at least 0", column, r.text(column))
	}
	return v
}

func (r *row) count(column string) int {
	v := r.number(column)
	if v < 1 && r.err == nil {
		r.err = r.fault(column, "%s is %d", column, v)
	}
	return v
}

func (r *row) milliseconds(column string) unit.Seconds {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if (err != nil || !(v > 0) || math.IsInf(v, 0)) && r.err == nil {
		r.err = r.fault(column, "%s %q is not a time", column, r.text(column))
	}
	return unit.Seconds(v / 1e3)
}

func (r *row) problem(base gemm.Problem) gemm.Problem {
	base.M, base.N, base.K = r.count("m"), r.count("n"), r.count("k")
	if r.err == nil {
		if err := base.Validate(); err != nil {
			r.err = r.fault("m", "%v", err)
		}
	}
	return base
}

func (r *row) config(family string) gemm.Config {
	c := gemm.Config{
		BlockM: r.count("bm"), BlockN: r.count("bn"), BlockK: r.count("bk"),
		NumStages: r.count("stages"), NumWarps: r.count("warps"), GroupM: r.count("gm"), SplitK: 1, Kernel: family,
	}
	if r.err == nil {
		if err := c.Validate(); err != nil {
			r.err = r.fault("bm", "%v", err)
		}
	}
	return c
}
