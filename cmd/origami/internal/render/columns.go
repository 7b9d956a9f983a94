package render

import (
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// ProblemColumns name a problem in every CSV that origami writes, KeyColumns a problem and a tile.
var (
	ProblemColumns = []string{"m", "n", "k", "batch", "trans_a", "trans_b", "dtype"}
	KeyColumns     = append(slices.Clone(ProblemColumns), fieldNames(gemm.TileFields())...)
)

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
	cells := []string{
		strconv.Itoa(p.M), strconv.Itoa(p.N), strconv.Itoa(p.K), strconv.Itoa(p.Batch), bit(p.TransA()),
		bit(p.TransB()),
		p.DType.String(),
	}
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

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
