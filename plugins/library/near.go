package library

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/library/nearby"
)

// nearTimes are the published times that correct the predictions of a model.
type nearTimes struct {
	known   map[string]known       // by nearby.TypesOf
	layouts map[arch.Layout]string // nearby.LayoutOf
	problem residual.Problem       // its options
	// sets number the series that count, which source names.
	sets   map[*residual.Series]float64
	source string
}

// known are times of types.
type known struct {
	pool *nearby.Pool
	// timing is theirs: the one asked for or its base, whose times they correct then.
	timing stopwatch.Timing
	own    bool // many are of the device, and of the timing that is asked for
	// vague says that intervals do not narrow: the times are a sister's or of the base, or those of an early release are
	// apart, and an interval holds times of both.
	vague bool
}

// nearTimes finds the times of the device. It is nil without any.
func (m *Model) nearTimes() *nearTimes {
	d, o := &m.Description, m.options
	without, all := residual.Without(o.nearby)
	if all {
		return nil
	}
	n := &nearTimes{problem: without, known: map[string]known{}, layouts: map[arch.Layout]string{}}
	n.choose(o.timing, d.ID(), m.Board(), nearby.Of(d.Arch+"@", o.scheme, o.release))
	if len(n.known) == 0 {
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
	if o.release == checked.AnyRelease {
		for _, p := range nearby.Of(d.ID(), o.scheme, checked.Early) {
			if k, ok := n.known[p.Types]; ok && p.Has(string(o.timing), 1) {
				k.vague = true
				n.known[p.Types] = k
			}
		}
	}
	return n
}

// Board is what the card has.
func (m *Model) Board() nearby.Board {
	d := &m.Description
	return nearby.Board{Units: float64(d.Units), DRAM: float64(arch.LevelOf(m.Memory, arch.BoundDRAM).DataSheet)}
}

// choose takes the times of the device in a timing, or else in its base. Where it has no or few, those of its sister
// join them, in full, so that cards of one die keep their order.
func (n *nearTimes) choose(asked stopwatch.Timing, device string, card nearby.Board, pools []*nearby.Pool) {
	own, sisters := map[string]*nearby.Pool{}, map[string][]*nearby.Pool{}
	for _, p := range pools {
		if p.Device == device {
			own[p.Types] = p
		} else {
			sisters[p.Types] = append(sisters[p.Types], p)
		}
	}
	used := map[*residual.Series]bool{}
	for _, p := range pools {
		if n.known[p.Types].pool != nil {
			continue
		}
		for _, of := range []stopwatch.Timing{asked, asked.Base()} {
			p, sister := own[p.Types], nearby.Sister(sisters[p.Types], card, string(of))
			k := known{timing: of, vague: of != asked}
			switch {
			case p != nil && (sister == nil && p.Has(string(of), 1) || p.Has(string(of), nearby.Least)):
				k.pool, k.own = p, of == asked && p.Has(string(of), nearby.Least)
			case sister == nil:
				continue
			case p != nil:
				k.pool, k.vague = p.Beside(sister), true
			default:
				k.pool, k.vague = sister, true
			}
			n.known[k.pool.Types] = k
			for _, s := range k.pool.Series {
				used[s] = s.Timing == string(of)
			}
			break
		}
	}
	n.sets = map[*residual.Series]float64{}
	var names []string
	for _, p := range pools {
		for _, s := range p.Series {
			if used[s] {
				n.sets[s] = float64(len(names) + 1)
				names = append(names, fmt.Sprintf("%d: %s on %s, %d times of %s in %s", len(names)+1, s.Source, p.Device, s.Times,
					s.Layout, s.Timing))
			}
		}
	}
	n.source = strings.Join(names, "; ")
}

// ofDevice reports whether many are of the device, and of the timing that is asked for.
func (n *nearTimes) ofDevice() bool {
	if n != nil {
		for _, k := range n.known {
			if k.own {
				return true
			}
		}
	}
	return false
}

// of is what the times say of a problem, of which timing they are, and whether many are of the device and the timing
// that is asked for. All are of one product, no batch or group.
func (n *nearTimes) of(p *gemm.Problem) (residual.Found, stopwatch.Timing, bool) {
	if n == nil || p.Batch != 1 || p.Groups != (gemm.Groups{}) || p.BeyondProduct() {
		return residual.Found{}, "", false
	}
	k, ok := n.known[nearby.TypesOf(p.DType)]
	if !ok {
		return residual.Found{}, "", false
	}
	q := n.problem
	q.M, q.N, q.K, q.Layout, q.Timing = p.M, p.N, p.K, n.layouts[arch.LayoutOf(p)], string(k.timing)
	found := k.pool.At(&q)
	if k.vague {
		found.Spread = 0
	}
	return found, k.timing, k.own
}
