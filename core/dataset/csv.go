package dataset

import (
	"errors"
	"io"
	"path"
	"strconv"

	"github.com/origami-gemm/origami/core/columns"
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
	wanted := []string{"m", "n", "k", "bm", "bn", "bk", "stages", "warps", "gm", "ms", "reps"}
	return r.rows(file, wanted, func(row row) {
		m := Measurement{Problem: row.problem(r.base), Config: row.config(d.Kernel), Median: row.milliseconds("ms"),
			Runs: row.Count("reps")}
		if row.Err() == nil && r.compiled != nil {
			m.Resources = r.resources(d, &m)
		}
		row.add(d, m)
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
	return r.rows(file, append([]string{"gm"}, compiledColumns...), func(row row) {
		c := row.compiled()
		c.Config.Kernel = d.Kernel
		if k := (compiledKey{c.Config, c.EvenK}); c.Built {
			r.compiled[k] = c.Resources
		} else {
			d.notBuilt[k] = true
		}
	})
}

func (r *reader) library(file string, d *Dataset) error {
	return r.rows(file, []string{"m", "n", "k", "ms", "reps"}, func(row row) {
		row.add(d, Measurement{
			Problem: row.problem(r.base), Library: r.stated.Library,
			Median: row.milliseconds("ms"), Runs: row.Count("reps"),
		})
	})
}

// rows calls each for every row of a CSV file. The file must have the columns; other columns are ignored.
func (r *reader) rows(file string, wanted []string, each func(row)) error {
	in, closer, err := r.open(file, limit.Table)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	return table(path.Join(r.name, file), wanted).Each(in, func(r *columns.Row) error {
		each(row{r})
		return nil
	})
}

// table is a table of a data set. place is what errors call it.
func table(place string, wanted []string) columns.Table {
	return columns.Table{Place: place, Fix: "restore the file", Split: splitFiles, Columns: wanted}
}

// row is a row of a table of a data set.
type row struct{ *columns.Row }

// add enters the measurement of the row, unless a cell was wrong.
func (r row) add(d *Dataset, m Measurement) {
	m.Phase, m.Status = Sweep, OK
	var twice *diag.Error
	if r.Err() == nil && errors.As(d.Add(m), &twice) {
		r.Fault("m", "%s", twice.What)
	}
}

// The times that a kernel can take, in milliseconds: from a nanosecond to some days. Rates and means of times far
// beyond are not finite.
const (
	shortest = 1e-6
	longest  = 1e9
)

func (r row) milliseconds(column string) unit.Seconds {
	v, err := strconv.ParseFloat(r.Text(column), 64)
	if err != nil || !(v >= shortest && v <= longest) {
		r.Fault(column, "%s %q is no time of a kernel, which is from %g to %g", column, r.Text(column), shortest, longest)
	}
	return unit.Seconds(v / 1e3)
}

func (r row) problem(base gemm.Problem) gemm.Problem {
	base.M, base.N, base.K = r.Count("m"), r.Count("n"), r.Count("k")
	if r.Err() == nil {
		if err := base.Validate(); err != nil {
			r.Fault("m", "%v", err)
		}
	}
	return base
}

var configFields = gemm.Fields()

// config reads a configuration. A field without a column is 1, an optional one 0.
func (r row) config(family string) gemm.Config {
	c := gemm.Config{Kernel: family}
	v := c.Numbers()
	for i, f := range configFields {
		if r.Has(f.Column) {
			v[i] = r.Count(f.Column)
		} else if !f.Optional {
			v[i] = 1
		}
	}
	c.SetNumbers(v)
	if r.Err() == nil {
		if err := c.Validate(); err != nil {
			r.Fault("bm", "%v", err)
		}
	}
	return c
}

// Compiled is what a compiler reports about one kernel, a row of a kernels.csv.
type Compiled struct {
	// Config is the configuration without its kernel family. GroupM is 0 if the file has no column gm.
	Config gemm.Config
	// EvenK means that block_k divides K, so that the kernel needs no mask along K.
	EvenK bool
	// Built: the kernel compiled and fits the device. Only then it has Resources.
	Built     bool
	Resources exec.Resources
}

// compiledColumns are the columns that every kernels.csv has.
var compiledColumns = []string{
	"bm", "bn", "bk", "stages", "warps", "even_k", "n_regs", "n_spills", "shared", "status",
}

// registerBytes is the size of a register. Spills are counted in registers.
const registerBytes = 4

// EachCompiled calls use for every kernel of a kernels.csv, in the order of the file. only filters by column: rows with
// another value are skipped, and a column that the file lacks is ignored. place names the file in errors.
func EachCompiled(in io.Reader, place string, only map[string]string, use func(*Compiled) error) error {
	return table(place, compiledColumns).Each(in, func(r *columns.Row) error {
		for column, value := range only {
			if r.Has(column) && r.Text(column) != value {
				return nil
			}
		}
		if c := (row{r}).compiled(); r.Err() == nil {
			return use(&c)
		}
		return nil
	})
}

func (r row) compiled() Compiled {
	c := Compiled{Config: r.config(""), EvenK: r.Number("even_k") == 1, Built: r.Text("status") == "ok"}
	if c.Built { // the other cells of one that was not may be empty
		c.Resources = exec.Resources{
			Registers: r.Number("n_regs"), SpillBytes: unit.Bytes(registerBytes * r.Number("n_spills")),
			SharedMemory: unit.Bytes(r.Number("shared")),
		}
	}
	return c
}
