package table

import (
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// KeyColumns name a problem and a tile in every CSV that origami writes.
var KeyColumns = append(slices.Clone(gemm.Columns), fieldNames(gemm.TileFields())...)

// MoreColumns are the last columns of a CSV if one of its problems has a value there, otherwise none.
func MoreColumns(more bool) []string {
	if more {
		return gemm.MoreColumns
	}
	return nil
}

// MoreCells fills MoreColumns.
func MoreCells(p gemm.Problem, more bool) []string {
	if more {
		return p.MoreCells()
	}
	return nil
}

// AxesOf returns the axes that a kernel family declares, of the model's default family if the name is empty. A name
// that the model does not know has none.
func AxesOf(d *arch.Description, kernel string) []gemm.Axis {
	kernel, err := d.Kernel(kernel)
	if err != nil {
		return nil
	}
	return d.Axes(kernel)
}

// LaunchColumns are the rest of a configuration, with a column for each axis that its kernel family declares.
func LaunchColumns(axes []gemm.Axis) []string {
	columns := fieldNames(gemm.LaunchFields())
	for i := range axes {
		columns = append(columns, axes[i].Name)
	}
	return columns
}

func fieldNames(fields []gemm.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// KeyCells fills KeyColumns. Booleans are 0 and 1, which a problems file reads too.
func KeyCells(p gemm.Problem, c gemm.Config) []string {
	cells := p.Cells()
	numbers := c.Numbers()
	for _, v := range numbers[:len(gemm.TileFields())] {
		cells = append(cells, strconv.Itoa(v))
	}
	return cells
}

// LaunchCells fills LaunchColumns. What is not decided is empty.
func LaunchCells(c gemm.Config, axes []gemm.Axis) []string {
	var cells []string
	numbers := c.Numbers()
	for _, v := range numbers[len(gemm.TileFields()):] {
		if v == 0 {
			cells = append(cells, "")
		} else {
			cells = append(cells, strconv.Itoa(v))
		}
	}
	for i := range axes {
		cells = append(cells, axes[i].Value(c.Axes))
	}
	return cells
}

// Problem are the columns of a problem: its record in JSON, and a cell for each number in CSV.
func Problem[T any](of func(*T) gemm.Problem) Columns[T] {
	return Columns[T]{Col("problem|-", func(row *T) gemm.Record { return of(row).Record() }),
		Group(gemm.Columns, func(row *T) []string { return of(row).Cells() }).In(CSV)}
}

// Config are the columns of a configuration in CSV, with one for each axis that its kernel family declares.
func Config[T any](axes []gemm.Axis, of func(*T) gemm.Config) Column[T] {
	return Group(append(fieldNames(gemm.TileFields()), LaunchColumns(axes)...), func(row *T) []string {
		c := of(row)
		return append(KeyCells(gemm.Problem{}, c)[len(gemm.Columns):], LaunchCells(c, axes)...)
	}).In(CSV)
}

// More are the last columns of a CSV, if one of its problems has a value there.
func More[T any](more bool, of func(*T) gemm.Problem) Column[T] {
	return Group(gemm.MoreColumns, func(row *T) []string { return of(row).MoreCells() }).In(CSV).If(more)
}
