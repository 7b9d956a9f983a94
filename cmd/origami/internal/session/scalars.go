package session

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// ScalarFlags are what C = activation(alpha·A·B + beta·C + bias) has besides the matrices.
type ScalarFlags struct{ Alpha, Beta, Epilogue string }

// Register adds the flags.
func (f *ScalarFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Alpha, "alpha", "", "`FACTOR` of the product (default 1)")
	flags.StringVar(&f.Beta, "beta", "", "`FACTOR` of what C holds before; C is not read if it is 0, the default")
	flags.StringVar(&f.Epilogue, "epilogue", "", "what is done to C before it is stored: bias, an `ACTIVATION` ("+
		gemm.ActivationNames()+"), or both, as bias+gelu (default none)")
}

// set sets what the flags say.
func (f *ScalarFlags) set(p *gemm.Problem) error {
	for _, x := range []struct {
		flag, text string
		to         *float32
	}{{"--alpha", f.Alpha, &p.Alpha}, {"--beta", f.Beta, &p.Beta}} {
		if x.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(x.text, 32)
		if err != nil || v-v != 0 {
			return diag.Inputf("%q is no finite number", x.text).At("%s", x.flag).Do("give a number such as 0.5")
		}
		*x.to = float32(v)
	}
	if f.Alpha != "" && p.Alpha == 0 {
		return diag.Inputf("an alpha of 0 leaves nothing to multiply").At("--alpha").Do("give another number")
	}
	var err error
	p.Epilogue, err = gemm.ParseEpilogue(f.Epilogue)
	return diag.Within("--epilogue", err)
}
