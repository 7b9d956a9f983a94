package ask_test

import (
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The kernel that wins most sizes is number 0.
func TestWinners(t *testing.T) {
	p := gemm.New(64, 64, 64)
	small, large := gemm.Config{BlockM: 16, BlockN: 16, SplitK: 1}, gemm.Config{BlockM: 64, BlockN: 64, SplitK: 2}
	cells := []ask.Cell{ask.NewCell(&p, small, 1), ask.NewCell(&p, large, 1), ask.NewCell(&p, large, 2)}
	winners := ask.Winners(cells)
	must.That(t, len(winners) == 2 && winners[0].Tile == "64x64" && winners[0].Sizes == 2 && winners[0].PerByte == 32 &&
		winners[0].Split == 2 && *cells[0].Winner == 1 && *cells[1].Winner == 0, "%+v %+v", winners, cells)
}
