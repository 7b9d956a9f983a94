package zbench

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/plugins/builtins"
)

func TestPlanSize(t *testing.T) {
	all, _ := builtins.Providers()
	for _, id := range [][2]string{{"sm90", "h200"}, {"sm89", "rtx4090"}, {"sm100", "b200"}} {
		a, err := all[0].Open(t.Context(), arch.OpenRequest{Arch: id[0], Device: id[1]})
		if err != nil {
			t.Log(err)
			continue
		}
		d := exec.Device{Name: a.Describe().DeviceName, Arch: id[0], Attributes: map[string]float64{"memory_bytes": 16 << 30}}
		for _, p := range a.Describe().Params {
			d.Attributes[p.Name] = p.Value
		}
		plan, err := all[0].(calibrate.Planner).Calibration(t.Context(), d)
		if err != nil {
			t.Log(id, err)
			continue
		}
		n, texts := 0, map[string]bool{}
		m := 0
		for _, p := range plan.Probes {
			n += len(p.Program.Text)
			if !texts[p.Program.Text] {
				m += len(p.Program.Text)
			}
			texts[p.Program.Text] = true
		}
		t.Log(id, len(plan.Probes), "probes", n, "bytes", len(texts), "texts", m)
	}
}
