package nvidia_test

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// A program that wants picks without a plugin process imports the models.
func Example() {
	ctx := context.Background()
	provider, err := nvidia.Provider()
	if err != nil {
		fmt.Println(err)
		return
	}
	gpu, err := provider.Open(ctx, arch.OpenRequest{Arch: "sm89"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := selector.New(gpu, arch.Space{})

	var result selector.Result
	if err := s.Select(ctx, gemm.New(2048, 2048, 2048), &result); err != nil {
		fmt.Println(err)
		return
	}
	pick := result.Entries[0]
	fmt.Println(pick.Config)
	fmt.Printf("%.0f cycles, bound by %s\n", float64(pick.Estimate.Cycles), pick.Estimate.Bound)
	// Output:
	// 128x128x32 w4 s3 g8
	// 314317 cycles, bound by compute
}
