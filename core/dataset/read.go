package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
)

// Read reads the data set at the root of a file system. It consists of dataset.json and either every *.jsonl, with a
// measurement per line, or the CSV layout: every times*.csv, kernels.csv, and the vendor library's <library>.csv if
// dataset.json names a library. Each may be compressed: *.jsonl.gz, or in columns: *.jsonl.cols.
//
// name is what errors call the place. A malformed or truncated file is an error that names the file and the line. A
// broken data set is not read in part, since a gap in a sweep would make the wrong configuration the best.
func Read(name string, files fs.FS) (*Dataset, error) {
	d, _, err := read(name, files, false)
	return d, err
}

// Truncated describes the last line of a log that was cut off while it was written.
type Truncated struct {
	// Where is file:line, Why the reason that the line cannot be read.
	Where, Why string
	// Keep is the length of the file without the line, in bytes.
	Keep int64
}

// Recover reads a data set that is to be continued. It leaves out a last line of the log that was cut off, and returns
// what was left out.
func Recover(name string, files fs.FS) (*Dataset, *Truncated, error) { return read(name, files, true) }

// Describe reads dataset.json alone: what was measured, without the measurements.
func Describe(name string, files fs.FS) (*Dataset, error) {
	r := reader{name: name, files: files}
	return r.describe()
}

// ReadTimes reads one file of measurements without a dataset.json.
//
// A *.csv or *.csv.gz has the columns m,n,k,bm,bn,bk,stages,warps,gm,ms,reps, and split if K is split. Its
// conditions are c, and its problems have the data type and layout of base. A *.jsonl or *.jsonl.gz says all
// that itself. GroupM is set to the launch-order group of more than half of the rows, if there is one.
func ReadTimes(name string, files fs.FS, file string, c Conditions, base gemm.Problem) (*Dataset, error) {
	r := reader{name: name, files: files, base: base}
	d := New(path.Join(name, file), c)
	switch kind := path.Ext(strings.TrimSuffix(strings.TrimSuffix(file, columns.Zipped), columns.Suffix)); kind {
	case ".csv":
		if err := r.times(file, d); err != nil {
			return nil, err
		}
	case ".jsonl":
		if err := r.lines(file, d); err != nil {
			return nil, err
		}
	default:
		return nil, diag.Inputf("its name ends in %q", kind).At("%s", path.Join(name, file)).
			Do("name a file of times .csv or .jsonl, or that with .gz; %s", seeFormat)
	}
	if len(d.problems) == 0 {
		return nil, diag.Inputf("it holds no measurements").At("%s", path.Join(name, file)).Do("%s", seeFormat)
	}
	d.GroupM = d.commonGroup()
	return d, nil
}

// reader reads the files of one data set.
type reader struct {
	name  string
	files fs.FS
	// recovers means that a last line of the log that was cut off is left out and described in truncated.
	recovers  bool
	truncated *Truncated
	// described means that there is a dataset.json, which is stated.
	described bool
	stated    description
	// texts are those that measurements share.
	texts map[string]string
	// compiled is what the compiler reports of kernels, in the CSV layout.
	compiled map[compiledKey]exec.Resources
	// base is what all problems of the CSV layout have in common. Its DType is 0 if it is not known.
	base gemm.Problem
}

func read(name string, files fs.FS, recovers bool) (*Dataset, *Truncated, error) {
	r := reader{name: name, files: files, recovers: recovers}
	d, err := r.describe()
	if err != nil {
		return nil, nil, err
	}
	found, err := Measurements(name, files)
	switch {
	case err != nil:
	case len(found) > 0 && strings.HasPrefix(found[0], tables):
		err = r.table(found, d)
	case len(found) > 0:
		for i := 0; i < len(found) && err == nil; i++ {
			err = r.lines(found[i], d)
		}
	case !recovers: // else it is begun, and nothing measured yet
		err = diag.Inputf("there are no *.jsonl or times*.csv, with or without .gz or %s", columns.Suffix).
			At("%s", name).Do("%s", seeFormat)
	}
	if err != nil {
		return nil, nil, err
	}
	return d, r.truncated, nil
}

// tables begins the names of files in the CSV layout.
const tables = "times"

// Measurements lists the files of a data set that hold measurements, compressed or not, sorted. It is an error if they
// are in two layouts.
func Measurements(name string, files fs.FS) ([]string, error) {
	var lines, rows []string
	for _, ending := range []string{"", columns.Zipped, columns.Suffix} {
		found, err := fs.Glob(files, "*.jsonl"+ending)
		more, also := fs.Glob(files, tables+"*.csv"+ending)
		if err = cmp.Or(err, also); err != nil {
			return nil, err
		}
		lines, rows = append(lines, found...), append(rows, more...)
	}
	if len(lines) > 0 && len(rows) > 0 {
		return nil, diag.Inputf("%s and %s hold measurements in two layouts", lines[0], rows[0]).
			At("%s", name).Do("move one of them to a folder of its own")
	}
	return slices.Sorted(slices.Values(append(lines, rows...))), nil
}

// open opens a file, and decompresses it as the end of its name says.
func (r *reader) open(file string, most limit.Size) (io.Reader, io.Closer, error) {
	f, err := r.files.Open(file)
	if err != nil {
		return nil, nil, r.unreadable(file, err)
	}
	in, err := columns.Open(f, path.Join(r.name, file), splitFiles)
	if err != nil {
		_ = f.Close()
		return nil, nil, r.unreadable(file, err)
	}
	return limit.Reader(in, path.Join(r.name, file), most, splitFiles), f, nil
}

// splitFiles is the advice for a file that is too large.
const splitFiles = "split it into several files"

func (r *reader) unreadable(file string, err error) error {
	return unreadable(path.Join(r.name, file), err)
}

func unreadable(place string, err error) error {
	if large := limit.Exceeded(err); large != nil {
		return large
	}
	err = diag.WithoutPath(err)
	refused := diag.Inputf("it cannot be read: %v", err).At("%s", place)
	if errors.Is(err, fs.ErrNotExist) {
		return refused.Do("check the name of the folder, or restore the file; %s", seeFormat)
	}
	return refused.Do("the file may be truncated; restore it")
}

// DescriptionFile is the file of a data set that says what was measured. Log is the file that measurements are appended
// to.
const (
	DescriptionFile = "dataset.json"
	Log             = "measurements.jsonl"
)

// seeFormat says where the formats are described.
const seeFormat = "docs/data-sets.md describes data sets"

// description is dataset.json.
type description struct {
	Conditions
	Software string `json:"software"`
	Source   string `json:"source"`

	// CSV files need these keys. A line of JSON says the same itself.
	DType   string `json:"dtype,omitempty"`
	TransA  bool   `json:"trans_a,omitempty"`
	TransB  bool   `json:"trans_b,omitempty"`
	GroupM  int    `json:"group_m,omitempty"`
	Library string `json:"library,omitempty"`
	// Untried are configurations, with commas between them.
	Untried string `json:"untried,omitempty"`
}

// AppendDescription appends the dataset.json of a data set in JSON Lines. It returns an error for one that could not be
// read back.
func AppendDescription(dst []byte, d *Dataset) ([]byte, error) {
	want := description{Conditions: d.Conditions, Software: d.Software, Source: d.Source}
	text, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		return dst, err
	}
	text = append(text, '\n')
	got, err := parseDescription(text, DescriptionFile)
	if err == nil && *got != want {
		err = diag.Inputf("a text in it is no UTF-8").At("%s", DescriptionFile)
	}
	if err != nil {
		return dst, err
	}
	return append(dst, text...), nil
}

// parseDescription reads the text of a dataset.json.
func parseDescription(text []byte, place string) (*description, error) {
	if len(text) > int(limit.Text) {
		return nil, diag.Inputf("it is larger than %v, the most that is read of such a file", limit.Text).
			At("%s", place).Do("%s", seeFormat)
	}
	var s description
	if err := strictjson.Unmarshal(text, &s); err != nil {
		return nil, diag.Inputf("not a dataset description: %v", err).At("%s", place).Do("%s", seeFormat)
	}
	missing := s.missing()
	if missing == "" && s.Source == "" {
		missing = "source"
	}
	if missing != "" {
		return nil, diag.Inputf("%s is missing", missing).At("%s", place).Do("%s", seeFormat)
	}
	return &s, nil
}

// describe reads dataset.json into the reader and returns an empty data set under its conditions.
func (r *reader) describe() (*Dataset, error) {
	f, err := r.files.Open(DescriptionFile)
	if err != nil {
		return nil, r.unreadable(DescriptionFile, err)
	}
	defer func() { _ = f.Close() }()
	place := path.Join(r.name, DescriptionFile)
	text, err := limit.ReadAll(f, place, limit.Text, seeFormat)
	if err != nil {
		return nil, unreadable(place, err)
	}
	s, err := parseDescription(text, place)
	if err != nil {
		return nil, err
	}
	r.stated = *s
	if s.DType != "" {
		if r.base.DType, err = gemm.ParseDType(s.DType); err != nil {
			return nil, diag.Inputf("%v", err).At("%s", place)
		}
	}
	r.described = true
	r.base.Batch = 1
	r.base.SetTrans(s.TransA, s.TransB)
	d := New(r.name, s.Conditions)
	d.GroupM, d.Software, d.Source = s.GroupM, s.Software, s.Source
	for text := range strings.SplitSeq(s.Untried, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		c, err := gemm.ParseConfig(text, gemm.Config{Kernel: s.Kernel, GroupM: s.GroupM})
		if err != nil {
			return nil, diag.Inputf("untried: %v", err).At("%s", place)
		}
		d.Untried = append(d.Untried, c)
	}
	return d, nil
}
