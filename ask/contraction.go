package ask

import (
	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/unit"
)

// Contract returns what an answer for the GEMM of a plan means for the contraction. A copy costs what the model states
// besides its bytes.
func (a *Ranking) Contract(c *Plans, plan *contract.Plan) (*Contracted, error) {
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
		seconds += unit.Seconds(a.Arch.Constant("contract_launch", 0)) * unit.Seconds(len(plan.Copied))
	}
	return &Contracted{Plans: c, Plan: plan, Seconds: seconds, Kernel: a.Kernel}, nil
}
