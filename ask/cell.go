package ask

import "github.com/origami-gemm/origami/core/gemm"

// Cell is one size of a map. Sizes without a kernel are left out. An unknown number is `null`, an unknown text empty.
type Cell struct {
	// the size
	Problem gemm.Record `json:"problem"`
	// the number of the fastest kernel: 0 wins most sizes
	Winner *int `json:"winner"`
	// its configuration as text
	Config string `json:"config"`
	// its tile as text
	Tile string `json:"tile"`
	// its parts of K
	Split *int `json:"split"`
	// 2·block_m·block_n ÷ ((block_m + block_n) · bytes of an element)
	PerByte Number `json:"flop_per_byte"`
	// its time
	Seconds Number `json:"seconds"`
	// its rate
	GFLOPS Number `json:"gflops"`
	// what limits it by the model, as in `select`
	Bound string `json:"bound"`
	// how many of its CTAs run at once on an SM or CU, by the model
	PerUnit Number `json:"ctas_per_unit"`
	// its CTAs ÷ those that run at once on the device
	Waves Number `json:"waves"`
	// with `--records`: the model's pick among the measured configurations
	Pick *CellPick `json:"pick,omitempty"`
	// as in `select`
	Validated bool `json:"validated"`
}

// CellPick is the model's pick among measured configurations.
type CellPick struct {
	// the number of the kernel
	Kernel *int `json:"kernel"`
	// its configuration as text
	Config string `json:"config"`
	// its measured time
	Seconds Number `json:"seconds"`
	// its time ÷ the fastest kernel's − 1
	Regret Number `json:"regret"`
}
