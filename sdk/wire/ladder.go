package wire

import (
	"context"

	"github.com/origami-gemm/origami/core/ladder"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

var _ ladder.Provider = (*Client)(nil)

// Ladder implements ladder.Provider.
func (c *Client) Ladder(ctx context.Context) (*ladder.Ladder, error) {
	l, err := ask(ctx, c, "Ladder", nil, c.arch.Ladder, &pb.Json{}, fromJSON[ladder.Ladder]())
	return &l, err
}

// Ladder implements pb.ArchServiceServer.
func (s *archServer) Ladder(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	p, ok := s.provider.(ladder.Provider)
	if !ok || !s.provider.Manifest().Ladder {
		return s.UnimplementedArchServiceServer.Ladder(ctx, req)
	}
	return answered(req, func(*nothing) (l ladder.Ladder, err error) {
		found, err := p.Ladder(ctx)
		if err == nil {
			l = *found
		}
		return l, err
	})
}
