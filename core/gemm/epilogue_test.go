package gemm

import (
	"encoding/json"
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestEpilogues(t *testing.T) {
	names := ""
	for _, e := range Epilogues() {
		names += " " + e.String()
		back, err := ParseEpilogue(e.String())
		must.That(t, err == nil && back == e, "%s comes back as %v, %v", e, back, err)
		p := New(8, 16, 8)
		p.Epilogue = e
		var r Record
		text, err := json.Marshal(p.Record())
		must.Need(t, err == nil && json.Unmarshal(text, &r) == nil, "%v", err)
		must.Equal(t, must.Get(r.Problem())(t), p)
		must.That(t, !p.Plain() && p.BeyondProduct() && p.Flat().Plain() == (e.Activation < QuickGELU) &&
			strings.HasSuffix(p.String(), " epilogue "+e.String()), "%v", p)
	}
	list := strings.Fields(names)
	for _, name := range []string{
		"relu", "relu2", "quick_gelu", "silu_gated", "bias", "bias+gelu", "bias_fp32+silu", "residual",
		"bias_fp32+gelu_tanh+residual", "scales",
		"scales+relu", "scales+bias", "scales+bias_fp32+silu_gated+residual",
	} {
		must.That(t, slices.Contains(list, name), "%s is missing in %s", name, names)
	}
	if want := 10*3*2*2 - 1; len(list) != want || len(slices.Compact(slices.Sorted(slices.Values(list)))) != want {
		t.Errorf("%d names, want %d: %s", len(list), want, names)
	}
	for _, text := range []string{"", "none"} {
		must.Equal(t, must.Get(ParseEpilogue(text))(t), Epilogue{}, text)
	}
	for _, text := range []string{"gelu+bias", "bias+", "+relu", "Relu", "bias+bias", "bias+scales", "bias_fp16"} {
		_, err := ParseEpilogue(text)
		must.Fail(t, err, "is no epilogue; use one of scales, bias, bias_fp32, relu")
	}
	gated, residual := Epilogue{Activation: GatedSiLU}, Epilogue{Residual: true}
	for want, p := range map[string]Problem{
		"floating-point results":                 {N: 16, DType: INT8, Epilogue: Epilogue{Bias: true}},
		"n is 17, and silu_gated multiplies":     {N: 17, DType: FP16, Epilogue: gated},
		"beta is 1, and silu_gated has no place": {N: 16, DType: FP16, Epilogue: gated, Beta: 1},
		"beta is 1, and residual has no place":   {N: 16, DType: FP16, Epilogue: residual, Beta: 1},
		"the type of the bias is bf16":           {N: 16, DType: FP16, Epilogue: Epilogue{Bias: true, BiasType: BF16}},
		"the type of the bias is fp32":           {N: 16, DType: FP16, Epilogue: Epilogue{BiasType: FP32}},
	} {
		p.M, p.K, p.Batch, p.AMajor, p.BMajor = 8, 8, 1, MajorK, MajorN
		must.Fail(t, p.Validate(), want)
	}
	wide := New(8, 8, 8)
	wide.Out, wide.Epilogue = FP32, Epilogue{Bias: true, BiasType: FP32}
	must.Equal(t, wide.Canonical().Epilogue, Epilogue{Bias: true})
	p := New(8, 32, 8)
	p.Epilogue = gated
	if rows, columns := p.Rows(C); rows != 8 || columns != 16 || p.LD(C) != 16 {
		t.Error(rows, columns, p.LD(C))
	}
}

// The values come from torch.nn.functional in float64.
func TestActivations(t *testing.T) {
	for _, c := range []struct {
		a       Activation
		x, want float64
	}{
		{Identity, -1.5, -1.5}, {ReLU, -1.5, 0}, {ReLU, 2, 2}, {ReLU2, -3, 0}, {ReLU2, 3, 9},
		{QuickGELU, 1, 0.8457957659328212}, {QuickGELU, -2, -0.06434137685579186},
		{GELU, 1, 0.8413447460685429}, {GELU, -1, -0.15865525393145707},
		{GatedSiLU, 1, 0.7310585786300049},
		{GELUTanh, 1, 0.8411919906082768}, {SiLU, 1, 0.7310585786300049}, {SiLU, -2, -0.2384058440442351},
	} {
		got := c.a.Of(c.x)
		must.That(t, math.Abs(got-c.want) <= 1e-15, "%d of %g is %.17g, want %.17g", c.a, c.x, got, c.want)
	}
}
