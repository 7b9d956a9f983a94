package amdorigami

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/diag"
)

// mappingInput holds the inputs of the workgroup mapping.
type mappingInput struct {
	cus, xcds   uint64
	m, n, batch uint64 // problem
	bm, bn      uint64 // tile
	workgroups  uint64 // G
}

// mapped is a workgroup mapping.
type mapped struct{ chunk, xcc, wgm uint64 }

// tileGrid is the grid of output tiles of one batch entry.
type tileGrid struct {
	gm, gn, t    uint64 // tiles along M, along N, in total
	steps, split uint64 // timesteps and workgroups per tile
	perXCD       uint64 // compute units of one die
}

func (in *mappingInput) grid() tileGrid {
	g := tileGrid{gm: cdiv(in.m, in.bm), gn: cdiv(in.n, in.bn), perXCD: in.cus / in.xcds}
	g.t = g.gm * g.gn
	l := newLaunch(in.workgroups, g.t, in.cus)
	g.steps, g.split = l.timesteps, l.split
	return g
}

// jan is the mapping of January 2026. It sets the number of dies and WGM. The rules for cache hints, which a selection
// never gives, are left out here and in feb.
func (in *mappingInput) jan(ctx context.Context) (mapped, error) {
	g := in.grid()
	out := mapped{xcc: in.xcds}
	if in.batch > 1 && (g.t == 1 || g.t*in.batch <= in.xcds) || g.split%in.xcds == 0 || g.t <= in.xcds {
		out.xcc = 1
	}
	big := g.split == 1 && in.batch == 1 && g.t > 2*in.cus && g.gm > 8 && g.gn > 8
	switch {
	case g.t > in.cus && in.m > 10*in.n && g.gn <= 8:
		out.wgm = g.gn
	case out.xcc == 1 && !big, g.gm == 1, g.gn == 1, in.batch > 1:
		out.wgm = 1
	case big:
		out.wgm = ceilSqrt(g.perXCD)
	default:
		s := newSearch(in, g)
		for x := range g.steps * min(in.xcds, s.workgroups) {
			if err := s.add(ctx, x, 0, s.workgroups/in.xcds); err != nil {
				return mapped{}, err
			}
		}
		out.wgm = s.best()
	}
	return out, nil
}

// feb is the mapping of February 2026. It sets the chunk, the number of dies and WGM. Its rule for a chunk can never
// apply: the shorter side of the grid would have to exceed twelve times the longer one. The chunk therefore stays zero
// except with batches.
func (in *mappingInput) feb(ctx context.Context) (mapped, error) {
	g := in.grid()
	if in.batch > 1 {
		if g.t == 1 || g.t*in.batch <= in.xcds || g.t%in.xcds == 0 {
			return mapped{wgm: 1}, nil
		}
		return mapped{chunk: g.perXCD / g.t * g.t, xcc: in.xcds, wgm: 1}, nil
	}

	out := mapped{xcc: in.xcds}
	if g.split%in.xcds == 0 || g.t <= in.xcds {
		out.xcc = 0
	}
	switch {
	case out.xcc == 0, g.gm == 1, g.gn == 1:
		out.wgm = 1
	case g.t >= in.cus && g.gn <= 8:
		out.wgm = g.gn
	default:
		s := newSearch(in, g)
		for v := range g.steps {
			length := g.perXCD
			if rest := s.workgroups / in.xcds % g.perXCD; v == g.steps-1 && rest != 0 {
				length = rest
			}
			for x := range min(in.xcds, s.workgroups) {
				if err := s.add(ctx, x, v*g.perXCD, length); err != nil {
					return mapped{}, err
				}
			}
		}
		out.wgm = s.best()
	}
	return out, nil
}

// wgmCandidates are the values of WGM that the search tries, in its order.
var wgmCandidates = [...]uint64{1, 2, 3, 4, 5, 6, 8, 16}

// search finds the WGM whose ranges of tiles touch the smallest part of A and B.
type search struct {
	*mappingInput
	grid       tileGrid
	workgroups uint64 // of all timesteps
	slabs      [len(wgmCandidates)]slab
	// sums are the estimates. The original adds them in 32 bits, with overflow.
	sums   [len(wgmCandidates)]int32
	ranges int
}

// slab is a full-height strip of the tile grid, w tiles wide. A WGM of w walks it row by row before the next strip.
type slab struct {
	w, tiles    uint64 // requested width, tiles in a full strip
	count, edge uint64 // number of strips, width of the last one
}

func newSearch(in *mappingInput, g tileGrid) *search {
	s := &search{mappingInput: in, grid: g, workgroups: g.steps * g.split * g.t}
	for i, w := range wgmCandidates {
		count := cdiv(g.gn, w)
		s.slabs[i] = slab{w: w, tiles: g.gm * min(w, g.gn), count: count, edge: g.gn - (count-1)*w}
	}
	return s
}

// searchLimit bounds the number of ranges that a search compares. The largest real problems need a few thousand. This
// limit takes about ten seconds.
const searchLimit = 1 << 25

// add adds a range of workgroups of die x to the estimates. It has length workgroups, or one more.
func (s *search) add(ctx context.Context, x, from, length uint64) error {
	s.ranges++
	if s.ranges&0xfff == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.ranges > searchLimit {
			return diag.Inputf("the workgroup mapping of %dx%d tiles would compare more than %d ranges of tiles",
				s.grid.gm, s.grid.gn, searchLimit).Do("split the longer side of the problem")
		}
	}
	each, rest := s.workgroups/s.xcds, s.workgroups%s.xcds
	first := from + each*x + min(x, rest)
	last := first + length - 1
	if x < rest {
		last++
	}
	first, last = first/s.grid.split, last/s.grid.split
	for i := range s.slabs {
		rows, cols := s.grid.footprint(&s.slabs[i], first, last)
		s.sums[i] += int32(rows*s.bm + cols*s.bn)
	}
	return nil
}

// footprint returns the number of rows and columns of tiles that the range first to last touches. It approximates
// ranges that start or end inside a row. A range may extend past the last tile. The differences then wrap below zero,
// and the comparisons use the wrapped value, as in the original.
func (g *tileGrid) footprint(s *slab, first, last uint64) (rows, cols uint64) {
	a, b := first/s.tiles, last/s.tiles
	firstWidth, lastWidth := s.w, s.w
	if a == s.count-1 {
		firstWidth = s.edge
	}
	if b == s.count-1 {
		lastWidth = s.edge
	}
	at := first - a*s.tiles
	fromRow := at / firstWidth
	firstRows := min((at+(last-first))/firstWidth, g.gm-1) - fromRow + 1
	end := last - b*s.tiles
	toRow := end / lastWidth
	if a == b {
		rows, cols = toRow-fromRow+1, firstWidth
		if firstRows <= 2 {
			cols = min(last-first+1, firstWidth)
		}
		return rows, cols
	}

	firstCols := firstWidth
	if firstRows <= 1 {
		firstCols -= first % firstWidth // the original takes first, not its position in the strip
	}
	lastCols := lastWidth
	if toRow == 0 {
		lastCols = end%lastWidth + 1
	}
	full := b - a - 1
	rows = g.gm
	if full == 0 {
		rows = min(firstRows+toRow+1, g.gm)
	}
	return rows, firstCols + lastCols + full*s.w
}

// best returns the first candidate with the smallest estimate, or 1 if no estimate is below the largest 32-bit integer.
func (s *search) best() uint64 {
	best, least := uint64(1), int32(math.MaxInt32)
	for i, sum := range s.sums {
		if sum < least {
			best, least = wgmCandidates[i], sum
		}
	}
	return best
}
