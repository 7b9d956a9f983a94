package session

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/diag"
)

// ScalarFlags are alpha and beta of C = alpha·A·B + beta·C.
type ScalarFlags struct{ Alpha, Beta string }

// Register adds the flags.
func (f *ScalarFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Alpha, "alpha", "", "`FACTOR` of the product (default 1)")
	flags.StringVar(&f.Beta, "beta", "", "`FACTOR` of what C holds before; C is not read if it is 0, the default")
}

// values returns alpha and beta as a problem has them.
func (f *ScalarFlags) values() (alpha, beta float32, err error) {
	for _, x := range []struct {
		flag, text string
		to         *float32
	}{{"--alpha", f.Alpha, &alpha}, {"--beta", f.Beta, &beta}} {
		if x.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(x.text, 32)
		if err != nil || v-v != 0 {
			return 0, 0, diag.Inputf("%q is no finite number", x.text).At("%s", x.flag).Do("give a number such as 0.5")
		}
		*x.to = float32(v)
	}
	if f.Alpha != "" && alpha == 0 {
		return 0, 0, diag.Inputf("an alpha of 0 leaves nothing to multiply").At("--alpha").Do("give another number")
	}
	return alpha, beta, nil
}
