package gemm

import (
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// Epilogue is what a kernel does to each element of C before it stores it:
//
//	C = activation(alpha·scale_a·scale_b·A·B + beta·C + bias) + R
//
// It is a part of the problem, since it says what is computed. The zero value does nothing.
type Epilogue struct {
	// Scales says that A·B is multiplied with scale_a and scale_b, of fp32: a number for each row and one for each column,
	// or one for all of them. All matrices of a batch have the same.
	Scales bool
	// Bias is a vector of N elements, one for each column of A·B. All matrices of a batch have the same.
	Bias bool
	// BiasType is the type of the bias: FP32, or zero for the type of C.
	BiasType   DType
	Activation Activation
	// Residual says that R is added last. It has the shape, the type and the leading dimension of C.
	Residual bool
}

// Activation is a function of one number, or of two for a gated one.
type Activation uint8

// The activations, as PyTorch has them: GELU is x·Φ(x), with the error function, and GELUTanh its approximation
// 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))). SiLU is x·sigmoid(x), also called swish. As transformers has them, ReLU2
// is max(x, 0)², and QuickGELU x·sigmoid(1.702·x).
//
// A gated activation is the activation of one column times another column: the first half of the columns of A·B are
// gates, and the second half what they are multiplied with. C has half as many columns as A·B. GatedSiLU is also called
// SwiGLU.
const (
	Identity Activation = iota
	ReLU
	ReLU2
	QuickGELU
	GELU
	GELUTanh
	SiLU
	GatedGELU
	GatedGELUTanh
	GatedSiLU
)

var activationNames = [...]string{Identity: "", ReLU: "relu", ReLU2: "relu2",
	QuickGELU: "quick_gelu", GELU: "gelu", GELUTanh: "gelu_tanh", SiLU: "silu",
	GatedGELU: "gelu_gated", GatedGELUTanh: "gelu_tanh_gated", GatedSiLU: "silu_gated"}

const scalesName, biasName, wideBiasName, residualName = "scales", "bias", "bias_fp32", "residual"

// bias returns the name of the bias.
func (e Epilogue) bias() string {
	if e.BiasType == FP32 {
		return wideBiasName
	}
	return biasName
}

// String returns the name, empty for Identity.
func (a Activation) String() string {
	if int(a) < len(activationNames) {
		return activationNames[a]
	}
	return "activation(?)"
}

// Gated reports whether the activation is of two columns.
func (a Activation) Gated() bool { return a >= GatedGELU }

// Single returns the activation without its gate.
func (a Activation) Single() Activation {
	if a.Gated() {
		return a - GatedGELU + GELU
	}
	return a
}

// Of returns the activation of x in float64. Of a gated activation x is the gate.
func (a Activation) Of(x float64) float64 {
	switch a.Single() {
	case ReLU:
		return max(x, 0)
	case ReLU2:
		return max(x, 0) * max(x, 0)
	case QuickGELU:
		return x / (1 + math.Exp(-1.702*x))
	case GELU:
		return x * math.Erfc(-x/math.Sqrt2) / 2
	case GELUTanh:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case SiLU:
		return x / (1 + math.Exp(-x))
	default:
		return x
	}
}

// Epilogues lists every epilogue that does something.
func Epilogues() (all []Epilogue) {
	biases := []Epilogue{{}, {Bias: true}, {Bias: true, BiasType: FP32}}
	for i := range 4 * len(biases) {
		e := biases[i%len(biases)]
		e.Residual, e.Scales = i/len(biases)%2 > 0, i/len(biases)/2 > 0
		for a := range activationNames {
			if e.Activation = Activation(a); e != (Epilogue{}) {
				all = append(all, e)
			}
		}
	}
	return all
}

// String returns "bias", "relu", "scales+bias+gelu+residual" and the like, and the empty string for the zero value.
func (e Epilogue) String() string {
	name := e.Activation.String()
	var parts []string
	for _, part := range []struct {
		name string
		has  bool
	}{{scalesName, e.Scales}, {e.bias(), e.Bias}, {name, name != ""}, {residualName, e.Residual}} {
		if part.has {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, "+")
}

// ActivationNames lists the names of the activations, EpilogueNames those and all others, for messages and help.
func ActivationNames() string { return strings.Join(activationNames[1:], ", ") }

// EpilogueNames lists what an epilogue may be made of.
func EpilogueNames() string {
	return strings.Join([]string{scalesName, biasName, wideBiasName, ActivationNames(), residualName}, ", ")
}

// ParseEpilogue reads what String writes, and "none" as the zero value. The order is that in which it is done.
func ParseEpilogue(s string) (Epilogue, error) {
	if s == "" || s == "none" { // most problems: it is read millions of times
		return Epilogue{}, nil
	}
	for _, e := range Epilogues() {
		if e.String() == s {
			return e, nil
		}
	}
	return Epilogue{}, diag.Inputf("%q is no epilogue", s).
		Do("use one of %s, or several in this order, as in scales+bias+gelu+residual", EpilogueNames())
}

// validEpilogue refuses an epilogue of results that are integers.
func (p *Problem) validEpilogue() error {
	if int(p.Epilogue.Activation) >= len(activationNames) {
		return diag.Inputf("there is no activation %d", p.Epilogue.Activation).Do("use one of %s", EpilogueNames())
	}
	if t := p.Epilogue.BiasType; t != 0 && (t != FP32 || !p.Epilogue.Bias) {
		return diag.Inputf("the type of the bias is %s", t).Do("use a bias of the type of C, or %s", wideBiasName)
	}
	if p.Epilogue != (Epilogue{}) && p.Output() == INT32 {
		return diag.Inputf("C is int32, and the epilogue %s needs floating-point results", p.Epilogue).
			Do("leave the epilogue out, or choose another output type")
	}
	if e := p.Epilogue; e.Activation.Gated() && (p.N%2 != 0 || p.Nest != (Nest{}) || p.Groups != (Groups{})) {
		return diag.Inputf("n is %d, and %s multiplies one half of the columns of a matrix with the other", p.N, e).
			Do("give an even n, without groups and nested indices")
	}
	if (p.Epilogue.Residual || p.Epilogue.Activation.Gated()) && p.Beta != 0 {
		return diag.Inputf("beta is %g, and %s has no place for C before the activation", p.Beta, p.Epilogue).
			Do("add it as R, with %s and beta 0", residualName)
	}
	return nil
}

// Columns returns the columns of C: N, or half of it with a gated activation.
func (p *Problem) Columns() int {
	if p.Epilogue.Activation.Gated() {
		return p.N / 2
	}
	return p.N
}
