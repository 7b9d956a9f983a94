package wire

import (
	"context"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

var _ ladder.Provider = (*Client)(nil)

// Ladder implements ladder.Provider.
func (c *Client) Ladder(ctx context.Context) (*ladder.Ladder, error) {
	var resp *pb.LadderResponse
	err := c.repeat(ctx, "Ladder", func() (err error) {
		resp, err = c.arch.Ladder(ctx, &pb.LadderRequest{})
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	l, err := fromLadder(resp)
	return l, c.nonsense("Ladder", err)
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
	return toLadder(l), nil
}

func toLadder(l *ladder.Ladder) *pb.LadderResponse {
	q := &pb.LadderResponse{Family: l.Family, Types: toTypes(l.Types), Device: l.Device}
	for _, r := range l.Rungs {
		q.Rungs = append(q.Rungs, &pb.LadderRung{Name: r.Name, Doc: r.Doc, Config: ConfigMessage(r.Config)})
	}
	for _, c := range l.Claims {
		q.Claims = append(q.Claims, &pb.LadderClaim{Rung: c.Rung, Text: c.Text, Over: c.Over, Least: c.Least, Cost: c.Cost,
			LostIf: c.LostIf, Lost: c.Lost})
	}
	for _, c := range l.Costs {
		q.Costs = append(q.Costs, &pb.LadderCost{Name: c.Name, Term: c.Term, Whole: c.Whole})
	}
	for _, t := range l.Published {
		one := &pb.LadderTime{Device: t.Device, Size: int64(t.Size), Rung: t.Rung, Stage: t.Stage,
			FlopsPerSecond: float64(t.Rate), Source: t.Source}
		if t.Config != (gemm.Config{}) {
			one.Config = ConfigMessage(t.Config)
		}
		q.Published = append(q.Published, one)
	}
	return q
}

func fromLadder(q *pb.LadderResponse) (*ladder.Ladder, error) {
	var c check
	l := &ladder.Ladder{Family: c.named("a kernel family", q.GetFamily()), Types: c.types(q.GetFamily(), q.GetTypes()),
		Device: c.named("a device", q.GetDevice())}
	for _, r := range q.GetRungs() {
		config, err := fromConfig(r.GetConfig())
		if err != nil {
			c.fail("rung %s: %v", r.GetName(), err)
		}
		l.Rungs = append(l.Rungs, ladder.Rung{Name: c.named("a rung", r.GetName()), Doc: r.GetDoc(), Config: config})
	}
	for _, one := range q.GetClaims() {
		l.Claims = append(l.Claims, ladder.Claim{Rung: c.named("a rung", one.GetRung()), Text: one.GetText(),
			Over: one.GetOver(), Least: c.amount("a gain", one.GetLeast()), Cost: one.GetCost(),
			LostIf: one.GetLostIf(), Lost: one.GetLost()})
	}
	for _, one := range q.GetCosts() {
		l.Costs = append(l.Costs, ladder.Cost{Name: c.named("a cost", one.GetName()),
			Term: c.named("the term of "+one.GetName(), one.GetTerm()), Whole: one.GetWhole()})
	}
	for _, t := range q.GetPublished() {
		one := ladder.Time{Device: t.GetDevice(), Size: c.count("a size", t.GetSize()), Rung: c.named("a rung", t.GetRung()),
			Stage: t.GetStage(), Rate: unit.FlopsPerSecond(c.positive("a rate", t.GetFlopsPerSecond())), Source: t.GetSource()}
		if t.Config != nil {
			var err error
			if one.Config, err = fromConfig(t.Config); err != nil {
				c.fail("the published %s: %v", one.Rung, err)
			}
		}
		l.Published = append(l.Published, one)
	}
	return l, c.err
}
