package table

import (
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/gemm"
)

func fieldNames(fields []gemm.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// Problem are the columns of a problem: its record in JSON, and a cell for each number in CSV.
func Problem[T any](of func(*T) gemm.Problem) Columns[T] {
	return Columns[T]{Col("problem|-", func(row *T) gemm.Record { return of(row).Record() }),
		Group(gemm.Columns, func(row *T) []string { return of(row).Cells() }).In(CSV)}
}

// Config are the columns of a configuration in CSV, with one for each axis that its kernel family declares. What is not
// decided is empty.
func Config[T any](axes []gemm.Axis, of func(*T) gemm.Config) Column[T] {
	tile := fieldNames(gemm.TileFields())
	names := append(slices.Clone(tile), fieldNames(gemm.LaunchFields())...)
	for i := range axes {
		names = append(names, axes[i].Name)
	}
	return Group(names, func(row *T) (cells []string) {
		c := of(row)
		for i, v := range c.Numbers() {
			cell := strconv.Itoa(v)
			if i >= len(tile) && v == 0 {
				cell = ""
			}
			cells = append(cells, cell)
		}
		for i := range axes {
			cells = append(cells, axes[i].Value(c.Axes))
		}
		return cells
	}).In(CSV)
}

// More are the last columns of a CSV, if one of its problems has a value there.
func More[T any](more bool, of func(*T) gemm.Problem) Column[T] {
	return Group(gemm.MoreColumns, func(row *T) []string { return of(row).MoreCells() }).In(CSV).If(more)
}
