// Package served lists what origami answers over HTTP.
package served

import (
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/catalogcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/evalcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/picturecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/reportcmd"
)

// Content is what `origami serve` answers.
func Content() server.Content {
	with := func(more ...string) []string { return slices.Concat(server.Settings, server.Shape, more) }
	grid := slices.Concat(server.Settings, []string{"m", "n", "k", "trans_a", "trans_b", "out_dtype"})
	return server.Content{Page: reportcmd.Page(), Endpoints: []server.Endpoint{
		{Name: "select", Summary: pickcmd.SelectShort, Params: with("regret"),
			Ask: pickcmd.SelectAsk, Schema: "Answer"},
		{Name: "rank", Summary: pickcmd.RankShort, Params: with("top"),
			Ask: pickcmd.RankAsk, Schema: "Ranked", List: true},
		{Name: "explain", Summary: pickcmd.ExplainShort, Params: with("config"),
			Ask: pickcmd.ExplainAsk, Schema: "Explanation"},
		{Name: "compare", Summary: comparecmd.Short, Params: with("same_model", "price", "watts"),
			Ask: comparecmd.Ask, Schema: "Comparison"},
		{Name: "roofline", Summary: picturecmd.RooflineShort, Params: with("config", "measured"),
			Ask: picturecmd.RooflineAsk, Schema: "Rooflines"},
		{Name: "map", Summary: picturecmd.MapShort, Params: grid, Ask: picturecmd.MapAsk, Schema: "Cell", List: true},
		{Name: "eval", Summary: evalcmd.Short, Params: server.Settings, Ask: evalcmd.Ask, Schema: "Evaluation"},
		{Name: "archs", Summary: catalogcmd.Short, Ask: catalogcmd.Ask, Schema: "Arch", List: true},
	}}
}
