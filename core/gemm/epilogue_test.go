package gemm

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestEpilogues(t *testing.T) {
	names := ""
	for _, e := range Epilogues() {
		names += " " + e.String()
		back, err := ParseEpilogue(e.String())
		if err != nil || back != e {
			t.Errorf("%s comes back as %v, %v", e, back, err)
		}
		p := New(8, 16, 8)
		p.Epilogue = e
		var r Record
		if text, err := json.Marshal(p.Record()); err != nil || json.Unmarshal(text, &r) != nil {
			t.Fatal(err)
		}
		if back, err := r.Problem(); err != nil || back != p {
			t.Errorf("%s comes back as %s, %v", p, back, err)
		}
		if p.Plain() || !p.BeyondProduct() || p.Flat().Plain() == e.Activation.Gated() ||
			!strings.HasSuffix(p.String(), " epilogue "+e.String()) {
			t.Error(p)
		}
	}
	each := " relu gelu gelu_tanh silu gelu_gated gelu_tanh_gated silu_gated"
	biased := " bias" + strings.ReplaceAll(each, " ", " bias+")
	want := each + biased + " residual" + strings.ReplaceAll(each+biased+" ", " ", "+residual ")
	if want = strings.Replace(strings.TrimSuffix(want, " "), " residual+residual", " residual", 1); names != want {
		t.Error(names)
	}
	for _, text := range []string{"", "none"} {
		if e, err := ParseEpilogue(text); err != nil || e != (Epilogue{}) {
			t.Errorf("%q is %v, %v", text, e, err)
		}
	}
	for _, text := range []string{"gelu+bias", "bias+", "+relu", "Relu", "bias+bias"} {
		_, err := ParseEpilogue(text)
		if err == nil || !strings.Contains(err.Error(), "is no epilogue; use one of bias, relu") {
			t.Errorf("%q: %v", text, err)
		}
	}
	gated, residual := Epilogue{Activation: GatedSiLU}, Epilogue{Residual: true}
	for want, p := range map[string]Problem{
		"floating-point results":                 {N: 16, DType: INT8, Epilogue: Epilogue{Bias: true}},
		"n is 17, and silu_gated multiplies":     {N: 17, DType: FP16, Epilogue: gated},
		"beta is 1, and silu_gated has no place": {N: 16, DType: FP16, Epilogue: gated, Beta: 1},
		"beta is 1, and residual has no place":   {N: 16, DType: FP16, Epilogue: residual, Beta: 1},
	} {
		p.M, p.K, p.Batch, p.AMajor, p.BMajor = 8, 8, 1, MajorK, MajorN
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
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
		{Identity, -1.5, -1.5}, {ReLU, -1.5, 0}, {ReLU, 2, 2},
		{GELU, 1, 0.8413447460685429}, {GELU, -1, -0.15865525393145707},
		{GatedSiLU, 1, 0.7310585786300049},
		{GELUTanh, 1, 0.8411919906082768}, {SiLU, 1, 0.7310585786300049}, {SiLU, -2, -0.2384058440442351},
	} {
		if got := c.a.Of(c.x); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%d of %g is %.17g, want %.17g", c.a, c.x, got, c.want)
		}
	}
}
