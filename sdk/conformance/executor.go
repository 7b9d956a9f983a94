package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

// executorChecks are in order of dependence: a check comes after those whose properties it needs.
var executorChecks = []Check{
	{"info", "Info names the plugin and its version, and reports good health.", with((*subject).info, checkInfo)},
	{"manifest", "The manifest is the same each time and belongs to the plugin of Info; it needs no device.",
		checkExecutorManifest},
	{"devices", "The devices are the same each time; each has a name, an architecture, kernel families or libraries, " +
		"and driver attributes that are finite numbers.", with((*subject).bench, checkDevices)},
	{"compile", "A common tile of every kernel family compiles, with plausible resources.",
		with((*subject).bench, checkCompile)},
	{"numerics", "The result of a kernel is right, also for sizes that are not multiples of the tile: it is within " +
		"the tolerance, nothing is written out of bounds, and something was compared.",
		with((*subject).bench, checkNumerics)},
	{"samples", "The requested number of runs is measured, with a warm and a cold L2; an unknown distribution of " +
		"inputs is an error of kind input.", with((*subject).bench, checkSamples)},
	{"lifecycle", "A kernel is compiled, checked, measured and released; a released or unknown kernel is lost, and " +
		"releasing it is not an error.", with((*subject).bench, checkLifecycle)},
	{"libraries", "Every library is compiled, checked and measured.", with((*subject).bench, checkLibraries)},
	{"bad-config", "Impossible problems and configurations are errors of kind input, and the executor still works.",
		with((*subject).bench, checkBadConfig)},
	{"bad-device", "An unknown device is an error of kind input.", with((*subject).bench, checkBadDevice)},
	{"cancel", "A cancelled measurement returns promptly with the context's error, and the executor still works.",
		with((*subject).bench, checkCancelMeasure)},
	{"concurrent", "Kernels can be compiled, checked and measured concurrently.",
		with((*subject).bench, checkConcurrentKernels)},
	{"environment", "Clock, power and temperature of every device are plausible.",
		with((*subject).bench, checkEnvironment)},
}

// bench is a device for the kernels of the checks.
type bench struct {
	*wire.Executor
	device int
	exec.Device
}

// bench returns the first device with kernels. Without one the check is skipped, or fails if a device is required.
func (s *subject) bench(ctx context.Context) (*bench, error) {
	x := s.client.Executor()
	devices, err := x.Devices(ctx)
	if diag.KindOf(err) == diag.Device && !s.RequireDevice {
		return nil, skipped("no device: " + oneLine(err))
	}
	if err != nil {
		return nil, err
	}
	for i, d := range devices {
		if len(d.Kernels) > 0 {
			return &bench{x, i, d}, nil
		}
	}
	if s.RequireDevice {
		return nil, errors.New("no device has a kernel family")
	}
	return nil, skipped("no device has a kernel family")
}

// tiles are common configurations. Most kernel families can compile one of them.
var tiles = []gemm.Config{
	{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 2, SplitK: 1, GroupM: 8},
	{BlockM: 128, BlockN: 128, BlockK: 32, NumWarps: 4, NumStages: 3, SplitK: 1, GroupM: 8},
	{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 1, GroupM: 1},
	{BlockM: 32, BlockN: 32, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 1, GroupM: 1},
	{BlockM: 16, BlockN: 16, BlockK: 16, NumWarps: 1, NumStages: 2, SplitK: 1, GroupM: 1},
}

// small is a cheap problem.
var small = gemm.New(512, 384, 256)

// compile builds a tile of a kernel family for a problem.
func (b *bench) compile(ctx context.Context, kernel string, p gemm.Problem) (exec.Kernel, gemm.Config, error) {
	var refusal error
	for _, c := range tiles {
		c.Kernel = kernel
		k, err := b.Compile(ctx, b.device, p, c)
		if err == nil {
			return k, c, nil
		}
		if diag.KindOf(err) != diag.Input {
			return nil, c, fmt.Errorf("%s of %s: %w", c, p, err)
		}
		refusal = err
	}
	return nil, gemm.Config{},
		fmt.Errorf("none of %d common tiles of the kernel family %s can be compiled for %s, the "+
			"last because: %w", len(tiles), kernel, p, refusal)
}

// release closes a kernel and adds a finding if that fails.
func (f *findings) release(k exec.Kernel) {
	if err := k.Close(); err != nil {
		f.add("releasing a kernel: %s", err)
	}
}

// measure takes n samples.
func measure(ctx context.Context, k exec.Kernel, o exec.MeasureOptions, n int) error {
	taken := 0
	err := k.Measure(ctx, o, func(exec.Sample) bool { taken++; return taken < n })
	if err == nil && taken != n {
		err = fmt.Errorf("%d samples of %d", taken, n)
	}
	return err
}

func checkExecutorManifest(ctx context.Context, s *subject, found *findings) error {
	x := s.client.Executor()
	m, err := x.Manifest(ctx)
	if err != nil {
		return err
	}
	if again, err := x.Manifest(ctx); err != nil || again != m {
		found.add("asked twice it is %+v and %+v (%v)", m, again, err)
	}
	if info, err := s.client.Info(ctx); err == nil && (info.Name != m.Name || info.Version != m.Version) {
		found.add("it is of %s %s, and Info is of %s %s", m.Name, m.Version, info.Name, info.Version)
	}
	return nil
}

func checkDevices(ctx context.Context, s *subject, found *findings, b *bench) error {
	devices, err := b.Devices(ctx)
	if err != nil {
		return err
	}
	if again, err := b.Devices(ctx); err != nil || !reflect.DeepEqual(again, devices) {
		found.add("asked twice they are %v and %v (%v)", devices, again, err)
	}
	for i, d := range devices {
		name := fmt.Sprintf("device %d (%s)", i, d.Name)
		found.unique(name+": kernel family", d.Kernels)
		found.unique(name+": library", d.Libraries)
		if clock, ok := d.Attributes["clock"]; ok && (clock < 1e6 || clock > 1e11) {
			found.add("%s: a clock of %v Hz is not between 1 MHz and 100 GHz", name, clock)
		}
		for _, attribute := range slices.Sorted(maps.Keys(d.Attributes)) {
			if v := d.Attributes[attribute]; v < 0 {
				found.add("%s: %s is %v", name, attribute, v)
			}
		}
	}
	return nil
}

func checkCompile(ctx context.Context, _ *subject, found *findings, b *bench) error {
	for _, family := range b.Kernels {
		k, c, err := b.compile(ctx, family, small)
		if err != nil {
			found.add("%s", err)
			continue
		}
		// The client already refuses negative resources. Zero means unknown.
		if r := k.Resources(); r.Registers > 1<<16 || r.CTAsPerSM > 1<<10 {
			found.add("%s %s: %d registers per thread, %d CTAs per SM", family, c, r.Registers, r.CTAsPerSM)
		}
		found.release(k)
	}
	return nil
}

func checkNumerics(ctx context.Context, _ *subject, found *findings, b *bench) error {
	batched := gemm.New(192, 130, 96)
	batched.Batch = 3
	transposed := gemm.New(256, 128, 192)
	transposed.SetTrans(true, true)
	for _, family := range b.Kernels {
		for _, p := range []gemm.Problem{small, gemm.New(129, 255, 65), gemm.New(1, 1, 1), transposed, batched} {
			k, c, err := b.compile(ctx, family, p)
			if err != nil {
				if diag.KindOf(err) != diag.Input { // a family need not take every problem
					found.add("%s", err)
				}
				continue
			}
			n, err := k.Check(ctx)
			switch {
			case err != nil:
				found.add("%s %s of %s: %s", family, c, p, err)
			case !n.OK():
				found.add("%s %s of %s: the result is wrong: error %.3g of %.3g allowed, %d of %d elements, "+
					"%d bytes out of bounds", family, c, p, n.MaxError, n.Tolerance, n.Wrong, n.Checked, n.OutOfBounds)
			case n.Checked == 0 || n.Reference == "":
				found.add("%s %s of %s: %d elements are compared with %q", family, c, p, n.Checked, n.Reference)
			}
			found.release(k)
		}
	}
	return nil
}

func checkSamples(ctx context.Context, s *subject, found *findings, b *bench) error {
	k, handle, err := s.raw(ctx, b)
	if err != nil {
		return err
	}
	defer func() { found.release(k) }()
	client := pb.NewExecutorServiceClient(s.conn)
	for _, request := range []*pb.MeasureRequest{
		{Kernel: handle, Runs: 1, Warmup: 2},
		{Kernel: handle, Runs: 7},
		{Kernel: handle, Runs: 3, WarmL2: true, Input: exec.InputNormal},
	} {
		resp, err := client.Measure(ctx, request)
		if err != nil {
			found.add("%d runs, warm L2 %v: %s", request.GetRuns(), request.GetWarmL2(), err)
			continue
		}
		times, clocks := resp.GetTimesSeconds(), resp.GetClocksHz()
		if len(times) != int(request.GetRuns()) || len(clocks) != len(times) {
			found.add("%d runs are requested, and %d times and %d clocks answered", request.GetRuns(), len(times),
				len(clocks))
		}
		for _, t := range times {
			if !(t > 0) || math.IsInf(t, 0) {
				found.add("a run takes %v s", t)
			}
		}
		for _, clock := range clocks {
			if clock != 0 && (clock < 1e6 || clock > 1e11) {
				found.add("a clock of %v Hz is not between 1 MHz and 100 GHz", clock)
			}
		}
	}
	if err := measure(ctx, k, exec.MeasureOptions{}, 40); err != nil {
		found.add("40 runs: %s", err)
	}
	err = measure(ctx, k, exec.MeasureOptions{Input: unknownName}, 1)
	expectInput(found, "an unknown distribution of inputs", err)
	if _, err := client.Measure(ctx, &pb.MeasureRequest{Kernel: handle}); status.Code(err) != codes.InvalidArgument {
		found.add("a measurement of no runs: status %s, not %s", status.Code(err), codes.InvalidArgument)
	}
	return nil
}

// raw compiles a kernel of the first family twice: once through the client, and once directly, because the client
// does not show the handle.
func (s *subject) raw(ctx context.Context, b *bench) (exec.Kernel, uint64, error) {
	k, c, err := b.compile(ctx, b.Kernels[0], small)
	if err != nil {
		return nil, 0, err
	}
	resp, err := pb.NewExecutorServiceClient(s.conn).Compile(ctx, &pb.CompileRequest{Device: int64(b.device),
		Problem: wireProblem(small), Config: wire.ConfigMessage(c)})
	if err != nil {
		return nil, 0, errors.Join(err, k.Close())
	}
	return k, resp.GetKernel(), nil
}

func checkLifecycle(ctx context.Context, s *subject, found *findings, b *bench) error {
	k, handle, err := s.raw(ctx, b)
	if err != nil {
		return err
	}
	if _, err := k.Check(ctx); err != nil {
		found.add("Check: %s", err)
	}
	if err := measure(ctx, k, exec.MeasureOptions{}, 3); err != nil {
		found.add("Measure: %s", err)
	}
	found.release(k)
	if _, err := k.Check(ctx); !errors.Is(err, exec.ErrKernelLost) {
		found.add("Check of a released kernel: %v, and not exec.ErrKernelLost", err)
	}
	if err := measure(ctx, k, exec.MeasureOptions{}, 1); !errors.Is(err, exec.ErrKernelLost) {
		found.add("Measure of a released kernel: %v, and not exec.ErrKernelLost", err)
	}
	found.release(k)

	client := pb.NewExecutorServiceClient(s.conn)
	_, err = client.Check(ctx, &pb.CheckRequest{Kernel: handle})
	if err != nil {
		found.add("releasing one kernel has released another: %s", err)
	}
	never := handle + 1<<40
	_, err = client.Check(ctx, &pb.CheckRequest{Kernel: never})
	found.missing("Check of a kernel that was never compiled", err, pb.Missing_RESOURCE_KERNEL)
	_, err = client.Measure(ctx, &pb.MeasureRequest{Kernel: never, Runs: 1})
	found.missing("Measure of a kernel that was never compiled", err, pb.Missing_RESOURCE_KERNEL)
	for _, h := range []uint64{handle, handle, never} {
		if _, err := client.Release(ctx, &pb.ReleaseRequest{Kernel: h}); err != nil {
			found.add("releasing a kernel that is released, or was never compiled: %s", err)
		}
	}
	return nil
}

func checkLibraries(ctx context.Context, _ *subject, found *findings, b *bench) error {
	if len(b.Libraries) == 0 {
		return skipped("the device lists no library")
	}
	for _, library := range b.Libraries {
		k, err := b.Library(ctx, b.device, small, library)
		if err != nil {
			found.add("%s: %s", library, err)
			continue
		}
		if n, err := k.Check(ctx); err != nil || !n.OK() {
			found.add("%s: the result is %+v (%v)", library, n, err)
		}
		if err := measure(ctx, k, exec.MeasureOptions{}, 3); err != nil {
			found.add("%s: %s", library, err)
		}
		found.release(k)
	}
	return nil
}
