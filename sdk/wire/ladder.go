package wire

import (
	"context"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

var _ ladder.Provider = (*Client)(nil)

// Ladder implements ladder.Provider.
func (c *Client) Ladder(ctx context.Context) (*ladder.Ladder, error) {
	return ask(ctx, c, "Ladder", nil, c.arch.Ladder, &pb.LadderRequest{}, fromLadder)
}

// Ladder implements pb.ArchServiceServer.
func (s *archServer) Ladder(ctx context.Context, req *pb.LadderRequest) (*pb.LadderResponse, error) {
	p, ok := s.provider.(ladder.Provider)
	if !ok || !s.provider.Manifest().Ladder {
		return s.UnimplementedArchServiceServer.Ladder(ctx, req)
	}
	l, err := p.Ladder(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return encodeLadderResponse(l), nil
}

func fromLadder(q *pb.LadderResponse) (*ladder.Ladder, error) {
	var c check
	l := c.decodeLadderResponse(q)
	return &l, c.err
}

func (c *check) checkLadderRung(r *ladder.Rung) {
	if r.Config == (gemm.Config{}) {
		c.fail("it has no configuration")
	}
}
