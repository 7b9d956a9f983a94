package session

import (
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// ContractFlags are the flags that describe a contraction, in place of the sizes of a GEMM.
type ContractFlags struct {
	Text  string
	Sizes []string

	flags *pflag.FlagSet
}

// Register adds the flags.
func (f *ContractFlags) Register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.Text, "contract", "",
		"a contraction `EXPR` in place of -m, -n and -k: einsum as in ijk,jlk->il, or Cijk_Ailk_Bjlk_SB")
	flags.StringArrayVar(&f.Sizes, "size", nil, "sizes of its indices, as `INDEX=N,…`; may be repeated")
}

// Contraction is a contraction and the ways to compute it with GEMMs.
type Contraction struct {
	*contract.Shape
	Plans []contract.Plan
}

// Contraction returns the contraction that the flags describe. A name of Tensile gives the types as well.
func (f *ProblemFlags) Contraction(dtype string) (*Contraction, error) {
	base, err := f.Base(dtype)
	if err != nil {
		return nil, err
	}
	return f.contraction(base.Types())
}

func (f *ProblemFlags) contraction(types gemm.Types) (*Contraction, error) {
	if err := f.checkContract(); err != nil {
		return nil, err
	}
	c, err := contract.Parse(f.Contract.Text)
	if err != nil {
		return nil, diag.Within("--contract", err)
	}
	if contract.IsName(f.Contract.Text) {
		if types, err = f.namedTypes(types); err != nil {
			return nil, err
		}
	}
	sizes, err := contract.ParseSizes(f.Contract.Sizes...)
	if err != nil {
		return nil, diag.Within("--size", err)
	}
	shape, err := c.Shape(sizes, nil, nil, nil)
	if err != nil {
		return nil, diag.Within("--size", err)
	}
	plans, err := shape.Plans(types, false)
	return &Contraction{shape, plans}, diag.Within("--contract", err)
}

// checkContract refuses flags that say what a contraction says.
func (f *ProblemFlags) checkContract() error {
	for _, flag := range []string{"m", "n", "k", "batch", "groups", "trans-a", "trans-b", "lda", "ldb", "ldc", "align",
		"problems"} {
		if f.Contract.flags.Changed(flag) {
			dashes := "--"
			if len(flag) == 1 {
				dashes = "-"
			}
			return diag.Inputf("%s%s and --contract contradict each other", dashes, flag).Do("leave one of them out")
		}
	}
	if len(f.Contract.Sizes) == 0 {
		return diag.Inputf("--size is missing").Do("give the size of each index, as in --size i=512,j=64,k=64")
	}
	return nil
}

// namedTypes returns the types of a name, which flags may not contradict.
func (f *ProblemFlags) namedTypes(flagged gemm.Types) (gemm.Types, error) {
	name, err := contract.ParseName(f.Contract.Text)
	if err != nil {
		return flagged, diag.Within("--contract", err)
	}
	types, err := name.DTypes()
	if err != nil {
		return flagged, diag.Within("--contract", err)
	}
	given := f.Contract.flags.Changed("dtype") || f.Contract.flags.Changed("out-dtype")
	switch {
	case types == (gemm.Types{}):
		return flagged, nil
	case given && types != flagged:
		return flagged, diag.Inputf("the name says %s, and the flags %s", types.Text(), flagged.Text()).At("--contract").
			Do("leave --dtype and --out-dtype out")
	}
	return types, nil
}

// singleGEMM returns the GEMM that is the contraction.
func (f *ProblemFlags) singleGEMM(types gemm.Types) (p gemm.Problem, err error) {
	c, err := f.contraction(types)
	if err != nil {
		return p, err
	}
	plan := &c.Plans[0]
	if !plan.Direct() {
		return p, diag.Inputf("%s is no single GEMM: %s", f.Contract.Text, plan.Text()).At("--contract").
			Do("`origami select` answers for it; or give the sizes of one of the GEMMs")
	}
	return plan.Problem, nil
}

// Contracted is what an answer for a GEMM means for the contraction that it is a part of.
type Contracted struct {
	*Contraction
	Plan *contract.Plan
	// Seconds is the predicted time of all GEMMs in turn, and of what is moved besides, at the bandwidth of DRAM.
	Seconds unit.Seconds
	// Instead is the other way to compute it, nil if there is none.
	Instead *Contracted
}

// Contract returns what an answer for the GEMM of a plan means for the contraction.
func (a *Answer) Contract(c *Contraction, plan *contract.Plan) (*Contracted, error) {
	seconds := a.Seconds(&a.Entries[0])
	if !plan.Direct() {
		switch {
		case a.Arch.RanksOnly:
			return nil, diag.Inputf("the contraction is no single GEMM, and the model %s gives no times to add up",
				a.Arch.Model).Do("use a model that predicts times")
		case plan.Moved > 0 && a.DRAMPeak <= 0:
			return nil, diag.Inputf("the contraction is no single GEMM, and %s has no bandwidth of DRAM", a.Arch.ID()).
				Do("use another device")
		}
		seconds *= unit.Seconds(plan.Calls)
		if plan.Moved > 0 {
			seconds += unit.Seconds(plan.Moved / a.DRAMPeak)
		}
	}
	return &Contracted{Contraction: c, Plan: plan, Seconds: seconds}, nil
}
