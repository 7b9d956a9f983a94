package residual

import "github.com/origami-gemm/origami/core/arch"

// Nearby is the option of the times that correct predictions, and its values besides "all".
const (
	Nearby      = "nearby"
	None        = "none"
	WithoutSame = "without-same"
	withoutNear = "without-near"
)

// Option says which times count.
var Option = arch.Option{
	Key: Nearby, Default: "all", Values: []string{"all", WithoutSame, withoutNear, None},
	Doc: "the recorded times near a problem that correct its prediction: without those of its M, N and K, without those " +
		"whose N and K are within 1.25 times of its own, or none; to score predictions",
}

// Without returns which times a value of the option leaves out. all is true for None.
func Without(value string) (p Problem, all bool) {
	p.WithoutSame = value == WithoutSame || value == withoutNear
	if value == withoutNear {
		p.Within = 1.25
	}
	return p, value == None
}
