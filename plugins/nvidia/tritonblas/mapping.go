package tritonblas

import (
	"context"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/tritonblas/terms"
)

// Mapping implements arch.Architecture. It is phase two: it chooses the first group with the smallest footprint of the
// first wave, (distinct tile rows)·block_m + (distinct tile columns)·block_n. The items of a batch have distinct
// operands, so the footprint is that of one item.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := m.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	gridM, gridN := cdiv(p.M, c.BlockM), cdiv(p.N, c.BlockN)
	wave := min(gridM*gridN, m.gpu.SMs)
	best, bestCost := 0, 0
	for _, g := range terms.Groups {
		rows, columns := footprint(wave, g, gridM, gridN)
		if cost := rows*c.BlockM + columns*c.BlockN; best == 0 || cost < bestCost {
			best, bestCost = g, cost
		}
	}
	return arch.Mapping{GroupM: best}, nil
}

// footprint counts the distinct tile rows and columns among the first wave program ids of a grouped launch order. The
// order walks groups of g rows column by column: row = g·⌊id / (g·gridN)⌋ + (id mod g·gridN) mod height,
// column = ⌊(id mod g·gridN) / height⌋. height is g, or the number of remaining rows in the last group.
func footprint(wave, g, gridM, gridN int) (rows, columns int) {
	full, rest := wave/(g*gridN), wave%(g*gridN)
	rows = min(full*g, gridM)
	if full > 0 {
		columns = gridN
	}
	if rest > 0 {
		height := min(gridM-full*g, g)
		rows += min(rest, height)
		columns = max(columns, cdiv(rest, height))
	}
	return rows, columns
}
