// Package served lists what origami answers over HTTP.
package served

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/catalogcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/evalcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/picturecmd"
)

// Endpoints are what `origami serve` answers.
func Endpoints() []server.Endpoint {
	return append(Predictions(), server.Endpoint{Name: "eval", Summary: evalcmd.Short, Ask: evalcmd.Ask,
		Schema: "Evaluation", Others: evalcmd.Others()})
}

// Predictions are what needs no measurements, which are larger than all models.
func Predictions() []server.Endpoint {
	return []server.Endpoint{
		{Name: "select", Summary: pickcmd.SelectShort,
			Ask: pickcmd.SelectAsk, Schema: "Answer", Many: true},
		{Name: "rank", Summary: pickcmd.RankShort,
			Ask: pickcmd.RankAsk, Schema: "Ranked", List: true},
		{Name: "explain", Summary: pickcmd.ExplainShort,
			Ask: pickcmd.ExplainAsk, Schema: "Explanation"},
		{Name: "compare", Summary: comparecmd.Short,
			Ask: comparecmd.Ask, Schema: "Comparison", Many: true},
		{Name: "roofline", Summary: picturecmd.RooflineShort,
			Ask: picturecmd.RooflineAsk, Schema: "Rooflines"},
		{Name: "map", Summary: picturecmd.MapShort, Ask: picturecmd.MapAsk, Schema: "Cell", List: true},
		{Name: "archs", Summary: catalogcmd.Short, Ask: catalogcmd.Ask, Schema: "Arch", List: true},
	}
}
