package wire

import (
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toCandidates(c *arch.Candidates) *pb.CandidatesResponse {
	q := &pb.CandidatesResponse{Configs: toConfigs(c.Configs)}
	rejected := make([]gemm.Config, len(c.Rejected))
	var reasons names
	for i, r := range c.Rejected {
		rejected[i] = r.Config
		q.Positions = append(q.Positions, int64(r.Position))
		q.Reasons = append(q.Reasons, reasons.index(string(r.Reason)))
		q.Details = append(q.Details, r.Detail)
	}
	q.Rejected, q.ReasonNames = toConfigs(rejected), reasons
	return q
}

// fromCandidates converts the answer for a space of a kernel family; empty means any that the model predicts.
func fromCandidates(q *pb.CandidatesResponse, kernel string, d *arch.Description) (*arch.Candidates, error) {
	configs, err := fromAnswered(q.GetConfigs(), kernel, d)
	if err != nil {
		return nil, err
	}
	rejected, err := fromAnswered(q.GetRejected(), kernel, d)
	if err != nil {
		return nil, fmt.Errorf("rejected %w", err)
	}
	n := len(rejected)
	if len(q.GetPositions()) != n || len(q.GetReasons()) != n || len(q.GetDetails()) != n {
		return nil, fmt.Errorf("%d rejected configurations with %d positions, %d reasons and %d details",
			n, len(q.GetPositions()), len(q.GetReasons()), len(q.GetDetails()))
	}
	for i := range configs {
		if err := d.CheckConfig(&configs[i]); err != nil {
			return nil, err
		}
	}
	if n+len(configs) > arch.MaxSpace {
		return nil, fmt.Errorf("%d configurations, where %d are the most", n+len(configs), arch.MaxSpace)
	}
	c := &arch.Candidates{Configs: configs, Rejected: slices.Grow([]arch.Rejection(nil), n)}
	previous := -1
	for i := range rejected {
		r := arch.Rejection{Config: rejected[i], Position: int(q.Positions[i]), Detail: q.Details[i]}
		if r.Reason, err = fromReason(q.ReasonNames, q.Reasons[i]); err != nil {
			return nil, err
		}
		if r.Position <= previous || r.Position >= n+len(configs) {
			return nil, fmt.Errorf("rejected configuration %d has position %d after %d, of %d", i, r.Position, previous,
				n+len(configs))
		}
		previous = r.Position
		c.Rejected = append(c.Rejected, r)
	}
	return c, nil
}

func fromReason(names []string, index uint32) (arch.Reason, error) {
	if int(index) >= len(names) || names[index] == "" {
		return "", fmt.Errorf("reason index %d of %d names, or an empty name", index, len(names))
	}
	return arch.Reason(names[index]), nil
}

func toEstimates(est []arch.Estimate) *pb.EstimateResponse {
	q := &pb.EstimateResponse{Cycles: make([]float64, len(est)), Bounds: make([]byte, len(est))}
	var reasons names
	for i := range est {
		q.Cycles[i], q.Bounds[i] = float64(est[i].Cycles), byte(est[i].Bound)
		q.Spreads = withSpread(q.Spreads, i, len(est), est[i].Spread)
		if est[i].Reject != "" {
			q.Rejected = append(q.Rejected, uint32(i))
			q.Reasons = append(q.Reasons, reasons.index(string(est[i].Reject)))
		}
	}
	q.ReasonNames = reasons
	return q
}

// withSpread enters a spread into a column of n, which is nil while all are 0.
func withSpread(column []float32, at, n int, spread float32) []float32 {
	if column == nil && spread != 0 {
		column = make([]float32, n)
	}
	if column != nil {
		column[at] = spread
	}
	return column
}

// fromSpreads reads a column of n spreads: 0 for each if there is none.
func fromSpreads(column []float32, n int, spread func(i int) *float32) error {
	if len(column) == 0 {
		return nil
	}
	if len(column) != n {
		return fmt.Errorf("%d spreads for %d configurations", len(column), n)
	}
	for i, v := range column {
		if !(v >= 0 && v <= math.MaxFloat32) {
			return fmt.Errorf("configuration %d has a spread of %v", i, v)
		}
		*spread(i) = v
	}
	return nil
}

// fromEstimates fills dst, whose length is what the answer must have.
func fromEstimates(dst []arch.Estimate, q *pb.EstimateResponse) error {
	if len(q.GetCycles()) != len(dst) || len(q.GetBounds()) != len(dst) || len(q.GetRejected()) != len(q.GetReasons()) {
		return fmt.Errorf("%d totals, %d bounds, %d rejections and %d reasons for %d configurations",
			len(q.GetCycles()), len(q.GetBounds()), len(q.GetRejected()), len(q.GetReasons()), len(dst))
	}
	for i := range dst {
		bound, err := fromBound(q.Bounds[i])
		if err != nil {
			return err
		}
		dst[i] = arch.Estimate{Cycles: unit.Cycles(q.Cycles[i]), Bound: bound}
	}
	if err := fromSpreads(q.GetSpreads(), len(dst), func(i int) *float32 { return &dst[i].Spread }); err != nil {
		return err
	}
	for i, index := range q.Rejected {
		if int(index) >= len(dst) {
			return fmt.Errorf("rejection index %d of %d configurations", index, len(dst))
		}
		reason, err := fromReason(q.ReasonNames, q.Reasons[i])
		if err != nil {
			return err
		}
		dst[index].Reject = reason
	}
	for i := range dst {
		e := &dst[i]
		if e.Reject == "" {
			if err := checkTotal(e.Cycles); err != nil {
				return fmt.Errorf("configuration %d: %w", i, err)
			}
		} else if e.Cycles != 0 {
			return fmt.Errorf("configuration %d is rejected (%s) and has a total of %v cycles", i, e.Reject, float64(e.Cycles))
		}
	}
	return nil
}

// totalError is a total that is no prediction.
type totalError struct{ total unit.Cycles }

func (e *totalError) Error() string { return fmt.Sprintf("a total of %v cycles", float64(e.total)) }

func checkTotal(c unit.Cycles) error {
	if !arch.IsTotal(c) {
		return &totalError{c}
	}
	return nil
}

func fromBound(b byte) (arch.Bound, error) {
	if int(b) >= arch.NumBounds {
		return 0, fmt.Errorf("unknown bound %d", b)
	}
	return arch.Bound(b), nil
}

func toRanking(r *selector.Result) *pb.Ranking {
	n := len(r.Entries)
	q := &pb.Ranking{
		Index: make([]int64, n), Cycles: make([]float64, n), Bounds: make([]byte, n),
		Feasible: int64(r.Feasible),
	}
	configs := make([]gemm.Config, n)
	dies := false
	for i := range r.Entries {
		e := &r.Entries[i]
		configs[i], q.Index[i], q.Cycles[i], q.Bounds[i] = e.Config, int64(e.Index), float64(e.Estimate.Cycles),
			byte(e.Estimate.Bound)
		q.Spreads = withSpread(q.Spreads, i, n, e.Estimate.Spread)
		dies = dies || e.Mapping.XCDs != 0 || e.Mapping.Chunk != 0
	}
	q.Configs = toConfigs(configs)
	if dies {
		q.Xcds, q.Chunk = make([]int64, n), make([]int64, n)
		for i := range r.Entries {
			q.Xcds[i], q.Chunk[i] = int64(r.Entries[i].Mapping.XCDs), int64(r.Entries[i].Mapping.Chunk)
		}
	}
	for _, c := range r.Rejected {
		q.Rejected = append(q.Rejected, &pb.ReasonCount{Reason: string(c.Reason), Count: int64(c.Count)})
	}
	if r.Err != nil {
		q.Error = toDiagnostic(r.Err)
	}
	return q
}

// fromRanking converts the answer for one problem of a request for the best `top` entries of a kernel family; empty
// means any that the model predicts.
func fromRanking(q *pb.Ranking, top int, kernel string, d *arch.Description) (selector.Result, error) {
	r := selector.Result{Feasible: int(q.GetFeasible())}
	configs, err := fromAnswered(q.GetConfigs(), kernel, d)
	if err != nil {
		return r, err
	}
	n := len(configs)
	if len(q.GetIndex()) != n || len(q.GetCycles()) != n || len(q.GetBounds()) != n ||
		len(q.GetXcds()) != len(q.GetChunk()) || len(q.GetXcds()) != 0 && len(q.GetXcds()) != n {
		return r, fmt.Errorf("a ranking of %d configurations with %d indices, %d totals, %d bounds, %d and %d die mappings",
			n, len(q.GetIndex()), len(q.GetCycles()), len(q.GetBounds()), len(q.GetXcds()), len(q.GetChunk()))
	}
	if r.Feasible < 0 {
		return r, fmt.Errorf("%d feasible configurations", r.Feasible)
	}
	if q.GetError() != nil {
		r.Err = fromDiagnostic(q.Error)
	} else {
		want := r.Feasible
		if top > 0 {
			want = min(want, top)
		}
		if n != want || n == 0 {
			return r, fmt.Errorf("a ranking of %d configurations, of %d feasible, where %d are expected", n, r.Feasible, want)
		}
	}
	r.Entries = slices.Grow(r.Entries, n)
	for i := range configs {
		e := selector.Entry{Index: int(q.Index[i]), Config: configs[i]}
		e.Mapping.GroupM = configs[i].GroupM
		if len(q.Xcds) != 0 {
			var c check
			e.Mapping.XCDs, e.Mapping.Chunk = c.count("XCDs", q.Xcds[i]), c.count("chunk", q.Chunk[i])
			if c.err != nil {
				return r, fmt.Errorf("rank %d: %w", i+1, c.err)
			}
		}
		if e.Index < 0 {
			return r, fmt.Errorf("candidate index %d", e.Index)
		}
		if err := d.CheckConfig(&configs[i]); err != nil {
			return r, err
		}
		e.Estimate.Cycles = unit.Cycles(q.Cycles[i])
		if err := checkTotal(e.Estimate.Cycles); err != nil {
			return r, fmt.Errorf("rank %d: %w", i+1, err)
		}
		if e.Estimate.Bound, err = fromBound(q.Bounds[i]); err != nil {
			return r, err
		}
		r.Entries = append(r.Entries, e)
	}
	if err := fromSpreads(q.GetSpreads(), n, func(i int) *float32 { return &r.Entries[i].Estimate.Spread }); err != nil {
		return r, err
	}
	for _, c := range q.GetRejected() {
		if c.GetReason() == "" || c.GetCount() < 1 {
			return r, fmt.Errorf("%d candidates rejected for the reason %q", c.GetCount(), c.GetReason())
		}
		r.Rejected = append(r.Rejected, selector.ReasonCount{Reason: arch.Reason(c.Reason), Count: int(c.Count)})
	}
	return r, nil
}

func fromMapping(q *pb.MappingResponse) (arch.Mapping, error) {
	var c check
	return arch.Mapping{GroupM: c.count("the group", q.GetGroupM()), XCDs: c.count("XCDs", q.GetXcds()),
		Chunk: c.count("chunk", q.GetChunk())}, c.err
}
