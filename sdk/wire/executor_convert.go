package wire

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toExecutorManifest(m exec.Manifest) *pb.ExecutorManifest {
	return &pb.ExecutorManifest{Name: m.Name, Version: m.Version}
}

func fromExecutorManifest(q *pb.ExecutorManifest) (exec.Manifest, error) {
	var c check
	return exec.Manifest{Name: c.named("a manifest", q.GetName()), Version: q.GetVersion()}, c.err
}

func toDevices(devices []exec.Device) *pb.DevicesResponse {
	q := &pb.DevicesResponse{}
	for _, d := range devices {
		q.Devices = append(q.Devices, toDevice(d))
	}
	return q
}

func toDevice(d exec.Device) *pb.Device {
	return &pb.Device{
		Name: valid(d.Name), Arch: d.Arch, Attributes: toAttributes(d.Attributes), Kernels: d.Kernels,
		Libraries: d.Libraries,
	}
}

func fromDevices(q *pb.DevicesResponse) ([]exec.Device, error) {
	var c check
	var devices []exec.Device
	for _, d := range q.GetDevices() {
		devices = append(devices, c.device(d))
	}
	return devices, c.err
}

func (c *check) device(d *pb.Device) exec.Device {
	return exec.Device{
		Name: c.named("a device", d.GetName()), Arch: c.named("the architecture of "+d.GetName(), d.GetArch()),
		Attributes: c.attributes(d.GetAttributes()),
		Kernels:    d.GetKernels(), Libraries: d.GetLibraries(),
	}
}

func toResources(r exec.Resources) *pb.Resources {
	return &pb.Resources{
		Registers: int64(r.Registers), SpillBytes: float64(r.SpillBytes), SharedMemoryBytes: float64(r.SharedMemory),
		CtasPerSm: int64(r.CTAsPerSM),
	}
}

func fromResources(q *pb.Resources) (exec.Resources, error) {
	var c check
	return exec.Resources{
		Registers: c.count("registers", q.GetRegisters()), SpillBytes: unit.Bytes(c.amount("spill bytes", q.GetSpillBytes())),
		SharedMemory: unit.Bytes(c.amount("shared memory", q.GetSharedMemoryBytes())), CTAsPerSM: c.count("CTAs per SM",
			q.GetCtasPerSm()),
	}, c.err
}

func toNumerics(n exec.Numerics) *pb.Numerics {
	return &pb.Numerics{
		MaxError: n.MaxError, Tolerance: n.Tolerance, Checked: n.Checked, Wrong: n.Wrong, OutOfBounds: n.OutOfBounds,
		Reference: valid(n.Reference),
	}
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
	c.count("checked", q.Checked)
	c.count("wrong", q.Wrong)
	c.count("out of bounds", q.OutOfBounds)
	if q.Wrong > q.Checked {
		c.fail("%d of %d elements are wrong", q.Wrong, q.Checked)
	}
	return exec.Numerics{
		MaxError: q.MaxError, Tolerance: c.amount("the tolerance", q.Tolerance), Checked: q.Checked, Wrong: q.Wrong,
		OutOfBounds: q.OutOfBounds,
		Reference:   q.Reference,
	}, c.err
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

func toProgram(p exec.Program) *pb.Program {
	q := &pb.Program{
		Text: valid(p.Text), Entry: valid(p.Entry), Grid: int64(p.Grid), Threads: int64(p.Threads),
		SharedMemoryBytes: float64(p.SharedMemory), Launches: int64(p.Launches), Warmup: int64(p.Warmup),
		Counters: int64(p.Counters),
	}
	for _, a := range p.Arguments {
		q.Arguments = append(q.Arguments, &pb.Argument{
			Kind:  pb.Argument_Kind(a.Kind) + pb.Argument_KIND_WORD32,
			Value: a.Value, Bytes: float64(a.Bytes), ElementType: pb.ElementType(a.DType),
		})
	}
	return q
}

func fromRunRequest(req *pb.RunRequest) (p exec.Program, runs int, err error) {
	var c check
	if req.GetRuns() < 1 || req.GetRuns() > maxRuns {
		c.fail("%d runs", req.GetRuns())
	}
	return c.program(req.GetProgram()), int(req.GetRuns()), c.err
}

// program leaves it to exec.Program.Validate what can be run.
func (c *check) program(q *pb.Program) exec.Program {
	p := exec.Program{
		Text: q.GetText(), Entry: q.GetEntry(), Grid: c.count("the grid", q.GetGrid()),
		Threads:      c.count("the threads", q.GetThreads()),
		SharedMemory: unit.Bytes(c.amount("shared memory", q.GetSharedMemoryBytes())),
		Launches:     c.count("launches", q.GetLaunches()), Warmup: c.count("the warm-up", q.GetWarmup()),
		Counters: c.count("counters", q.GetCounters()),
	}
	for _, a := range q.GetArguments() {
		kind := a.GetKind() - pb.Argument_KIND_WORD32
		if kind < 0 || kind > pb.Argument_KIND_COUNTERS-pb.Argument_KIND_WORD32 {
			c.fail("unknown kind of argument %d", a.GetKind())
			kind = 0
		}
		t, err := fromElementType(a.GetElementType())
		if err != nil {
			c.fail("%v", err)
		}
		p.Arguments = append(p.Arguments, exec.Argument{Kind: exec.ArgumentKind(kind), Value: a.GetValue(),
			Bytes: unit.Bytes(c.amount("the size of a buffer", a.GetBytes())), DType: t})
	}
	return p
}

func toReadings(readings []exec.Reading) *pb.RunResponse {
	q := &pb.RunResponse{}
	for _, r := range readings {
		q.Readings = append(q.Readings, &pb.Reading{TimeSeconds: float64(r.Time), ClockHz: float64(r.Clock),
			Counters: r.Counters})
	}
	return q
}

func fromReadings(q *pb.RunResponse, counters, runs int) ([]exec.Reading, error) {
	if len(q.GetReadings()) != runs {
		return nil, fmt.Errorf("%d readings for %d runs", len(q.GetReadings()), runs)
	}
	var c check
	readings := make([]exec.Reading, runs)
	for i, r := range q.Readings {
		if len(r.GetCounters()) != counters {
			c.fail("%d counters for %d", len(r.GetCounters()), counters)
		}
		readings[i] = exec.Reading{Counters: r.GetCounters(), Sample: exec.Sample{
			Time:  unit.Seconds(c.positive("a time", r.GetTimeSeconds())),
			Clock: unit.Hertz(c.amount("a clock", r.GetClockHz())),
		}}
	}
	return readings, c.err
}

func toEnvironment(e exec.Environment) *pb.Environment {
	q := &pb.Environment{
		Driver: valid(e.Driver), Runtime: valid(e.Runtime), ClockHz: float64(e.Clock), PowerWatts: e.PowerWatts,
		PowerLimitWatts:    e.PowerLimitWatts,
		TemperatureCelsius: e.TemperatureC, ThrottleReasons: e.ThrottleReasons,
	}
	if !e.Time.IsZero() {
		q.TimeUnixNanoseconds = e.Time.UnixNano()
	}
	return q
}

func fromEnvironment(q *pb.Environment) (exec.Environment, error) {
	if q == nil {
		return exec.Environment{}, errors.New("no environment")
	}
	var c check
	e := exec.Environment{
		Driver: q.Driver, Runtime: q.Runtime, Clock: unit.Hertz(c.amount("the clock", q.ClockHz)),
		PowerWatts:      c.amount("the power", q.PowerWatts),
		PowerLimitWatts: c.amount("the power limit", q.PowerLimitWatts), TemperatureC: c.finite("the temperature",
			q.TemperatureCelsius),
		ThrottleReasons: q.ThrottleReasons,
	}
	if q.TimeUnixNanoseconds != 0 {
		e.Time = time.Unix(0, q.TimeUnixNanoseconds).UTC()
	}
	return e, c.err
}

// deviceIndex admits what an int can hold; which devices there are is the executor's to say.
func deviceIndex(device int64) (int, error) {
	if device < 0 || device > math.MaxInt32 {
		return 0, fmt.Errorf("device %d", device)
	}
	return int(device), nil
}
