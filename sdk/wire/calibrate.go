package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Calibration asks the plugin for the microbenchmarks of a device. The plan asks it again for the numbers.
func (c *Client) Calibration(ctx context.Context, d exec.Device) (*calibrate.Plan, error) {
	var resp *pb.CalibrationResponse
	err := c.repeat(ctx, "Calibration", func() (err error) {
		resp, err = c.arch.Calibration(ctx, &pb.CalibrationRequest{Device: toDevice(d)})
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	plan, err := fromPlan(resp)
	if err != nil {
		return nil, c.nonsense("Calibration", err)
	}
	plan.Numbers = func(ctx context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
		return c.numbers(ctx, d, v)
	}
	return plan, nil
}

func (c *Client) numbers(
	ctx context.Context, d exec.Device, v calibrate.Values,
) ([]calibrate.Number, []hw.Atom, error) {
	req := &pb.CalibrationNumbersRequest{Device: toDevice(d), Values: toValues(v)}
	var resp *pb.CalibrationNumbersResponse
	err := c.repeat(ctx, "CalibrationNumbers", func() (err error) {
		resp, err = c.arch.CalibrationNumbers(ctx, req)
		return err
	}, nil)
	if err != nil {
		return nil, nil, err
	}
	numbers, atoms, err := fromNumbers(resp)
	return numbers, atoms, c.nonsense("CalibrationNumbers", err)
}

// plan returns the microbenchmarks of a device of a request. implemented: the plugin has some.
func (s *archServer) plan(ctx context.Context, q *pb.Device) (p *calibrate.Plan, implemented bool, err error) {
	planner, ok := s.provider.(calibrate.Planner)
	if !ok || !s.provider.Manifest().Calibrates {
		return nil, false, nil
	}
	var c check
	d := c.device(q)
	if c.err != nil {
		return nil, true, malformed(c.err)
	}
	if p, err = planner.Calibration(ctx, d); err != nil {
		return nil, true, toStatus(err)
	}
	return p, true, nil
}

// Calibration implements pb.ArchServiceServer.
func (s *archServer) Calibration(
	ctx context.Context, req *pb.CalibrationRequest,
) (*pb.CalibrationResponse, error) {
	p, implemented, err := s.plan(ctx, req.GetDevice())
	switch {
	case !implemented:
		return s.UnimplementedArchServiceServer.Calibration(ctx, req)
	case err != nil:
		return nil, err
	}
	return toPlan(p), nil
}

// CalibrationNumbers implements pb.ArchServiceServer.
func (s *archServer) CalibrationNumbers(
	ctx context.Context, req *pb.CalibrationNumbersRequest,
) (*pb.CalibrationNumbersResponse, error) {
	p, implemented, err := s.plan(ctx, req.GetDevice())
	switch {
	case !implemented:
		return s.UnimplementedArchServiceServer.CalibrationNumbers(ctx, req)
	case err != nil:
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
	q := &pb.CalibrationResponse{}
	var texts names
	for i := range p.Probes {
		one := &p.Probes[i]
		program := one.Program
		program.Text = ""
		q.Probes = append(q.Probes, &pb.Probe{
			Name: one.Name, Unit: one.Unit, Program: toProgram(program), Text: texts.index(one.Program.Text),
			Runs: int64(one.Runs), Work: one.Work, Value: one.Value, Clock: one.Clock, Limit: one.Limit,
		})
	}
	q.Texts = texts
	return q
}

// fromPlan returns a plan without Numbers.
func fromPlan(q *pb.CalibrationResponse) (*calibrate.Plan, error) {
	p := &calibrate.Plan{}
	var c check
	for _, one := range q.GetProbes() {
		program := c.program(one.GetProgram())
		if int(one.GetText()) >= len(q.GetTexts()) {
			return nil, fmt.Errorf("text %d of %d", one.GetText(), len(q.GetTexts()))
		}
		program.Text = q.Texts[one.GetText()]
		p.Probes = append(p.Probes, calibrate.Probe{
			Name: one.GetName(), Unit: one.GetUnit(), Program: program, Runs: c.count("the runs", one.GetRuns()),
			Work: c.positive("the work", one.GetWork()), Value: one.GetValue(), Clock: one.GetClock(),
			Limit: c.amount("the limit", one.GetLimit()),
		})
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
		q := &pb.ProbeValue{
			Probe: name, Value: one.Value, Unit: one.Unit, Spread: one.Spread, ClockHz: float64(one.Clock),
			Rounds: int64(one.Rounds), Refused: cut(one.Refused),
		}
		if !one.Time.IsZero() {
			q.TimeUnixNanoseconds = one.Time.UnixNano()
		}
		list = append(list, q)
	}
	return list
}

// fromValues takes any number of a refused probe.
func fromValues(list []*pb.ProbeValue) (calibrate.Values, error) {
	v := calibrate.Values{}
	var c check
	for _, q := range list {
		one := calibrate.Value{
			Value: q.GetValue(), Unit: q.GetUnit(), Spread: q.GetSpread(), Clock: unit.Hertz(q.GetClockHz()),
			Rounds: c.count("the rounds", q.GetRounds()), Refused: q.GetRefused(),
		}
		if one.Refused == "" {
			c.positive(q.GetProbe(), one.Value)
		}
		if q.GetTimeUnixNanoseconds() != 0 {
			one.Time = time.Unix(0, q.GetTimeUnixNanoseconds()).UTC()
		}
		v[c.named("a probe", q.GetProbe())] = one
	}
	return v, c.err
}

func toNumbers(numbers []calibrate.Number, atoms []hw.Atom) *pb.CalibrationNumbersResponse {
	q := &pb.CalibrationNumbersResponse{}
	for i := range numbers {
		n := &numbers[i]
		q.Numbers = append(q.Numbers, &pb.CalibrationNumber{
			Number: toParam(hw.Param{Name: n.Name, Number: n.Number, Tier: hw.Calibrated}), Probes: n.Probes,
			Parameter: n.Parameter,
		})
	}
	for _, a := range atoms {
		q.Atoms = append(q.Atoms, &pb.DeviceAtom{
			Type: a.Type, M: int64(a.M), N: int64(a.N), K: int64(a.K), Cycles: a.Cycles, Source: a.Source,
			Method: string(a.Method), Date: a.Date,
		})
	}
	return q
}

func fromNumbers(q *pb.CalibrationNumbersResponse) (numbers []calibrate.Number, atoms []hw.Atom, err error) {
	var c check
	for _, one := range q.GetNumbers() {
		p := c.param(one.GetNumber())
		numbers = append(numbers, calibrate.Number{
			Name: c.named("a number", p.Name), Number: p.Number, Probes: one.GetProbes(), Parameter: one.GetParameter(),
		})
	}
	for _, a := range q.GetAtoms() {
		atoms = append(atoms, hw.Atom{
			Type: c.named("an atom", a.GetType()), M: c.count("atom m", a.GetM()), N: c.count("atom n", a.GetN()),
			K: c.count("atom k", a.GetK()), Cycles: c.positive("atom latency", a.GetCycles()), Source: a.GetSource(),
			Method: hw.Method(a.GetMethod()), Date: a.GetDate(),
		})
	}
	return numbers, atoms, c.err
}
