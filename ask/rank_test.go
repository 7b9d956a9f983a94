package ask_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/example"
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

// The kernel that wins most sizes is number 0.
func TestWinners(t *testing.T) {
	p := gemm.New(64, 64, 64)
	small, large := gemm.Config{BlockM: 16, BlockN: 16, SplitK: 1}, gemm.Config{BlockM: 64, BlockN: 64, SplitK: 2}
	cells := []ask.Cell{ask.NewCell(&p, small, 1), ask.NewCell(&p, large, 1), ask.NewCell(&p, large, 2)}
	winners := ask.Winners(cells)
	must.That(t, len(winners) == 2 && winners[0].Tile == "64x64" && winners[0].Sizes == 2 && winners[0].PerByte == 32 &&
		winners[0].Split == 2 && *cells[0].Winner == 1 && *cells[1].Winner == 0, "%+v %+v", winners, cells)
}

// A question about two problems has an answer for each, from the space of the target alone.
func TestRankings(t *testing.T) {
	provider := must.Get(example.Provider())(t)
	source := models.Providers{provider}
	id := provider.Manifest().Archs[0].ID
	a := must.Get((&models.Target{Arch: id}).Open(t.Context(), source))(t)
	problems := []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(64, 4096, 512)}
	space := models.Space{{Name: "block_m", Values: []string{"64"}}}
	answers, err := ask.Rankings(t.Context(), a, ask.Question{Problems: problems, Space: space, Top: 1})
	must.Need(t, err == nil && len(answers) == len(problems), "%d answers, %v", len(answers), err)
	for i, one := range answers {
		must.That(t, one.Err == nil && one.Problem == problems[i] && one.Entries[0].Config.BlockM == 64,
			"%s: %+v, %v", one.Problem, one.Entries, one.Err)
	}
	for want, bad := range map[string]models.Target{
		`unknown architecture "x"`: {Arch: "x"}, `no model of`: {Arch: id, Kernel: "none"},
	} {
		must.Fail(t, must.Err(bad.Open(t.Context(), source)), want)
	}
}
