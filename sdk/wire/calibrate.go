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
	probes, err := ask(ctx, c, "Calibration", nil, c.arch.Calibration, toJSON(&d), fromJSON(checkProbes))
	if err != nil {
		return nil, err
	}
	numbersOf := func(ctx context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
		got, err := ask(ctx, c, "CalibrationNumbers", nil, c.arch.CalibrationNumbers,
			toJSON(&measured{Device: d, Values: sendable(v)}), fromJSON[numbers]())
		return got.Numbers, got.Atoms, err
	}
	return &calibrate.Plan{Probes: probes, Numbers: numbersOf}, nil
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

// plan returns the microbenchmarks of a device.
func (s *archServer) plan(ctx context.Context, d exec.Device) (*calibrate.Plan, error) {
	planner, ok := s.provider.(calibrate.Planner)
	if !ok || !s.provider.Manifest().Calibrates {
		return nil, status.Error(codes.Unimplemented, "this plugin has no microbenchmarks")
	}
	return planner.Calibration(ctx, d)
}

// Calibration implements pb.ArchServiceServer.
func (s *archServer) Calibration(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	return answered(req, func(d *exec.Device) ([]calibrate.Probe, error) {
		p, err := s.plan(ctx, *d)
		if err != nil {
			return nil, err
		}
		return p.Probes, nil
	})
}

// CalibrationNumbers implements pb.ArchServiceServer.
func (s *archServer) CalibrationNumbers(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	return answered(req, func(m *measured) (n numbers, err error) {
		if err := m.check(); err != nil {
			return n, malformed(err)
		}
		p, err := s.plan(ctx, m.Device)
		if err == nil {
			n.Numbers, n.Atoms, err = p.Numbers(ctx, m.Values)
		}
		return n, err
	})
}

// checkProbes returns what is wrong with microbenchmarks.
func checkProbes(list *[]calibrate.Probe) error {
	if len(*list) == 0 {
		return errors.New("no microbenchmarks")
	}
	return (&calibrate.Plan{Probes: *list}).Check()
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
