package question

import (
	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/tensile"
)

// Contraction is a contraction of tensors, in place of the sizes of a product.
type Contraction struct {
	Contract string   `json:"contract" arg:"EXPR" help:"a contraction in place of -m, -n and -k: einsum as in ijk,jlk->il, or Cijk_Ailk_Bjlk_SB" rare:"yes"`
	Sizes    []string `json:"size" arg:"INDEX=N,..." help:"sizes of its indices; may be repeated" rare:"yes"`
	Strides  []string `json:"stride" arg:"TENSOR=N,N..." help:"strides of a tensor in elements: one for each index, in the order in which --contract writes them, as in a=4096,64,1; without gaps otherwise" rare:"yes"`
}

// Plans returns the ways to compute the contraction, with what a product says besides its sizes. A name of Tensile
// gives the types as well. fallback is as in Product.Base.
func (q *Contraction) Plans(product *Product, fallback string) (*ask.Plans, error) {
	base, err := product.Base(fallback)
	if err != nil {
		return nil, err
	}
	if err := q.check(product); err != nil {
		return nil, err
	}
	types := base.Types()
	var c contract.Contraction
	if contract.IsName(q.Contract) {
		c, types, err = q.named(types, product.DType != "" || product.Out != "")
	} else {
		c, err = contract.Parse(q.Contract)
	}
	if err != nil {
		return nil, diag.Within("--contract", err)
	}
	sizes, err := contract.ParseSizes(q.Sizes...)
	if err != nil {
		return nil, diag.Within("--size", err)
	}
	strides, err := contract.ParseStrides(c, q.Contract, q.Strides...)
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

// check refuses what says the same as a contraction.
func (q *Contraction) check(product *Product) error {
	if f := given(product, "m", "n", "k", "batch", "groups", "trans_a", "trans_b", "lda", "ldb", "ldc",
		"align"); f != nil {
		flag := "--" + f.Flag()
		if f.Short != "" {
			flag = "-" + f.Short
		}
		return diag.Inputf("%s and --contract contradict each other", flag).Do("leave one of them out")
	}
	if len(q.Sizes) == 0 {
		return diag.Inputf("--size is missing").Do("give the size of each index, as in --size i=512,j=64,k=64")
	}
	return nil
}

// One returns the problem of one launch: a GEMM, or otherwise a kernel with nested indices.
func (q *Contraction) One(product *Product, fallback string) (gemm.Problem, error) {
	plans, err := q.Plans(product, fallback)
	if err != nil {
		return gemm.Problem{}, err
	}
	return plans.List[len(plans.List)-1].Problem, nil
}

// named returns the contraction and the types of a name of Tensile, which given types may not contradict.
func (q *Contraction) named(asked gemm.Types, given bool) (c contract.Contraction, types gemm.Types, err error) {
	name, err := tensile.ParseName(q.Contract)
	if err != nil {
		return c, types, err
	}
	if types, err = name.DTypes(); err != nil {
		return c, types, err
	}
	switch {
	case types == (gemm.Types{}):
		types = asked
	case given && types != asked:
		return c, types, diag.Inputf("the name says %s, and the flags %s", types.Text(), asked.Text()).
			Do("leave --dtype and --out-dtype out")
	}
	return name.Contraction, types, nil
}
