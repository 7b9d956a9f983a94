package library

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

// Options are the options of the model. The first value is the default.
var Options = []arch.Option{
	{
		Key: "l2", Default: "layers", Values: []string{"layers", "cold", "warm"},
		Doc: "of kernel family library, what the caches hold when the kernel starts: A, and B of a model's layers in turn; " +
			"nothing; or A and B",
	},
}

// options are the values in force.
type options struct{ l2 string }

func parseOptions(given map[string]string) (options, error) {
	values := map[string]string{}
	for _, o := range Options {
		v, ok := given[o.Key]
		if !ok {
			v = o.Default
		}
		if !slices.Contains(o.Values, v) {
			return options{}, diag.Inputf("%s=%s is unknown", o.Key, v).At("option").
				Do("use one of %s", strings.Join(o.Values, ", "))
		}
		values[o.Key] = v
	}
	return options{l2: values["l2"]}, nil
}

// inForce returns the options as a description has them.
func (o options) inForce() []arch.OptionValue { return []arch.OptionValue{{Key: "l2", Value: o.l2}} }

// turns is the number of layers whose weights are used in turn.
const turns = 6

// constants are the numbers of terms.Condition.
func (o options) constants() []arch.Constant {
	values := map[string][2]float64{"layers": {turns, 0}, "cold": {1, 1}, "warm": {1, 0}}[o.l2]
	var all []arch.Constant
	for i, n := range terms.Condition {
		all = append(all, arch.Constant{
			Name: n.Name, Value: values[i], Unit: n.Unit, Doc: n.Doc, Source: "option l2=" + o.l2,
		})
	}
	return all
}
