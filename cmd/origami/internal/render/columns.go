package render

import (
	"strconv"

	"github.com/origami-gemm/origami/core/gemm"
)

// KeyColumns name a problem and a tile in every CSV that origami writes.
var KeyColumns = []string{"m", "n", "k", "batch", "trans_a", "trans_b", "dtype", "block_m", "block_n", "block_k"}

// LaunchColumns are the rest of a configuration.
var LaunchColumns = []string{"group_m", "num_warps", "num_stages", "split_k"}

// KeyCells fills KeyColumns. Booleans are 0 and 1, which a problems file reads too.
func KeyCells(p gemm.Problem, c gemm.Config) []string {
	return []string{
		strconv.Itoa(p.M), strconv.Itoa(p.N), strconv.Itoa(p.K), strconv.Itoa(p.Batch), bit(p.TransA()), bit(p.TransB()),
		p.DType.String(),
		strconv.Itoa(c.BlockM), strconv.Itoa(c.BlockN), strconv.Itoa(c.BlockK),
	}
}

// LaunchCells fills LaunchColumns. What is not decided is empty.
func LaunchCells(c gemm.Config) []string {
	cells := make([]string, 0, len(LaunchColumns))
	for _, v := range []int{c.GroupM, c.NumWarps, c.NumStages, c.SplitK} {
		if v == 0 {
			cells = append(cells, "")
		} else {
			cells = append(cells, strconv.Itoa(v))
		}
	}
	return cells
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
