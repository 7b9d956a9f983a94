package tritonblas

import (
	"context"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// groupCandidates are the launch-order groups that phase two tries. footprints has a term for each.
var groupCandidates = [...]int{1, 2, 3, 4, 5, 6, 8, 16}

// Mapping implements arch.Architecture. It is phase two: it chooses the first group with the smallest footprint of the
// first wave, (distinct tile rows)·block_m + (distinct tile columns)·block_n. The items of a batch have distinct
// operands, so the footprint is that of one item.
func (r *Model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if err := r.Supports(&p, c); err != nil {
		return arch.Mapping{}, err
	}
	if _, err := r.family(&c); err != nil {
		return arch.Mapping{}, err
	}
	gridM, gridN := cdiv(p.M, c.BlockM), cdiv(p.N, c.BlockN)
	wave := min(gridM*gridN, r.numSMs)
	best, bestCost := 0, 0
	for _, g := range groupCandidates {
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
