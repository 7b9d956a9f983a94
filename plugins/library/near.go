package library

import (
	"slices"

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
	// apart are the types whose times of an early release are apart: an interval that holds times of both does not narrow.
	apart map[string]bool
}

// nearTimes finds the times of the device. It is nil without any.
func (m *Model) nearTimes() *nearTimes {
	d := &m.Description
	pools := nearby.Of(d.ID(), m.options.scheme, m.options.release)
	if len(pools) == 0 || m.options.nearby == NoNearby {
		return nil
	}
	n := &nearTimes{pools: map[string]*nearby.Pool{}, layouts: map[arch.Layout]string{}}
	for _, p := range pools {
		n.pools[p.Types] = p
	}
	for _, t := range m.types() {
		for _, a := range []gemm.Major{gemm.MajorM, gemm.MajorK} {
			for _, b := range []gemm.Major{gemm.MajorK, gemm.MajorN} {
				l := arch.Layout{Types: t, AMajor: a, BMajor: b}
				n.layouts[l] = nearby.LayoutOf(l, d.Vendor == "NVIDIA")
			}
		}
	}
	n.problem.Timing, n.apart = string(m.options.timing), map[string]bool{}
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
	if n.apart[types] {
		found.Spread = 0
	}
	return found
}
