package render

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/logic"
)

// LogicJSON is what a library logic says in JSON. Kernel is empty if it leaves the answer to the model.
type LogicJSON struct {
	File   string `json:"file"`
	Layer  string `json:"layer"`
	Kernel string `json:"kernel"`
}

func logicJSON(p *session.LogicPick) *LogicJSON {
	if p == nil {
		return nil
	}
	return &LogicJSON{p.File, string(p.Layer), p.Kernel}
}

// layers are how a line names what answered.
var layers = map[logic.Layer]string{
	logic.LayerExact: "the exact size", logic.LayerRange: "its ranges", logic.LayerNearest: "the nearest size",
	logic.LayerModel: "the model: the logic has no such size",
}

// LogicLine says which part of a library logic answered.
func LogicLine(s *iostreams.Streams, p *session.LogicPick) {
	table.Line(s, "logic", "%s, answered by %s", p.File, layers[p.Layer])
}
