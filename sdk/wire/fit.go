package wire

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

var _ fit.Tunable = (*Architecture)(nil)

// timesPerCall is how many times a call of EstimateWith asks for, if it has more than one set of values. Such a call
// takes a fraction of a second.
const timesPerCall = 1 << 16

// EstimateWith implements fit.Tunable. One call carries many sets of values, and the kernels of all problems travel
// once.
func (a *Architecture) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	req := &pb.EstimateWithRequest{Handle: a.opened.Handle}
	var cfgs []gemm.Config
	for _, k := range sample {
		req.Problems = append(req.Problems, toProblem(k.Problem))
		req.Counts = append(req.Counts, int64(len(k.Configs)))
		cfgs = append(cfgs, k.Configs...)
	}
	inUse := map[string]float64{}
	for _, c := range a.desc.Constants {
		inUse[c.Name] = c.Value
	}
	changed := map[string]bool{}
	for _, set := range values {
		for name := range set {
			if _, ok := inUse[name]; !ok {
				return nil, diag.Inputf("the %s model of %s has no constant %q", a.desc.Model, a.desc.ID(), name)
			}
			changed[name] = true
		}
	}
	req.Constants = slices.Sorted(maps.Keys(changed))
	rows := make([][]unit.Seconds, 0, len(values))
	for most := max(1, timesPerCall/max(1, len(cfgs))); len(values) > 0; {
		sets := values[:min(most, len(values))]
		values = values[len(sets):]
		req.Sets, req.Values = int64(len(sets)), req.Values[:0]
		for _, set := range sets {
			for _, name := range req.Constants {
				v, ok := set[name]
				if !ok {
					v = inUse[name]
				}
				req.Values = append(req.Values, v)
			}
		}
		resp, err := withList(ctx, a, "EstimateWith", cfgs, func(set *pb.ConfigSet) (*pb.EstimateWithResponse, error) {
			req.Configs = set
			return a.client.arch.EstimateWith(ctx, req)
		})
		if err != nil {
			return nil, err
		}
		some, err := fromTimes(resp, len(sets), len(cfgs))
		if err != nil {
			return nil, a.client.nonsense("EstimateWith", err)
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// EstimateWith implements pb.ArchServiceServer.
func (s *archServer) EstimateWith(
	ctx context.Context, req *pb.EstimateWithRequest,
) (*pb.EstimateWithResponse, error) {
	o, err := s.find(ctx, req.GetHandle())
	if err != nil {
		return nil, err
	}
	m, ok := o.arch.(fit.Tunable)
	if !ok {
		return s.UnimplementedArchServiceServer.EstimateWith(ctx, req)
	}
	cfgs, err := s.list(req.GetConfigs())
	if err != nil {
		return nil, err
	}
	values, sample, err := fromEstimateWithRequest(req, cfgs)
	if err != nil {
		return nil, malformed(err)
	}
	rows, err := m.EstimateWith(ctx, values, sample)
	if err != nil {
		return nil, toStatus(err)
	}
	return toTimes(rows, len(cfgs)), nil
}

// fromEstimateWithRequest returns the sets of values, and the kernels of each problem.
func fromEstimateWithRequest(
	q *pb.EstimateWithRequest, cfgs []gemm.Config,
) (values []map[string]float64, sample []fit.Kernels, err error) {
	names, sets := q.GetConstants(), q.GetSets()
	if len(q.GetCounts()) != len(q.GetProblems()) {
		return nil, nil, fmt.Errorf("%d problems with %d counts", len(q.GetProblems()), len(q.GetCounts()))
	}
	// The first comparison keeps the product small.
	if sets < 1 || sets > valuesPerCall || int64(len(q.GetValues())) != sets*int64(len(names)) ||
		sets > 1 && sets*int64(len(cfgs)) > valuesPerCall {
		return nil, nil, fmt.Errorf("%d sets of values of %d constants with %d values, for %d kernels", sets, len(names),
			len(q.GetValues()), len(cfgs))
	}
	var c check
	for row := range int(sets) {
		set := make(map[string]float64, len(names))
		for i, name := range names {
			set[name] = c.number(name, q.Values[row*len(names)+i], finite)
		}
		values = append(values, set)
	}
	for i, count := range q.GetCounts() {
		p, err := fromProblem(q.Problems[i])
		if err != nil {
			return nil, nil, err
		}
		if count < 0 || count > int64(len(cfgs)) {
			return nil, nil, fmt.Errorf("%d of %d kernels for problem %d", count, len(cfgs), i)
		}
		sample = append(sample, fit.Kernels{Problem: p, Configs: cfgs[:count]})
		cfgs = cfgs[count:]
	}
	if len(cfgs) > 0 {
		c.fail("%d kernels without a problem", len(cfgs))
	}
	return values, sample, c.err
}

func toTimes(rows [][]unit.Seconds, kernels int) *pb.EstimateWithResponse {
	q := &pb.EstimateWithResponse{Seconds: make([]float64, 0, len(rows)*kernels)}
	for _, row := range rows {
		for _, t := range row {
			q.Seconds = append(q.Seconds, float64(t))
		}
	}
	return q
}

func fromTimes(q *pb.EstimateWithResponse, sets, kernels int) ([][]unit.Seconds, error) {
	if len(q.GetSeconds()) != sets*kernels {
		return nil, fmt.Errorf("%d times of %d kernels under %d sets of values", len(q.GetSeconds()), kernels, sets)
	}
	var c check
	rows := make([][]unit.Seconds, sets)
	for i := range rows {
		rows[i] = make([]unit.Seconds, kernels)
		for j := range rows[i] {
			rows[i][j] = unit.Seconds(c.number("a time", q.Seconds[i*kernels+j], amount))
		}
	}
	return rows, c.err
}
