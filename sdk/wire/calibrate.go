package wire

import (
	"context"
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
	plan, err := ask(ctx, c, "Calibration", nil, c.arch.Calibration, toJSON(&d), fromPlan)
	if err != nil {
		return nil, err
	}
	plan.Numbers = func(ctx context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
		got, err := ask(ctx, c, "CalibrationNumbers", nil, c.arch.CalibrationNumbers,
			toJSON(&measured{Device: d, Values: sendable(v)}), fromJSON[numbers]())
		return got.Numbers, got.Atoms, err
	}
	return plan, nil
}

// probes is the answer to Calibration: the microbenchmarks without the texts of their programs, each text once, and
// which of them each microbenchmark has.
type probes struct {
	Probes []calibrate.Probe
	Texts  []string
	Text   []int
}

// measured is the question of CalibrationNumbers, and numbers its answer.
type measured struct {
	Device exec.Device
	Values calibrate.Values
}

type numbers struct {
	Numbers []calibrate.Number
	Atoms   []hw.Atom
}

// plan returns the microbenchmarks of a device of a request.
func (s *archServer) plan(ctx context.Context, d exec.Device, err error) (*calibrate.Plan, error) {
	planner, ok := s.provider.(calibrate.Planner)
	if !ok || !s.provider.Manifest().Calibrates {
		return nil, status.Error(codes.Unimplemented, "this plugin has no microbenchmarks")
	}
	if err != nil {
		return nil, malformed(err)
	}
	p, err := planner.Calibration(ctx, d)
	if err != nil {
		return nil, toStatus(err)
	}
	return p, nil
}

// Calibration implements pb.ArchServiceServer.
func (s *archServer) Calibration(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	d, err := unmarshal[exec.Device](req.GetJson(), maxRequestMemory)
	p, err := s.plan(ctx, d, err)
	if err != nil {
		return nil, err
	}
	return toPlan(p), nil
}

// CalibrationNumbers implements pb.ArchServiceServer.
func (s *archServer) CalibrationNumbers(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	m, err := unmarshal(req.GetJson(), maxRequestMemory, (*measured).check)
	p, err := s.plan(ctx, m.Device, err)
	if err != nil {
		return nil, err
	}
	var n numbers
	if n.Numbers, n.Atoms, err = p.Numbers(ctx, m.Values); err != nil {
		return nil, toStatus(err)
	}
	return toJSON(&n), nil
}

func toPlan(p *calibrate.Plan) *pb.Json {
	q := probes{Probes: slices.Clone(p.Probes)}
	var texts names
	for i := range q.Probes {
		q.Text = append(q.Text, int(texts.index(q.Probes[i].Program.Text)))
		q.Probes[i].Program.Text = ""
	}
	q.Texts = texts
	return toJSON(&q)
}

// fromPlan returns a plan without Numbers.
func fromPlan(q *pb.Json) (*calibrate.Plan, error) {
	got, err := fromJSON[probes]()(q)
	if err != nil {
		return nil, err
	}
	if len(got.Probes) == 0 || len(got.Text) != len(got.Probes) {
		return nil, fmt.Errorf("%d microbenchmarks with %d texts", len(got.Probes), len(got.Text))
	}
	for i, text := range got.Text {
		if text >= len(got.Texts) {
			return nil, fmt.Errorf("text %d of %d", text, len(got.Texts))
		}
		got.Probes[i].Program.Text = got.Texts[text]
	}
	p := &calibrate.Plan{Probes: got.Probes}
	return p, p.Check()
}

// sendable has no reason that is too long, and no number of a refused probe that JSON does not have.
func sendable(v calibrate.Values) calibrate.Values {
	v = maps.Clone(v)
	for name, one := range v {
		one.Value, one.Spread, one.Clock = exec.Finite(one.Value), exec.Finite(one.Spread), exec.Finite(one.Clock)
		one.Refused = cut(one.Refused)
		v[name] = one
	}
	return v
}

// check takes any number of a refused probe.
func (m *measured) check() error {
	for _, name := range slices.Sorted(maps.Keys(m.Values)) {
		if one := m.Values[name]; one.Refused == "" && positive.admits(one.Value) != nil {
			return fmt.Errorf("%s: %w", name, positive.admits(one.Value))
		}
	}
	return nil
}
