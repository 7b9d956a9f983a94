package wire

import (
	"errors"
	"fmt"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

var (
	fromExecutorManifest = checked((*check).decodeExecutorManifest)
	fromResources        = checked((*check).decodeResources)
)

func fromDevices(q *pb.DevicesResponse) ([]exec.Device, error) {
	var c check
	return all(q.GetDevices(), c.decodeDevice), c.err
}

// fromNumerics admits an infinite error, which stands for a result that is not a number.
func fromNumerics(q *pb.Numerics) (exec.Numerics, error) {
	if q == nil {
		return exec.Numerics{}, errors.New("no numerics")
	}
	var c check
	if !(q.MaxError >= 0) {
		c.fail("the largest error is %v", q.MaxError)
	}
	n := c.decodeNumerics(q)
	if n.Wrong > n.Checked {
		c.fail("%d of %d elements are wrong", n.Wrong, n.Checked)
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

func fromSamples(q *pb.MeasureResponse, runs int) ([]exec.Sample, error) {
	if len(q.GetTimesSeconds()) != runs || len(q.GetClocksHz()) != runs {
		return nil, fmt.Errorf("%d times and %d clocks for %d runs", len(q.GetTimesSeconds()), len(q.GetClocksHz()), runs)
	}
	var c check
	samples := make([]exec.Sample, runs)
	for i := range samples {
		samples[i] = exec.Sample{Time: unit.Seconds(c.positive("a time", q.TimesSeconds[i])),
			Clock: unit.Hertz(c.amount("a clock", q.ClocksHz[i]))}
	}
	return samples, c.err
}

func fromRunRequest(req *pb.RunRequest) (p exec.Program, runs int, err error) {
	var c check
	if req.GetRuns() < 1 || req.GetRuns() > maxRuns {
		c.fail("%d runs", req.GetRuns())
	}
	return c.decodeProgram(req.GetProgram()), int(req.GetRuns()), c.err
}

func fromReadings(q *pb.RunResponse, counters, runs int) ([]exec.Reading, error) {
	if len(q.GetReadings()) != runs {
		return nil, fmt.Errorf("%d readings for %d runs", len(q.GetReadings()), runs)
	}
	var c check
	readings := all(q.Readings, c.decodeReading)
	for _, r := range readings {
		if len(r.Counters) != counters {
			c.fail("%d counters for %d", len(r.Counters), counters)
		}
	}
	return readings, c.err
}

func fromEnvironment(q *pb.EnvironmentResponse) (exec.Environment, error) {
	if q.GetEnvironment() == nil {
		return exec.Environment{}, errors.New("no environment")
	}
	var c check
	return c.decodeEnvironment(q.Environment), c.err
}
