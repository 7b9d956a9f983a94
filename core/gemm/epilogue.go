package gemm

import (
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// Epilogue is what a kernel does to each element of C before it stores it:
//
//	C = activation(alpha·A·B + beta·C + bias)
//
// It is a part of the problem, since it says what is computed. The zero value does nothing.
type Epilogue struct {
	// Bias is a vector of N elements of the type of C, one for each column. All matrices of a batch have the same.
	Bias       bool
	Activation Activation
}

// Activation is a function of one number.
type Activation uint8

// The activations, as PyTorch has them: GELU is x·Φ(x), with the error function, and GELUTanh its approximation
// 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))). SiLU is x·sigmoid(x), also called swish.
const (
	Identity Activation = iota
	ReLU
	GELU
	GELUTanh
	SiLU
)

var activationNames = [...]string{Identity: "", ReLU: "relu", GELU: "gelu", GELUTanh: "gelu_tanh", SiLU: "silu"}

const biasName = "bias"

// Of returns the activation of x in float64.
func (a Activation) Of(x float64) float64 {
	switch a {
	case ReLU:
		return max(x, 0)
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
	for _, bias := range []bool{false, true} {
		for a := range activationNames {
			if e := (Epilogue{bias, Activation(a)}); e != (Epilogue{}) {
				all = append(all, e)
			}
		}
	}
	return all
}

// String returns "bias", "relu", "bias+gelu" and the like, and the empty string for the zero value.
func (e Epilogue) String() string {
	name := "activation(?)"
	if int(e.Activation) < len(activationNames) {
		name = activationNames[e.Activation]
	}
	switch {
	case !e.Bias:
		return name
	case name == "":
		return biasName
	}
	return biasName + "+" + name
}

// ActivationNames lists the names of the activations, EpilogueNames those and the bias, for messages and help.
func ActivationNames() string { return strings.Join(activationNames[1:], ", ") }

// EpilogueNames lists what an epilogue may be made of.
func EpilogueNames() string { return biasName + ", " + ActivationNames() }

// ParseEpilogue reads what String writes, and "none" as the zero value. Bias comes first, as it is added first.
func ParseEpilogue(s string) (Epilogue, error) {
	if s == "none" {
		return Epilogue{}, nil
	}
	for _, e := range append(Epilogues(), Epilogue{}) {
		if e.String() == s {
			return e, nil
		}
	}
	return Epilogue{}, diag.Inputf("%q is no epilogue", s).
		Do("use one of %s, or bias+ and an activation, as in bias+gelu", EpilogueNames())
}

// validEpilogue refuses an epilogue of results that are integers.
func (p *Problem) validEpilogue() error {
	if int(p.Epilogue.Activation) >= len(activationNames) {
		return diag.Inputf("there is no activation %d", p.Epilogue.Activation).Do("use one of %s", EpilogueNames())
	}
	if p.Epilogue != (Epilogue{}) && p.Output() == INT32 {
		return diag.Inputf("C is int32, and the epilogue %s needs floating-point results", p.Epilogue).
			Do("leave the epilogue out, or choose another output type")
	}
	return nil
}
