package ask_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// With the rejected ones, each configuration of a space has its place in the enumeration, and each place is taken once.
func TestPlacesOfRejected(t *testing.T) {
	a := must.Get(fakearch.Toy{}.Open(t.Context(), arch.OpenRequest{Arch: "toy1", Device: "big"}))(t)
	q := ask.Question{Problems: []gemm.Problem{gemm.New(64, 64, 64)}, Kernel: "plain", Rejected: true}
	r := must.Get(ask.Rankings(t.Context(), a, q))(t)[0]
	places, tiles := map[int]string{}, map[string]bool{}
	for _, e := range r.Entries {
		tile, _, _ := strings.Cut(e.Config.String(), " ")
		places[e.Position], tiles[tile] = tile, true
		must.Equal(t, e.Rank > 0, e.Estimate.Reject == "", tile)
	}
	must.That(t, r.RejectedTotal() > 2 && r.Feasible > 2 && len(places) == 24 && len(tiles) == 24 &&
		places[0] == "16x16x16" && places[3] == "16x16x128" && places[4] == "16x64x16" && places[23] == "64x64x128",
		"%d rejected, %d places of %d tiles: %v", r.RejectedTotal(), len(places), len(tiles), places)
}
