package dataset

import (
	"bufio"
	"bytes"
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
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
)

// DescriptionFile is the file of a dataset that says what was measured; Log is the one that measurements are appended to.
const (
	DescriptionFile = "dataset.json"
	Log             = "measurements.jsonl"
)

// seeFormat tells where the formats are described.
const seeFormat = "docs/measuring.md describes datasets"

// description is dataset.json.
type description struct {
	Arch            string `json:"arch"`
	Device          string `json:"device"`
	DeviceName      string `json:"device_name,omitempty"`
	DriverName      string `json:"driver_device_name,omitempty"`
	Kernel          string `json:"kernel"`
	WarmL2          bool   `json:"warm_l2"`
	Input           string `json:"input"`
	Executor        string `json:"executor,omitempty"`
	ExecutorVersion string `json:"executor_version,omitempty"`
	Software        string `json:"software"`
	Source          string `json:"source"`

	// What lines of JSON say themselves, and CSV files do not.
	DType   string `json:"dtype,omitempty"`
	TransA  bool   `json:"trans_a,omitempty"`
	TransB  bool   `json:"trans_b,omitempty"`
	GroupM  int    `json:"group_m,omitempty"`
	Library string `json:"library,omitempty"`
}

// AppendDescription appends the dataset.json of a dataset in JSON Lines.
func AppendDescription(dst []byte, d *Dataset) ([]byte, error) {
	text, err := json.MarshalIndent(description{
		Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, DriverName: d.DriverName, Kernel: d.Kernel, WarmL2: d.WarmL2, Input: d.Input,
		Executor: d.Executor, ExecutorVersion: d.ExecutorVersion, Software: d.Software, Source: d.Source,
	}, "", "  ")
	return append(append(dst, text...), '\n'), err
}

// Read reads the dataset at the root of a file system: dataset.json and either every *.jsonl and *.jsonl.gz, a
// measurement per line, or the CSV layout: every times*.csv or times*.csv.gz, kernels.csv and, if there is one, the
// vendor library's <library>.csv. name is what errors call the place. A malformed or truncated file is an error that
// names file and line; nothing of a broken dataset is returned, as a hole in a sweep would make the wrong configuration
// the best.
func Read(name string, files fs.FS) (*Dataset, error) {
	d, _, err := read(name, files, false)
	return d, err
}

// Truncated is the end of a log that was cut off while it was written.
type Truncated struct {
	// Where is file:line, Why what is wrong with it.
	Where, Why string
	// Keep is the length of the file without it, in bytes.
	Keep int64
}

// Recover reads a dataset that is to be continued: a last line of the log that is not whole is left out, and said.
func Recover(name string, files fs.FS) (*Dataset, *Truncated, error) { return read(name, files, true) }

func read(name string, files fs.FS, recovers bool) (*Dataset, *Truncated, error) {
	r := reader{name: name, files: files, recovers: recovers}
	d, err := r.describe()
	if err != nil {
		return nil, nil, err
	}
	lines, err := r.glob("*.jsonl", "*.jsonl.gz")
	if err != nil {
		return nil, nil, err
	}
	times, err := r.glob("times*.csv", "times*.csv.gz")
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(lines) > 0 && len(times) > 0:
		return nil, nil, diag.Inputf("%s and %s hold measurements in two layouts", lines[0], times[0]).At("%s", name).Do("move one of them to a folder of its own")
	case len(lines) > 0:
		for _, file := range lines {
			if err := r.lines(file, d); err != nil {
				return nil, nil, err
			}
		}
		return d, r.torn, nil
	case len(times) == 0 && recovers:
		return d, nil, nil // begun, and nothing measured yet
	case len(times) == 0:
		return nil, nil, diag.Inputf("there are no *.jsonl, *.jsonl.gz, times*.csv or times*.csv.gz").At("%s", name).Do("%s", seeFormat)
	}
	for _, file := range times {
		if err := r.times(file, d); err != nil {
			return nil, nil, err
		}
	}
	if err := r.kernels("kernels.csv", d); err != nil {
		return nil, nil, err
	}
	if r.own.Library != "" {
		if err := r.library(r.own.Library+".csv", d); err != nil {
			return nil, nil, err
		}
	}
	return d, nil, nil
}

// ReadTimes reads one file of measurements that has no dataset.json beside it. A *.csv or *.csv.gz has the columns
// m,n,k,bm,bn,bk,stages,warps,gm,ms,reps: what it was measured on is in c, and type and layout of its problems are those of base.
// A *.jsonl or *.jsonl.gz says all that itself. GroupM is set to the launch-order group that most rows have, if that is
// more than half of them.
func ReadTimes(name string, files fs.FS, file string, c Conditions, base gemm.Problem) (*Dataset, error) {
	r := reader{name: name, files: files, base: base}
	d := New(path.Join(name, file), c)
	switch kind := path.Ext(strings.TrimSuffix(file, ".gz")); kind {
	case ".csv":
		if err := r.times(file, d); err != nil {
			return nil, err
		}
	case ".jsonl":
		if err := r.lines(file, d); err != nil {
			return nil, err
		}
	default:
		return nil, diag.Inputf("its name ends in %q", kind).At("%s", path.Join(name, file)).Do("name a file of times .csv or .jsonl, or that with .gz; %s", seeFormat)
	}
	if len(d.problems) == 0 {
		return nil, diag.Inputf("it holds no measurements").At("%s", path.Join(name, file)).Do("%s", seeFormat)
	}
	d.GroupM = d.commonGroup()
	return d, nil
}

// Describe reads dataset.json alone: what was measured, without the measurements.
func Describe(name string, files fs.FS) (*Dataset, error) {
	r := reader{name: name, files: files}
	return r.describe()
}

type reader struct {
	name     string
	files    fs.FS
	recovers bool
	torn     *Truncated
	// described says that there is a dataset.json, which says what all measurements have in common.
	described bool
	own       description
	// base is what all problems of the CSV layout have in common; its DType is 0 where that is not said.
	base gemm.Problem
}

func (r *reader) describe() (*Dataset, error) {
	f, err := r.files.Open(DescriptionFile)
	if err != nil {
		return nil, r.unreadable(DescriptionFile, err)
	}
	defer func() { _ = f.Close() }()
	place := path.Join(r.name, DescriptionFile)
	dec := json.NewDecoder(limit.Reader(f, place, limit.Text, seeFormat))
	dec.DisallowUnknownFields()
	own := &r.own
	if err := dec.Decode(own); err != nil {
		if large := limit.Exceeded(err); large != nil {
			return nil, large
		}
		return nil, diag.Inputf("not a dataset description: %v", err).At("%s", place).Do("%s", seeFormat)
	}
	for _, field := range []struct{ name, value string }{{"arch", own.Arch}, {"device", own.Device}, {"kernel", own.Kernel}, {"input", own.Input}, {"source", own.Source}} {
		if field.value == "" {
			return nil, diag.Inputf("%s is missing", field.name).At("%s", place).Do("%s", seeFormat)
		}
	}
	if own.DType != "" {
		if r.base.DType, err = gemm.ParseDType(own.DType); err != nil {
			return nil, diag.Inputf("%v", err).At("%s", place)
		}
	}
	r.described = true
	r.base.Batch = 1
	r.base.SetTrans(own.TransA, own.TransB)
	d := New(r.name, Conditions{
		Arch: own.Arch, Device: own.Device, DeviceName: own.DeviceName, DriverName: own.DriverName, Kernel: own.Kernel, WarmL2: own.WarmL2, Input: own.Input,
		Executor: own.Executor, ExecutorVersion: own.ExecutorVersion,
	})
	d.GroupM, d.Software, d.Source = own.GroupM, own.Software, own.Source
	return d, nil
}

// glob lists the files that match, sorted.
func (r *reader) glob(patterns ...string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		found, err := fs.Glob(r.files, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return names, nil
}

// open opens a file, through gzip where its name says so.
func (r *reader) open(file string, most limit.Size) (io.Reader, io.Closer, error) {
	f, err := r.files.Open(file)
	if err != nil {
		return nil, nil, r.unreadable(file, err)
	}
	in := io.Reader(f)
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			_ = f.Close()
			return nil, nil, r.unreadable(file, err)
		}
	}
	return limit.Reader(in, path.Join(r.name, file), most, "split it into several files"), f, nil
}

// lines reads a file of measurements, one per line.
func (r *reader) lines(file string, d *Dataset) error {
	f, closer, err := r.open(file, limit.Records)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	place := path.Join(r.name, file)
	in := bufio.NewReaderSize(f, 1<<16)
	var (
		torn *Truncated // the line before, if it may only be the last
		long []byte
		at   int64
	)
	for n := 1; ; n++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], text...)
			for errors.Is(err, bufio.ErrBufferFull) {
				text, err = in.ReadSlice('\n')
				if long = append(long, text...); len(long) > maxLine {
					return diag.Inputf("the line is longer than %d bytes", maxLine).At("%s:%d", place, n).Do("restore the file")
				}
			}
			text = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return r.unreadable(file, err)
		}
		if len(text) == 0 {
			break
		}
		if torn != nil { // it was not the last
			return diag.Inputf("%s", torn.Why).At("%s", torn.Where).Do("restore the file, or remove the line")
		}
		where := fmt.Sprintf("%s:%d", place, n)
		body, whole := bytes.CutSuffix(text, []byte("\n"))
		conditions, m, err := ParseLine(body)
		switch {
		case !whole:
			torn = &Truncated{Where: where, Why: "the last line is cut off", Keep: at}
		case errors.Is(err, errSyntax):
			torn = &Truncated{Where: where, Why: "the line is " + err.Error(), Keep: at}
		case err != nil:
			return diag.Inputf("%v", err).At("%s", where).Do("%s", seeFormat)
		default:
			stated := DescriptionFile
			if !r.described {
				stated = "the first line"
				if d.Len() == 0 {
					d.Conditions = conditions
				}
			}
			if what := conditions.Difference(d.Conditions); what != "" {
				return diag.Inputf("%s in %s", what, stated).At("%s", where).Do("keep measurements under other conditions in another folder")
			}
			if err := d.Add(m); err != nil {
				return diag.Within(where, err)
			}
		}
		at += int64(len(text))
	}
	if torn == nil {
		return nil
	}
	if r.recovers && file == Log {
		r.torn = torn
		return nil
	}
	return diag.Inputf("%s", torn.Why).At("%s", torn.Where).Do("the command that measured goes on from here and drops it; or remove the line")
}

// maxLine bounds a line: a thousand times what one of fifty samples has.
const maxLine = 1 << 20

func (r *reader) times(file string, d *Dataset) error {
	if r.base.DType == 0 {
		return diag.Inputf("dtype is missing").At("%s", path.Join(r.name, DescriptionFile)).Do("%s", seeFormat)
	}
	return r.rows(file, []string{"m", "n", "k", "bm", "bn", "bk", "stages", "warps", "gm", "ms", "reps"}, func(row *row) error {
		return row.add(d, Measurement{Problem: row.problem(r.base), Config: row.config(d.Kernel), Median: row.milliseconds("ms"), Runs: row.count("reps")})
	})
}

func (r *reader) kernels(file string, d *Dataset) error {
	return r.rows(file, []string{"bm", "bn", "bk", "stages", "warps", "gm", "even_k", "n_regs", "n_spills", "shared", "status"}, func(row *row) error {
		if row.text("status") != "ok" {
			return row.err // did not compile, so nothing is known of it
		}
		k := kernel{row.config(d.Kernel), row.number("even_k") == 1}
		d.kernels[k] = exec.Resources{Registers: row.number("n_regs"), SpillBytes: unit.Bytes(4 * row.number("n_spills")), SharedMemory: unit.Bytes(row.number("shared"))}
		return row.err
	})
}

func (r *reader) library(file string, d *Dataset) error {
	return r.rows(file, []string{"m", "n", "k", "ms", "reps"}, func(row *row) error {
		return row.add(d, Measurement{Problem: row.problem(r.base), Config: gemm.Config{Kernel: r.own.Library}, Median: row.milliseconds("ms"), Runs: row.count("reps")})
	})
}

// rows calls each for every row of a CSV file, which must have the columns; others are passed over.
func (r *reader) rows(file string, columns []string, each func(*row) error) error {
	in, closer, err := r.open(file, limit.Table)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
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
	if large := limit.Exceeded(err); large != nil {
		return large
	}
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

// add enters what a row says.
func (r *row) add(d *Dataset, m Measurement) error {
	if r.err != nil {
		return r.err
	}
	m.Phase, m.Status = Sweep, OK
	var twice *diag.Error
	if errors.As(d.Add(m), &twice) {
		return r.fault("m", "%s", twice.What)
	}
	return nil
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

var configFields = gemm.Fields()

// config reads the fields of a configuration that have a column; the others are 1.
func (r *row) config(family string) gemm.Config {
	c := gemm.Config{Kernel: family}
	v := c.Numbers()
	for i, f := range configFields {
		if v[i] = 1; f.Column != "" {
			v[i] = r.count(f.Column)
		}
	}
	c.SetNumbers(v)
	if r.err == nil {
		if err := c.Validate(); err != nil {
			r.err = r.fault("bm", "%v", err)
		}
	}
	return c
}
