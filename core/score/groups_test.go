package score

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// simulated are groups of parts, whose times have an error in common in each group.
func simulated(random *rand.Rand, parts, groups int) (all []Group) {
	for part := range parts {
		for g := range groups {
			out := Group{Name: fmt.Sprint("source ", g), Part: fmt.Sprint("device ", part)}
			common := 0.1 * random.NormFloat64()
			for range 60 {
				p := gemm.New(64, 64*(1+random.IntN(40)), 64*(1+random.IntN(40)))
				off := math.Exp(common + 0.05*random.NormFloat64())
				out.Rows = append(out.Rows, Row{
					Problem: p, Predicted: 1e-3, Measured: unit.Seconds(1e-3 * off),
				})
			}
			all = append(all, out)
		}
	}
	return all
}

// Ranges that are widened by what left-out groups need hold the times of groups that were never seen; those that are
// not widened hold far fewer.
func TestWidenedRangesHoldForNewGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	f := LeaveGroupsOut(simulated(random, 80, 2))
	if len(f.Left) != 160 || f.Held < 0.85 || f.Held > 0.95 || f.Width <= 1 {
		t.Fatalf("%d left out, %.3f held, width %.2f", len(f.Left), f.Held, f.Width)
	}
	share := func(widening float64) float64 {
		held, of := 0, 0
		for range 40 {
			new := simulated(random, 1, 2)
			ranges := GroupRanges(new[:1], widening)
			for i := range new[1].Rows {
				s := &new[1].Rows[i]
				low, high := ranges[0].Of(s.Predicted)
				if of++; low <= s.Measured && s.Measured <= high {
					held++
				}
			}
		}
		return float64(held) / float64(of)
	}
	if wide, narrow := share(f.Widening), share(0); wide < 0.83 || wide > 0.97 || narrow > 0.75 {
		t.Errorf("%.3f of the times of new groups are held, %.3f without the widening", wide, narrow)
	}
}

// A group alone in its part, one of few times and one beside no ranges say nothing.
func TestGroupsThatCannotBeLeftOut(t *testing.T) {
	all := simulated(rand.New(rand.NewPCG(1, 2)), 1, 2)
	all[1].Rows = all[1].Rows[:minLeftOut-1]
	all = append(all, Group{Name: "alone", Part: "elsewhere", Rows: all[0].Rows})
	if f := LeaveGroupsOut(all); len(f.Left) != 0 || f.Widening != 0 {
		t.Errorf("%+v", f)
	}
}
