package selector

import (
	"context"

	"github.com/origami-gemm/origami/core/gemm"
)

// memoLimit bounds the memory of a Memo: about 200 bytes per problem.
const memoLimit = 1 << 14

// Memo caches picks by problem, for callers that ask for the same shapes repeatedly. It holds up to 16,384 problems and
// discards all of them when it is full. Problems in groups are not kept: each takes kilobytes, and few come twice. Like
// a Selector, it is not safe for concurrent use.
type Memo struct {
	selector *Selector
	picks    map[gemm.Problem]Entry
	scratch  Result
}

// NewMemo returns a Memo over s. The caller must not use s afterwards.
func NewMemo(s *Selector) *Memo { return &Memo{selector: s, picks: map[gemm.Problem]Entry{}} }

// Select returns the pick for a problem. Errors are not cached.
func (m *Memo) Select(ctx context.Context, p gemm.Problem) (Entry, error) {
	if pick, ok := m.picks[p]; ok {
		return pick, nil
	}
	if err := m.selector.Select(ctx, p, &m.scratch); err != nil {
		return Entry{}, err
	}
	if p.Groups != (gemm.Groups{}) {
		return m.scratch.Entries[0], nil
	}
	if len(m.picks) >= memoLimit {
		clear(m.picks)
	}
	m.picks[p] = m.scratch.Entries[0]
	return m.scratch.Entries[0], nil
}
