package table

import (
	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/logic"
)

// layers are how a line names what answered.
var layers = map[logic.Layer]string{
	logic.LayerExact: "the exact size", logic.LayerRange: "its ranges", logic.LayerNearest: "the nearest size",
	logic.LayerModel: "the model: the logic has no such size",
}

// LogicLine says which part of a library logic answered.
func LogicLine(s *iostreams.Streams, p *ask.LogicPick) {
	by := layers[p.Layer]
	if p.Layer == logic.LayerModel && p.Kernel != "" {
		by = "the model among its kernels: " + p.Kernel
	}
	Line(s, "logic", "%s, answered by %s", p.File, by)
}
