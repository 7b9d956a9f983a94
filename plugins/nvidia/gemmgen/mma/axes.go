package mma

import "github.com/origami-gemm/origami/core/gemm"

// The names of the axes.
const (
	axisWarpsM = "warp_count_m"
	axisWarpsK = "warp_count_k"
)

// axes are what the family's configurations have beyond the numbers of every configuration.
var axes = []gemm.Axis{
	{
		Name: axisWarpsM, Type: gemm.Integer, Values: []string{"0", "1", "2", "4", "8"}, Default: "0", Unit: "warp",
		Doc: "warps that divide the rows of a tile; 0: as makes their parts most square",
	},
	{
		Name: axisWarpsK, Type: gemm.Integer, Values: []string{"0", "1", "2", "4", "8"}, Default: "0", Unit: "warp",
		Doc: "warps that share a part of a tile and divide its steps along K (LocalSplitU); 0: as few as can be",
	},
}

// choices are the numbers of a configuration on the axes.
type choices struct{ warpsM, warpsK int }

func choicesOf(c *gemm.Config) (o choices) {
	if c.Axes == (gemm.Axes{}) { // the fast path: models ask for thousands
		return o
	}
	return choices{warpsM: axes[0].Number(c.Axes), warpsK: axes[1].Number(c.Axes)}
}
