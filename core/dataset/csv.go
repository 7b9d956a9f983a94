package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
)

// table reads a data set in the CSV layout.
func (r *reader) table(times []string, d *Dataset) error {
	if err := r.kernels("kernels.csv", d); err != nil {
		return err
	}
	for _, file := range times {
		if err := r.times(file, d); err != nil {
			return err
		}
	}
	if r.stated.Library == "" {
		return nil
	}
	return r.library(r.stated.Library+".csv", d)
}

func (r *reader) times(file string, d *Dataset) error {
	if r.base.DType == 0 {
		return diag.Inputf("dtype is missing").At("%s", path.Join(r.name, DescriptionFile)).Do("%s", seeFormat)
	}
	columns := []string{"m", "n", "k", "bm", "bn", "bk", "stages", "warps", "gm", "ms", "reps"}
	return r.rows(file, columns, func(row *row) error {
		m := Measurement{Problem: row.problem(r.base), Config: row.config(d.Kernel), Median: row.milliseconds("ms"),
			Runs: row.count("reps")}
		if row.err == nil && r.compiled != nil {
			m.Resources = r.resources(d, &m)
		}
		return row.add(d, m)
	})
}

// resources are what the compiler reports of a kernel. One that is listed at the group of the data set only stands for
// its other groups too.
func (r *reader) resources(d *Dataset, m *Measurement) exec.Resources {
	k := compiledKeyOf(m.Problem, m.Config)
	found, ok := r.compiled[k]
	if !ok {
		k.config.GroupM = d.GroupM
		found = r.compiled[k]
	}
	return found
}

func (r *reader) kernels(file string, d *Dataset) error {
	r.compiled = map[compiledKey]exec.Resources{}
	return r.rows(file, append([]string{"gm"}, compiledColumns...), func(row *row) error {
		c, err := row.compiled()
		c.Config.Kernel = d.Kernel
		if k := (compiledKey{c.Config, c.EvenK}); c.Built {
			r.compiled[k] = c.Resources
		} else {
			d.notBuilt[k] = true
		}
		return err
	})
}

func (r *reader) library(file string, d *Dataset) error {
	return r.rows(file, []string{"m", "n", "k", "ms", "reps"}, func(row *row) error {
		return row.add(d, Measurement{
			Problem: row.problem(r.base), Library: r.stated.Library,
			Median: row.milliseconds("ms"), Runs: row.count("reps"),
		})
	})
}

// rows calls each for every row of a CSV file. The file must have the columns; other columns are ignored.
func (r *reader) rows(file string, columns []string, each func(*row) error) error {
	in, closer, err := r.open(file, limit.Table)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	return eachRow(in, path.Join(r.name, file), columns, each)
}

// eachRow calls each for every row of a CSV file. place is what errors call the file.
func eachRow(in io.Reader, place string, columns []string, each func(*row) error) error {
	c := limit.CSV{Rows: limit.Rows}.Reader(in, place, splitFiles)
	header, err := c.Read()
	if err != nil {
		return unreadable(place, err)
	}
	row := row{place: place, csv: c, column: map[string]int{}}
	for i, name := range header {
		row.column[name] = i
	}
	for _, name := range columns {
		if _, ok := row.column[name]; !ok {
			return diag.Inputf("column %s is missing", name).At("%s:1", place).
				Do("the columns are %s", strings.Join(columns, ","))
		}
	}
	for {
		row.cells, err = c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(place, err)
		}
		if err := each(&row); err != nil {
			return err
		}
	}
}

// row is the current row of a CSV file. Its methods read cells, and err is the first error of any of them.
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

// add enters the measurement of the row, unless a cell was wrong.
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

// The times that a kernel can take, in milliseconds: from a nanosecond to some days. Rates and means of times far
// beyond are not finite.
const (
	shortest = 1e-6
	longest  = 1e9
)

func (r *row) milliseconds(column string) unit.Seconds {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if (err != nil || !(v >= shortest && v <= longest)) && r.err == nil {
		r.err = r.fault(column, "%s %q is no time of a kernel, which is from %g to %g", column, r.text(column),
			shortest, longest)
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

// config reads a configuration. A field without a column is 1, an optional one 0.
func (r *row) config(family string) gemm.Config {
	c := gemm.Config{Kernel: family}
	v := c.Numbers()
	for i, f := range configFields {
		if _, there := r.column[f.Column]; there {
			v[i] = r.count(f.Column)
		} else if !f.Optional {
			v[i] = 1
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
