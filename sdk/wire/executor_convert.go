package wire

import (
	"errors"
	"fmt"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toNumerics(n exec.Numerics) *pb.CheckResponse {
	return &pb.CheckResponse{MaxError: n.MaxError, Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong,
		OutOfBounds: n.OutOfBounds, Reference: valid(n.Reference)}
}

// fromNumerics admits an infinite error, which stands for a result that is not a number.
func fromNumerics(q *pb.CheckResponse) (exec.Numerics, error) {
	n := exec.Numerics{MaxError: q.GetMaxError(), Tolerance: q.GetTolerance(), Checked: q.GetChecked(),
		Wrong: q.GetWrong(), OutOfBounds: q.GetOutOfBounds(), Reference: q.GetReference()}
	var c check
	if n == (exec.Numerics{}) {
		c.fail("no numerics")
	}
	if !(n.MaxError >= 0) {
		c.fail("the largest error is %v", n.MaxError)
	}
	c.number("the tolerance", n.Tolerance, amount)
	if min(n.Checked, n.Wrong, n.OutOfBounds) < 0 || n.Wrong > n.Checked {
		c.fail("%d of %d elements are wrong, and %d bytes out of bounds", n.Wrong, n.Checked, n.OutOfBounds)
	}
	return n, c.err
}

// maxRuns bounds the runs of one call.
const maxRuns = 1 << 16

func toMeasureRequest(kernel uint64, o exec.MeasureOptions, runs int) *pb.MeasureRequest {
	return &pb.MeasureRequest{Kernel: kernel, WarmL2: o.WarmL2, Input: valid(o.Input), Warmup: int64(o.Warmup),
		Runs: int64(runs)}
}

func fromMeasureRequest(q *pb.MeasureRequest) (o exec.MeasureOptions, runs int, err error) {
	var c check
	if q.GetRuns() < 1 || q.GetRuns() > maxRuns {
		c.fail("%d runs", q.GetRuns())
	}
	return exec.MeasureOptions{WarmL2: q.GetWarmL2(), Input: q.GetInput(), Warmup: c.count("the warm-up", q.GetWarmup())},
		int(q.GetRuns()), c.err
}

func toSamples(samples []exec.Sample) *pb.MeasureResponse {
	q := &pb.MeasureResponse{TimesSeconds: make([]float64, len(samples)), ClocksHz: make([]float64, len(samples))}
	for i, s := range samples {
		q.TimesSeconds[i], q.ClocksHz[i] = float64(s.Time), float64(s.Clock)
	}
	return q
}

// timed are the times and clocks of runs.
type timed interface {
	GetTimesSeconds() []float64
	GetClocksHz() []float64
}

func fromSamples(q timed, runs int) ([]exec.Sample, error) {
	times, clocks := q.GetTimesSeconds(), q.GetClocksHz()
	if len(times) != runs || len(clocks) != runs {
		return nil, fmt.Errorf("%d times and %d clocks for %d runs", len(times), len(clocks), runs)
	}
	var c check
	samples := make([]exec.Sample, runs)
	for i := range samples {
		samples[i] = exec.Sample{Time: unit.Seconds(c.number("a time", times[i], positive)),
			Clock: unit.Hertz(c.number("a clock", clocks[i], amount))}
	}
	return samples, c.err
}

func fromRunRequest(req *pb.RunRequest) (p exec.Program, runs int, err error) {
	var c check
	if req.GetRuns() < 1 || req.GetRuns() > maxRuns {
		c.fail("%d runs", req.GetRuns())
	}
	p, err = unmarshal[exec.Program](req.GetProgramJson(), maxRequestMemory)
	return p, int(req.GetRuns()), errors.Join(c.err, err)
}

func toReadings(readings []exec.Reading) *pb.RunResponse {
	q := &pb.RunResponse{}
	for _, r := range readings {
		q.TimesSeconds, q.ClocksHz = append(q.TimesSeconds, float64(r.Time)), append(q.ClocksHz, float64(r.Clock))
		q.Counters = append(q.Counters, r.Counters...)
	}
	return q
}

func fromReadings(q *pb.RunResponse, counters, runs int) ([]exec.Reading, error) {
	samples, err := fromSamples(q, runs)
	if err == nil && len(q.GetCounters()) != runs*counters {
		err = fmt.Errorf("%d counters for %d runs with %d", len(q.GetCounters()), runs, counters)
	}
	if err != nil {
		return nil, err
	}
	readings := make([]exec.Reading, runs)
	for i, sample := range samples {
		readings[i] = exec.Reading{Sample: sample, Counters: q.Counters[i*counters : (i+1)*counters : (i+1)*counters]}
	}
	return readings, nil
}
