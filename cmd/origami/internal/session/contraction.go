package session

import (
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/tensile"
)

// ContractFlags are the flags that describe a contraction, in place of the sizes of a GEMM.
type ContractFlags struct {
	Text           string
	Sizes, Strides []string

	flags *pflag.FlagSet
}

// Register adds the flags.
func (f *ContractFlags) Register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.Text, "contract", "",
		"a contraction `EXPR` in place of -m, -n and -k: einsum as in ijk,jlk->il, or Cijk_Ailk_Bjlk_SB")
	flags.StringArrayVar(&f.Sizes, "size", nil, "sizes of its indices, as `INDEX=N,...`; may be repeated")
	flags.StringArrayVar(&f.Strides, "stride", nil,
		"strides of a tensor in elements, as `TENSOR=N,N...`: one for each index, in the order in which --contract writes\n"+
			"them, as in a=4096,64,1; without gaps otherwise")
}

// plans returns the contraction that the flags describe. A name of Tensile gives the types as well.
func (f *ContractFlags) plans(base gemm.Problem) (*ask.Plans, error) {
	types := base.Types()
	if err := f.check(); err != nil {
		return nil, err
	}
	var c contract.Contraction
	var err error
	if contract.IsName(f.Text) {
		c, types, err = f.named(types)
	} else {
		c, err = contract.Parse(f.Text)
	}
	if err != nil {
		return nil, diag.Within("--contract", err)
	}
	sizes, err := contract.ParseSizes(f.Sizes...)
	if err != nil {
		return nil, diag.Within("--size", err)
	}
	strides, err := contract.ParseStrides(c, f.Text, f.Strides...)
	if err != nil {
		return nil, diag.Within("--stride", err)
	}
	if _, err := c.Shape(sizes, nil, nil, nil); err != nil {
		return nil, diag.Within("--size", err)
	}
	shape, err := c.Shape(sizes, strides[gemm.A], strides[gemm.B], strides[gemm.C])
	if err != nil {
		return nil, diag.Within("--stride", err)
	}
	if base.Epilogue.Bias || base.Epilogue.Scales {
		return nil, diag.Inputf("a bias or a scale is an element for each column, and a contraction has no columns").
			At("--epilogue").Do("leave it out, or give -m, -n and -k")
	}
	plans, err := shape.Plans(types, base.Beta != 0)
	if err != nil {
		return nil, diag.Within("--contract", err)
	}
	if len(plans) == 0 || !plans[0].Direct() {
		nested, err := shape.Nested(types)
		if err != nil {
			return nil, diag.Within("--contract", err)
		}
		plans = append(plans, nested)
	}
	for i := range plans {
		if p := &plans[i].Problem; plans[i].Direct() { // in others, copies and sums take part in it
			p.Alpha, p.Beta, p.Epilogue = base.Alpha, base.Beta, base.Epilogue
			*p = p.Canonical()
		}
	}
	return &ask.Plans{Shape: shape, List: plans}, nil
}

// check refuses flags that say what a contraction says.
func (f *ContractFlags) check() error {
	for _, flag := range []string{"m", "n", "k", "batch", "groups", "trans-a", "trans-b", "lda", "ldb", "ldc", "align",
		"problems"} {
		if f.flags.Changed(flag) {
			dashes := "--"
			if len(flag) == 1 {
				dashes = "-"
			}
			return diag.Inputf("%s%s and --contract contradict each other", dashes, flag).Do("leave one of them out")
		}
	}
	if len(f.Sizes) == 0 {
		return diag.Inputf("--size is missing").Do("give the size of each index, as in --size i=512,j=64,k=64")
	}
	return nil
}

// named returns the contraction and the types of a name of Tensile, which flags may not contradict.
func (f *ContractFlags) named(flagged gemm.Types) (c contract.Contraction, types gemm.Types, err error) {
	name, err := tensile.ParseName(f.Text)
	if err != nil {
		return c, types, err
	}
	if types, err = name.DTypes(); err != nil {
		return c, types, err
	}
	given := f.flags.Changed("dtype") || f.flags.Changed("out-dtype")
	switch {
	case types == (gemm.Types{}):
		types = flagged
	case given && types != flagged:
		return c, types, diag.Inputf("the name says %s, and the flags %s", types.Text(), flagged.Text()).
			Do("leave --dtype and --out-dtype out")
	}
	return name.Contraction, types, nil
}
