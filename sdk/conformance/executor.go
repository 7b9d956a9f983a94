package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

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
	{"info", "Info names the plugin and its version, and reports good health.", with((*run).info, checkInfo)},
	{"manifest", "The manifest is the same each time and belongs to the plugin of Info; it needs no device.",
		checkExecutorManifest},
	{"devices", "The devices are the same each time; each has a name, an architecture, kernel families or libraries, " +
		"and driver attributes that are finite numbers.", with((*run).bench, checkDevices)},
	{"compile", "A common tile of every kernel family compiles, with plausible resources.",
		with((*run).bench, checkCompile)},
	{"numerics", "The result of a kernel is right, also for sizes that are not multiples of the tile: it is within " +
		"the tolerance, nothing is written out of bounds, and something was compared.",
		with((*run).bench, checkNumerics)},
	{"samples", "The requested number of runs is measured, with a warm and a cold L2; an unknown distribution of " +
		"inputs is an error of kind input.", with((*run).kernel, checkSamples)},
	{"lifecycle", "A kernel is compiled, checked, measured and released; a released or unknown kernel is lost, and " +
		"releasing it is not an error.", with((*run).kernel, checkLifecycle)},
	{"libraries", "Every library is compiled, checked and measured.", with((*run).bench, checkLibraries)},
	{"bad-config", "Impossible problems and configurations are errors of kind input, and the executor still works.",
		with((*run).bench, checkBadConfig)},
	{"bad-device", "An unknown device is an error of kind input.", with((*run).bench, checkBadDevice)},
	{"cancel", "A cancelled measurement returns promptly with the context's error, and the executor still works.",
		with((*run).bench, checkCancelMeasure)},
	{"concurrent", "Kernels can be compiled, checked and measured concurrently.",
		with((*run).bench, checkConcurrentKernels)},
	{"environment", "Clock, power and temperature of every device are plausible.",
		with((*run).bench, checkEnvironment)},
}

// bench is a device for the kernels of the checks.
type bench struct {
	*wire.Executor
	device int
	exec.Device
}

// bench returns the first device with kernels. Without one the check is skipped, or fails if a device is required.
func (r *run) bench() (*bench, error) {
	devices, err := r.devices()
	i := slices.IndexFunc(devices, func(d exec.Device) bool { return len(d.Kernels) > 0 })
	switch {
	case err == nil && i >= 0:
		return &bench{r.client.Executor(), i, devices[i]}, nil
	case err == nil:
		err = &diag.Error{Kind: diag.Device, What: "none has a kernel family"}
	}
	if diag.KindOf(err) == diag.Device && !r.RequireDevice {
		return nil, skipped("no device: " + oneLine(err))
	}
	return nil, err
}

// tiles are common configurations. Most kernel families can compile one of them.
var tiles = []gemm.Config{
	{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 2, SplitK: 1, GroupM: 8},
	{BlockM: 128, BlockN: 128, BlockK: 32, NumWarps: 4, NumStages: 3, SplitK: 1, GroupM: 8},
	{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 1, GroupM: 1},
	{BlockM: 32, BlockN: 32, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 1, GroupM: 1},
	{BlockM: 16, BlockN: 16, BlockK: 16, NumWarps: 1, NumStages: 2, SplitK: 1, GroupM: 1},
}

// small is a cheap problem, and single is small in fp32, for which alone some families have kernels.
var small, single = gemm.New(512, 384, 256), gemm.Problem{
	M: 512, N: 384, K: 256, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorN, DType: gemm.FP32,
}

// compile builds a tile of a kernel family for a problem.
func (b *bench) compile(ctx context.Context, kernel string, p gemm.Problem) (exec.Kernel, gemm.Config, error) {
	var err error
	for _, c := range tiles {
		c.Kernel = kernel
		var k exec.Kernel
		if k, err = b.Compile(ctx, b.device, p, c); err == nil {
			return k, c, nil
		}
		if diag.KindOf(err) != diag.Input {
			return nil, c, fmt.Errorf("%s of %s: %w", c, p, err)
		}
	}
	return nil, gemm.Config{}, fmt.Errorf("none of %d common tiles of the kernel family %s can be compiled for %s, "+
		"the last because: %w", len(tiles), kernel, p, err)
}

// kernel is a kernel of the small problem. The same one is compiled past the client, which does not show the handle.
type kernel struct {
	exec.Kernel
	client pb.ExecutorServiceClient
	handle uint64
}

// kernel compiles a kernel of the first family, in both ways.
func (r *run) kernel() (*kernel, error) {
	b, err := r.bench()
	if err != nil {
		return nil, err
	}
	k, c, err := b.compile(r, b.Kernels[0], small)
	if err != nil {
		return nil, err
	}
	client := pb.NewExecutorServiceClient(r.conn)
	resp, err := client.Compile(r, wire.CompileMessage(b.device, small, c))
	var handle uint64
	if err == nil {
		handle, err = wire.KernelOf(resp)
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return &kernel{k, client, handle}, nil
}

// release closes a kernel and adds a finding if that fails.
func (f *findings) release(k exec.Kernel) { f.fails(k.Close(), "releasing a kernel") }

// measure takes n samples.
func measure(ctx context.Context, k exec.Kernel, o exec.MeasureOptions, n int) error {
	taken := 0
	err := k.Measure(ctx, o, func(exec.Sample) bool { taken++; return taken < n })
	if err == nil && taken != n {
		err = fmt.Errorf("%d samples of %d", taken, n)
	}
	return err
}

// right checks the result of a kernel.
func (r *run) right(k exec.Kernel, what string) {
	n, err := k.Check(r)
	_ = r.fails(err, "%s", what) ||
		r.when(!n.OK(), "%s: the result is wrong: error %.3g of %.3g allowed, %d of %d elements, %d bytes out of bounds",
			what, n.MaxError, n.Tolerance, n.Wrong, n.Checked, n.OutOfBounds) ||
		r.when(n.Checked == 0 || n.Reference == "", "%s: %d elements are compared with %q", what, n.Checked, n.Reference)
}

// works checks, measures and releases a kernel.
func (r *run) works(k exec.Kernel, runs int, what string) {
	r.right(k, what)
	r.fails(measure(r, k, exec.MeasureOptions{}, runs), "%s", what)
	r.release(k)
}

func checkExecutorManifest(r *run) {
	ask := func() (exec.Manifest, error) { return r.client.Executor().Manifest(r) }
	if m, err := ask(); !r.stop(err) {
		again(&r.findings, "asked twice it is", m, ask)
		r.sameNames(m.Name, m.Version)
	}
}

// devices lists the devices.
func (r *run) devices() ([]exec.Device, error) { return r.client.Executor().Devices(r) }

func checkDevices(r *run, b *bench) {
	devices, err := r.devices()
	if r.stop(err) {
		return
	}
	again(&r.findings, "asked twice they are", devices, r.devices)
	for i, d := range devices {
		name := fmt.Sprintf("device %d (%s)", i, d.Name)
		r.unique(name+": kernel family", d.Kernels)
		r.unique(name+": library", d.Libraries)
		if clock, ok := d.Attributes["clock"]; ok {
			r.plausibleClock(name, clock)
		}
		for _, attribute := range slices.Sorted(maps.Keys(d.Attributes)) {
			r.when(d.Attributes[attribute] < 0, "%s: %s is %v", name, attribute, d.Attributes[attribute])
		}
	}
}

func checkCompile(r *run, b *bench) {
	for _, family := range b.Kernels {
		k, c, err := b.compile(r, family, small)
		if diag.KindOf(err) == diag.Input {
			k, c, err = b.compile(r, family, single)
		}
		if r.fails(err, "compiling") {
			continue
		}
		// The client already refuses negative resources. Zero means unknown.
		has := k.Resources()
		r.when(has.Registers > 1<<16 || has.CTAsPerSM > 1<<10, "%s %s: %d registers per thread, %d CTAs per SM", family, c,
			has.Registers, has.CTAsPerSM)
		r.release(k)
	}
}

func checkNumerics(r *run, b *bench) {
	batched, transposed := gemm.New(192, 130, 96), gemm.New(256, 128, 192)
	batched.Batch = 3
	transposed.SetTrans(true, true)
	for _, family := range b.Kernels {
		for _, p := range []gemm.Problem{small, single, gemm.New(129, 255, 65), gemm.New(1, 1, 1), transposed, batched} {
			k, c, err := b.compile(r, family, p)
			if err != nil {
				r.when(diag.KindOf(err) != diag.Input, "%s", err) // a family need not take every problem
				continue
			}
			r.right(k, fmt.Sprintf("%s %s of %s", family, c, p))
			r.release(k)
		}
	}
}

func checkSamples(r *run, k *kernel) {
	defer r.release(k)
	for _, asked := range []struct {
		runs int
		exec.MeasureOptions
	}{{1, exec.MeasureOptions{Warmup: 2}}, {runs: 7}, {3, exec.MeasureOptions{WarmL2: true, Input: exec.InputNormal}}} {
		resp, err := k.client.Measure(r, wire.MeasureMessage(k.handle, asked.MeasureOptions, asked.runs))
		var samples []exec.Sample
		if err == nil {
			samples, err = wire.Samples(resp, asked.runs)
		}
		r.fails(err, "%d runs, warm L2 %v", asked.runs, asked.WarmL2)
		for _, s := range samples {
			if s.Clock != 0 {
				r.plausibleClock("a run", float64(s.Clock))
			}
		}
	}
	r.fails(measure(r, k, exec.MeasureOptions{}, 40), "40 runs")
	r.refuses(measure(r, k, exec.MeasureOptions{Input: unknownName}, 1), "an unknown distribution of inputs")
	none := status.Code(fault(k.client.Measure(r, wire.MeasureMessage(k.handle, exec.MeasureOptions{}, 0))))
	r.when(none != codes.InvalidArgument, "a measurement of no runs: status %s, not %s", none, codes.InvalidArgument)
}

func checkLifecycle(r *run, k *kernel) {
	use := func() []named[error] {
		return []named[error]{{"Check", fault(k.Check(r))}, {"Measure", measure(r, k, exec.MeasureOptions{}, 3)}}
	}
	for _, call := range use() {
		r.fails(call.value, "%s", call.what)
	}
	r.release(k)
	for _, call := range use() {
		r.when(!errors.Is(call.value, exec.ErrKernelLost), "%s of a released kernel: %v, and not exec.ErrKernelLost",
			call.what, call.value)
	}
	r.release(k)

	client, never := k.client, k.handle+1<<40
	r.fails(fault(client.Check(r, wire.KernelMessage(k.handle))), "releasing one kernel has released another")
	const lost = " of a kernel that was never compiled"
	r.missing("Check"+lost, fault(client.Check(r, wire.KernelMessage(never))), pb.Missing_RESOURCE_KERNEL)
	r.missing("Measure"+lost, fault(client.Measure(r, wire.MeasureMessage(never, exec.MeasureOptions{}, 1))),
		pb.Missing_RESOURCE_KERNEL)
	for _, h := range []uint64{k.handle, k.handle, never} {
		r.fails(fault(client.Release(r, wire.KernelMessage(h))),
			"releasing a kernel that is released, or was never compiled")
	}
}

func checkLibraries(r *run, b *bench) {
	r.skip(len(b.Libraries) == 0, "the device lists no library")
	for _, library := range b.Libraries {
		if k, err := b.Library(r, b.device, small, library); !r.fails(err, "%s", library) {
			r.works(k, 3, library)
		}
	}
}

// refusesKernel checks that a configuration cannot be compiled for a problem on a device.
func (b *bench) refusesKernel(r *run, what string, device int, p gemm.Problem, c gemm.Config) {
	k, err := b.Compile(r, device, p, c)
	r.refuses(err, "compiling %s", what)
	if err == nil {
		r.release(k)
	}
}

func checkBadConfig(r *run, b *bench) {
	k, good, err := b.compile(r, b.Kernels[0], small)
	if r.stop(err) {
		return
	}
	r.release(k)
	odd := good
	odd.Axes, err = good.Axes.With(unusedName(nil), "1")
	if r.stop(err) {
		return
	}
	for _, bad := range append(badConfigs(good), named[gemm.Config]{"a named axis that no family has", odd}) {
		b.refusesKernel(r, "a configuration with "+bad.what, b.device, small, bad.value)
	}
	for _, bad := range badProblems(small) {
		b.refusesKernel(r, "a problem "+bad.what, b.device, bad.value, good)
	}
	if k, err := b.Compile(r, b.device, small, good); !r.fails(err, "afterwards") {
		r.release(k)
	}
}

func checkBadDevice(r *run, b *bench) {
	devices, err := r.devices()
	if r.stop(err) {
		return
	}
	c := tiles[0]
	c.Kernel = b.Kernels[0]
	for _, device := range []int{len(devices), -1, 1 << 40} {
		r.refuses(fault(b.Environment(r, device)), "the environment of device %d", device)
		b.refusesKernel(r, fmt.Sprintf("for device %d", device), device, small, c)
	}
}

func checkCancelMeasure(r *run, b *bench) {
	k, _, err := b.compile(r, b.Kernels[0], small)
	if r.stop(err) {
		return
	}
	for _, after := range []time.Duration{0, 5 * time.Millisecond} {
		r.cancels("Measure", after, true, func(ctx context.Context) error {
			return k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool { return true })
		})
	}
	soon, cancel := context.WithTimeout(r, callTimeout)
	defer cancel()
	other, _, err := b.compile(soon, b.Kernels[0], small)
	if !r.fails(err, "afterwards") {
		r.fails(measure(soon, other, exec.MeasureOptions{}, 3), "afterwards")
		r.release(other)
	}
	r.release(k) // last, because the cancelled measurement may still be running
}

func checkConcurrentKernels(r *run, b *bench) {
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			p := small
			p.M += 64 * w
			k, c, err := b.compile(r, b.Kernels[0], p)
			if !r.fails(err, "%d at once", workers) {
				r.works(k, 10, fmt.Sprintf("%s of %s, %d at once", c, p, workers))
			}
		})
	}
	wg.Wait()
}

func checkEnvironment(r *run, b *bench) {
	devices, err := r.devices()
	r.stop(err)
	for i := range devices { // the client itself refuses negative powers
		what := fmt.Sprintf("device %d", i)
		e, err := b.Environment(r, i)
		if r.fails(err, "%s", what) {
			continue
		}
		if e.Clock != 0 {
			r.plausibleClock(what, float64(e.Clock))
		}
		r.when(max(e.PowerWatts, e.PowerLimitWatts) > 1e5, "%s: %v W of %v W", what, e.PowerWatts, e.PowerLimitWatts)
		r.when(e.TemperatureC < -100 || e.TemperatureC > 200, "%s: a temperature of %v °C", what, e.TemperatureC)
	}
}
