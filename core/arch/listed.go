package arch

import (
	"context"

	"github.com/origami-gemm/origami/core/gemm"
)

// WithCandidates returns an architecture whose candidates are a list. Estimate says which of them cannot be used. A
// configuration whose launch order is listed keeps it.
func WithCandidates(a Architecture, list []gemm.Config) Architecture { return &listed{a, list} }

// listed has no Rank method, so that rankings are made from Candidates on this side of the plugin boundary.
type listed struct {
	Architecture
	list []gemm.Config
}

// Candidates implements Architecture.
func (l *listed) Candidates(context.Context, gemm.Problem, Space) (*Candidates, error) {
	return &Candidates{Configs: l.list}, nil
}

// Mapping implements Architecture.
func (l *listed) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (Mapping, error) {
	if c.GroupM != 0 {
		return Mapping{GroupM: c.GroupM}, nil
	}
	return l.Architecture.Mapping(ctx, p, c)
}
