package library

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/residual"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

// Options are the options of the model.
var Options = []arch.Option{
	{
		Key: "timing", Default: string(stopwatch.Model), Values: stopwatch.Names(),
		Doc: "of the kernel family library, what a time is of; docs/timings.md says what each means",
	},
	{
		Key: "scheme", Default: perTensor,
		Values: []string{
			perTensor, "tensor+quant", "row", "block128", "block128+quant", "block128+preshuffle", "block16",
			"block16+quant", perMX,
		},
		Doc: "of the kernel family library, the scales of 8-bit operands: one per matrix, per row and column, or per 128 " +
			"elements along K; of fp4, per 16 or 32 elements, whatever is asked for, and of mxfp8 per 32; with +quant the " +
			"time has the quantising of A in it, with +preshuffle the kernel has arranged B before",
	},
	Release,
	residual.Option,
}

// Release is the option of the models of a vendor's libraries.
var Release = arch.Option{
	Key: "release", Default: checked.AnyRelease, Values: []string{checked.AnyRelease, checked.Current, checked.Early},
	Doc: "of the kernel families library and tensile, early is a library of the first year of a generation of GPUs, " +
		"which later ones overtook; any predicts the current one, with an interval that holds times of both",
}

const (
	perTensor = "tensor"
	perMX     = "block32"
	quantises = "+quant"
)

// options are the values in force.
type options struct {
	timing                  stopwatch.Timing
	scheme, release, nearby string
}

func parseOptions(given map[string]string) (options, error) {
	values := map[string]string{}
	for _, o := range Options {
		v, err := valueOf(&o, given)
		if err != nil {
			return options{}, err
		}
		values[o.Key] = v
	}
	return options{stopwatch.Timing(values["timing"]), values["scheme"], values["release"], values[residual.Nearby]}, nil
}

// valueOf returns the value of an option.
func valueOf(o *arch.Option, given map[string]string) (string, error) {
	v, ok := given[o.Key]
	if !ok {
		v = o.Default
	}
	return v, o.Check(v)
}

// ReleaseOf returns the release that is asked for. early says whether speeds of the early one are known on the device.
func ReleaseOf(given map[string]string, early bool, device string) (string, error) {
	release, err := valueOf(&Release, given)
	if err == nil && release == checked.Early && !early {
		err = diag.Inputf("no speeds of an early release are known on the %s", device).At("option").
			Do("leave release=%s out", release)
	}
	return release, err
}

// inForce returns the options as a description has them.
func (o options) inForce() []arch.OptionValue {
	return []arch.OptionValue{
		{Key: "timing", Value: string(o.timing)}, {Key: "scheme", Value: o.scheme}, {Key: "release", Value: o.release},
		{Key: residual.Nearby, Value: o.nearby},
	}
}

// takes reports whether operands of a type can have the scheme. Units with scales per 32 elements, which fp4 needs,
// take fp8 with them too. A GeForce, whose fp8 has half of its rate, does so at the full one, which no device file has.
func (m *Model) takes(t gemm.DType) bool {
	switch scheme, fp4 := m.options.scheme, m.peaks[gemm.FP4]; {
	case scheme == perTensor:
		return true
	case scheme == perMX:
		return t == gemm.FP4 || t.CostsLike() == gemm.FP8 && fp4 > 0 && fp4 < 4*m.peaks[t]
	case strings.HasPrefix(scheme, "block16"):
		return t == gemm.FP4
	}
	return t.Bits() == 8
}

// constants are the numbers of terms.Condition.
func (o options) constants() []arch.Constant {
	values := map[string]float64{}
	switch o.timing.Base() {
	case stopwatch.Layers:
		values["layers"] = 6
	case stopwatch.Layers5:
		values["layers"] = 5
	case stopwatch.Cold:
		values["layers"], values["all_cold"] = 1, 1
	case stopwatch.Warm:
		values["layers"] = 1
	default:
		values["layers"] = 1e9 // more than any cache holds
	}
	values["quantises"] = model.One(strings.HasSuffix(o.scheme, quantises))
	all := make([]arch.Constant, len(terms.Condition))
	for i, n := range terms.Condition {
		option := "timing=" + string(o.timing)
		if n.Name == "quantises" {
			option = "scheme=" + o.scheme
		}
		all[i] = arch.Constant{Name: n.Name, Value: values[n.Name], Unit: n.Unit, Doc: n.Doc, Source: "option " + option}
	}
	return all
}
