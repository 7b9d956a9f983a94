package library

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/library/nearby"
)

// nearTimes are the published times that correct the predictions of a model.
type nearTimes struct {
	pools   map[string]*nearby.Pool // by nearby.TypesOf
	layouts map[arch.Layout]string  // nearby.LayoutOf
	problem residual.Problem        // its options
	// sets number the series of the timing, which source names.
	sets   map[*residual.Series]float64
	source string
	// sisters are the types with the times of a sister: an interval does not narrow.
	sisters map[string]bool
	// apart are the types whose times of an early release are apart: an interval that holds times of both does not narrow.
	apart map[string]bool
}

// nearTimes finds the times of the device. It is nil without any.
func (m *Model) nearTimes() *nearTimes {
	d := &m.Description
	if m.options.nearby == NoNearby {
		return nil
	}
	n := &nearTimes{pools: map[string]*nearby.Pool{}, layouts: map[arch.Layout]string{}, sisters: map[string]bool{}}
	n.problem.Timing = string(m.options.timing)
	n.choose(d.ID(), m.Board(), nearby.Of(d.Arch+"@", m.options.scheme, m.options.release))
	if len(n.pools) == 0 {
		return nil
	}
	for _, t := range m.types() {
		for _, a := range []gemm.Major{gemm.MajorM, gemm.MajorK} {
			for _, b := range []gemm.Major{gemm.MajorK, gemm.MajorN} {
				l := arch.Layout{Types: t, AMajor: a, BMajor: b}
				n.layouts[l] = nearby.LayoutOf(l, d.Vendor == "NVIDIA")
			}
		}
	}
	n.apart = map[string]bool{}
	if m.options.release == checked.AnyRelease {
		for _, p := range nearby.Of(d.ID(), m.options.scheme, checked.Early) {
			n.apart[p.Types] = slices.ContainsFunc(p.Series, func(s *residual.Series) bool {
				return s.Timing == n.problem.Timing
			})
		}
	}
	n.problem.WithoutSame = m.options.nearby != "all"
	if m.options.nearby == withoutNear {
		n.problem.Within = 1.25
	}
	return n
}

// Board is what the card has.
func (m *Model) Board() nearby.Board {
	d := &m.Description
	return nearby.Board{Units: float64(d.Units), DRAM: float64(arch.LevelOf(m.Memory, arch.BoundDRAM).DataSheet)}
}

// choose takes the times of the device. Of types of which it lacks times in the timing, those of its sister join them,
// in full, so that cards of one die keep their order.
func (n *nearTimes) choose(device string, card nearby.Board, pools []*nearby.Pool) {
	sisters, used := map[string][]*nearby.Pool{}, map[*nearby.Pool]bool{}
	for _, p := range pools {
		if p.Device == device {
			n.pools[p.Types], used[p] = p, true
		} else {
			sisters[p.Types] = append(sisters[p.Types], p)
		}
	}
	for types, list := range sisters {
		own, sister := n.pools[types], nearby.Sister(list, card, n.problem.Timing)
		if sister == nil || own != nil && own.Has(n.problem.Timing) {
			continue
		}
		if n.pools[types], n.sisters[types], used[sister] = sister, true, true; own != nil {
			n.pools[types] = own.Beside(sister)
		}
	}
	n.sets = map[*residual.Series]float64{}
	var names []string
	for _, p := range pools {
		for _, s := range p.Series {
			if used[p] && s.Timing == n.problem.Timing {
				n.sets[s] = float64(len(names) + 1)
				names = append(names, fmt.Sprintf("%d: %s on %s, %d times of %s", len(names)+1, s.Source, p.Device, s.Times, s.Layout))
			}
		}
	}
	n.source = strings.Join(names, "; ")
}

// of is what the times say of a problem. All are of one product, no batch or group.
func (n *nearTimes) of(p *gemm.Problem) residual.Found {
	if n == nil || p.Batch != 1 || p.Groups != (gemm.Groups{}) || p.BeyondProduct() {
		return residual.Found{}
	}
	types := nearby.TypesOf(p.DType)
	pool := n.pools[types]
	if pool == nil {
		return residual.Found{}
	}
	q := n.problem
	q.M, q.N, q.K, q.Layout = p.M, p.N, p.K, n.layouts[arch.LayoutOf(p)]
	found := residual.At(pool.Rows(), &q)
	if n.apart[types] || n.sisters[types] {
		found.Spread = 0
	}
	return found
}
