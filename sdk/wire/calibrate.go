package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Calibration asks the plugin for the microbenchmarks of a device. The plan asks it again for the numbers.
func (c *Client) Calibration(ctx context.Context, d exec.Device) (*calibrate.Plan, error) {
	device := encodeDevice(&d)
	plan, err := ask(ctx, c, "Calibration", nil, c.arch.Calibration, &pb.CalibrationRequest{Device: device}, fromPlan)
	if err != nil {
		return nil, err
	}
	plan.Numbers = func(ctx context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
		got, err := ask(ctx, c, "CalibrationNumbers", nil, c.arch.CalibrationNumbers,
			&pb.CalibrationNumbersRequest{Device: device, Values: toValues(v)}, fromNumbers)
		return got.numbers, got.atoms, err
	}
	return plan, nil
}

type measured struct {
	numbers []calibrate.Number
	atoms   []hw.Atom
}

// plan returns the microbenchmarks of a device of a request.
func (s *archServer) plan(ctx context.Context, q *pb.Device) (*calibrate.Plan, error) {
	planner, ok := s.provider.(calibrate.Planner)
	if !ok || !s.provider.Manifest().Calibrates {
		return nil, status.Error(codes.Unimplemented, "this plugin has no microbenchmarks")
	}
	var c check
	d := c.decodeDevice(q)
	if c.err != nil {
		return nil, malformed(c.err)
	}
	p, err := planner.Calibration(ctx, d)
	if err != nil {
		return nil, toStatus(err)
	}
	return p, nil
}

// Calibration implements pb.ArchServiceServer.
func (s *archServer) Calibration(
	ctx context.Context, req *pb.CalibrationRequest,
) (*pb.CalibrationResponse, error) {
	p, err := s.plan(ctx, req.GetDevice())
	if err != nil {
		return nil, err
	}
	return toPlan(p), nil
}

// CalibrationNumbers implements pb.ArchServiceServer.
func (s *archServer) CalibrationNumbers(
	ctx context.Context, req *pb.CalibrationNumbersRequest,
) (*pb.CalibrationNumbersResponse, error) {
	p, err := s.plan(ctx, req.GetDevice())
	if err != nil {
		return nil, err
	}
	v, err := fromValues(req.GetValues())
	if err != nil {
		return nil, malformed(err)
	}
	numbers, atoms, err := p.Numbers(ctx, v)
	if err != nil {
		return nil, toStatus(err)
	}
	return toNumbers(numbers, atoms), nil
}

func toPlan(p *calibrate.Plan) *pb.CalibrationResponse {
	q := &pb.CalibrationResponse{Probes: each(p.Probes, encodeProbe)}
	var texts names
	for _, one := range q.Probes {
		one.Text = texts.index(one.Program.Text)
		one.Program.Text = ""
	}
	q.Texts = texts
	return q
}

// fromPlan returns a plan without Numbers.
func fromPlan(q *pb.CalibrationResponse) (*calibrate.Plan, error) {
	var c check
	p := &calibrate.Plan{Probes: all(q.GetProbes(), c.decodeProbe)}
	for i, one := range q.GetProbes() {
		if int(one.GetText()) >= len(q.GetTexts()) {
			return nil, fmt.Errorf("text %d of %d", one.GetText(), len(q.GetTexts()))
		}
		p.Probes[i].Program.Text = q.Texts[one.GetText()]
	}
	if c.err == nil && len(p.Probes) == 0 {
		c.err = errors.New("no microbenchmarks")
	}
	if c.err == nil {
		c.err = p.Check()
	}
	return p, c.err
}

func toValues(v calibrate.Values) (list []*pb.ProbeValue) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		one := v[name]
		q := encodeProbeValue(&one)
		q.Probe, q.Refused = name, cut(one.Refused)
		list = append(list, q)
	}
	return list
}

// fromValues takes any number of a refused probe.
func fromValues(list []*pb.ProbeValue) (calibrate.Values, error) {
	v := calibrate.Values{}
	var c check
	for _, q := range list {
		one := c.decodeProbeValue(q)
		if one.Refused == "" {
			c.positive(q.GetProbe(), one.Value)
		}
		v[c.named("a probe", q.GetProbe())] = one
	}
	return v, c.err
}

func toNumbers(numbers []calibrate.Number, atoms []hw.Atom) *pb.CalibrationNumbersResponse {
	return &pb.CalibrationNumbersResponse{Atoms: each(atoms, encodeDeviceAtom),
		Numbers: each(numbers, func(n *calibrate.Number) *pb.CalibrationNumber {
			p := hw.Param{Name: n.Name, Number: n.Number, Tier: hw.Calibrated}
			return &pb.CalibrationNumber{Number: encodeParam(&p), Probes: n.Probes, Parameter: n.Parameter}
		})}
}

func fromNumbers(q *pb.CalibrationNumbersResponse) (measured, error) {
	var c check
	return measured{all(q.GetNumbers(), func(q *pb.CalibrationNumber) calibrate.Number {
		p := c.decodeParam(q.GetNumber())
		return calibrate.Number{Name: c.named("a number", p.Name), Number: p.Number, Probes: q.GetProbes(),
			Parameter: q.GetParameter()}
	}), all(q.GetAtoms(), c.decodeDeviceAtom)}, c.err
}
