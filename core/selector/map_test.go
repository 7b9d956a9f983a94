package selector

import (
	"context"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// mapped is an architecture with ten candidates. The last is the fastest. It counts the calls of Mapping.
type mapped struct {
	arch.Architecture
	calls int
}

func (*mapped) Describe() *arch.Description { return &arch.Description{Arch: "test", Device: "test"} }

func (*mapped) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	c := &arch.Candidates{}
	for i := range 10 {
		c.Configs = append(c.Configs, gemm.Config{BlockM: 16 * (i + 1), BlockN: 16, BlockK: 16})
	}
	return c, nil
}

func (*mapped) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, _ []gemm.Config) error {
	for i := range dst {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(100 - i)}
	}
	return nil
}

func (m *mapped) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	m.calls++
	return arch.Mapping{GroupM: 7}, nil
}

// A ranking maps the requested number of entries, best first, regardless of earlier rankings.
func TestMap(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ top, toMap, want int }{
		{0, 0, 10}, {0, 1, 1}, {3, 0, 3}, {3, 2, 2}, {3, 5, 3}, {1, 1, 1},
	} {
		m := &mapped{}
		s := New(m, arch.Space{})
		var result Result
		must.Do(t, s.Rank(ctx, gemm.New(64, 64, 64), 0, &result))
		m.calls, s.Map = 0, c.toMap
		must.Do(t, s.Rank(ctx, gemm.New(64, 64, 64), c.top, &result))
		viaRequest := must.Get(Rank(ctx, m,
			Request{Problems: []gemm.Problem{gemm.New(64, 64, 64)}, Top: c.top, Map: c.toMap}))(t)
		must.Equal(t, m.calls, 2*c.want, c.top, c.toMap, c.want)
		for i, e := range result.Entries {
			want := 0
			if i < c.want {
				want = 7
			}
			must.That(t, e.Config.GroupM == want && e.Mapping.GroupM == want && e.Config.BlockM == 16*(10-i),
				"top %d, map %d: entry %d is %v with mapping %v, want group %d", c.top, c.toMap, i, e.Config, e.Mapping, want)
			must.Equal(t, e, viaRequest[0].Entries[i], i)
		}
	}
}
