package benchverb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/app"
	"github.com/origami-gemm/origami/cmd/origami/internal/query"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/store"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/bench"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/record"
	"github.com/origami-gemm/origami/core/unit"
)

// maxAhead bounds the kernels that are compiled beside a measurement: each may hold memory of the device, and a compiler
// memory of the host.
const maxAhead = 8

// measure measures the problems on the executor's device, and returns what its folder holds then.
func (o *Options) measure(ctx context.Context, a arch.Architecture, problems []query.Problem) (data *record.Dataset, err error) {
	x, err := o.App.Executor(ctx, o.Executor)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := x.Close(); err == nil {
			err = closed
		}
	}()
	sweep, memory, err := o.sweep(ctx, a, x)
	if err != nil {
		return nil, err
	}
	folder := o.Records
	if folder == "" {
		folder = defaultFolder(sweep.Data.Conditions)
		o.App.Streams.Note("measurements are kept in " + folder)
	}
	folder = filepath.Clean(folder)
	if err := o.fill(ctx, sweep, folder, o.fitting(problems, memory)); err != nil {
		return nil, err
	}
	return record.Read(folder, os.DirFS(folder))
}

// fitting leaves out the problems whose matrices alone are more than the device's memory: no candidate could run. Zero is
// a memory that the executor does not know.
func (o *Options) fitting(problems []query.Problem, memory unit.Bytes) []query.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p query.Problem) bool {
		need := unit.Bytes(p.DType.Bytes()*p.Batch) *
			(unit.Bytes(p.M)*unit.Bytes(p.K) + unit.Bytes(p.K)*unit.Bytes(p.N) + unit.Bytes(p.M)*unit.Bytes(p.N))
		if memory == 0 || need <= memory {
			return false
		}
		o.App.Streams.Warn(fmt.Sprintf("%s is not measured: its matrices take %.4g GB, and the device has %.4g GB", p.Problem, float64(need)/1e9, float64(memory)/1e9))
		return true
	})
}

// sweep readies a sweep with an empty dataset: it finds the device, with its memory, and the kernel family.
func (o *Options) sweep(ctx context.Context, a arch.Architecture, x exec.Executor) (_ *bench.Sweep, memory unit.Bytes, err error) {
	d := a.Describe()
	at, device, err := findDevice(ctx, x, o.Executor, d)
	if err != nil {
		return nil, 0, err
	}
	if d.DeviceName != device.Name {
		o.App.Streams.Warn(fmt.Sprintf("the GPU is %s, and the model describes %s (%s)", device.Name, d.DeviceName, d.ID()))
	}
	kernel := o.App.Settings.Kernel
	if kernel != "" {
		if kernel, err = answer.Kernel(d, kernel); err != nil {
			return nil, 0, err
		}
	}
	can := slices.DeleteFunc(slices.Clone(device.Kernels), func(k string) bool {
		return !slices.Contains(d.Kernels, k) || kernel != "" && k != kernel
	})
	if len(can) == 0 {
		wanted := d.Kernels
		if kernel != "" {
			wanted = []string{kernel}
		}
		return nil, 0, diag.Inputf("the executor %s builds the kernel families %s, and %s is wanted", o.Executor, strings.Join(device.Kernels, ", "), strings.Join(wanted, ", ")).
			At("--executor %s", o.Executor).Do("choose a model or a --kernel that both know")
	}
	conditions := record.Conditions{
		Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, DriverName: device.Name, Kernel: can[0], WarmL2: o.WarmL2, Input: exec.InputNormal,
		Executor: o.Executor, ExecutorVersion: o.App.PluginVersion(o.Executor),
	}
	data := record.New("", conditions)
	data.Source = fmt.Sprintf("origami bench --executor %s", o.Executor)
	data.Software = strings.TrimSpace(o.Executor + " " + conditions.ExecutorVersion)
	environment, err := x.Environment(ctx, at)
	switch {
	case err == nil:
		for _, part := range []struct{ name, value string }{{"driver", environment.Driver}, {"runtime", environment.Runtime}} {
			if part.value != "" {
				data.Software += ", " + part.name + " " + part.value
			}
		}
	case diag.KindOf(err) != diag.Input:
		return nil, 0, err
	}
	return &bench.Sweep{
		Arch: a, Executor: x, Device: at, Libraries: device.Libraries, Space: arch.Space{Kernel: can[0]}, WarmL2: o.WarmL2, Input: conditions.Input,
		Ahead: max(1, min(runtime.NumCPU(), maxAhead)), Host: software(), Data: data,
	}, unit.Bytes(device.Attributes["memory_bytes"]), nil
}

// findDevice returns the first device of the architecture that the model describes.
func findDevice(ctx context.Context, x exec.Executor, name string, d *arch.Description) (int, exec.Device, error) {
	devices, err := x.Devices(ctx)
	if err != nil {
		return 0, exec.Device{}, err
	}
	var found []string
	for i, device := range devices {
		if device.Arch == d.Arch {
			return i, device, nil
		}
		found = append(found, fmt.Sprintf("%s (%s)", device.Name, device.Arch))
	}
	if len(found) == 0 {
		return 0, exec.Device{}, &diag.Error{Kind: diag.Device, Where: "executor " + name, What: "it found no device", Fix: "check the driver"}
	}
	return 0, exec.Device{}, diag.Inputf("this machine has %s, and the model describes %s", strings.Join(found, ", "), d.ID()).
		At("--executor %s", name).Do("use --arch %s", devices[0].Arch)
}

// software says what measures.
func software() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return fmt.Sprintf("origami %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// defaultFolder names a folder after what is measured and the day.
func defaultFolder(c record.Conditions) string {
	name := c.Device + "-" + c.Kernel
	if c.WarmL2 {
		name += "-warm"
	}
	return name + "-" + time.Now().Format(time.DateOnly)
}

// fill measures what the folder does not have yet.
func (o *Options) fill(ctx context.Context, sweep *bench.Sweep, folder string, problems []query.Problem) (err error) {
	kept, err := store.Open(folder, sweep.Data)
	if err != nil {
		return err
	}
	defer func() {
		if closed := kept.Close(); err == nil {
			err = closed
		}
	}()
	if kept.Torn != nil {
		o.App.Streams.Warn(fmt.Sprintf("%s: %s; it is dropped and measured again", kept.Torn.Where, kept.Torn.Why))
	}
	sweep.Data, sweep.Keep = kept.Data, kept.Append
	progress := newProgress(o.App.Streams, sweep, problems)
	defer progress.stop()
	sweep.Begin = progress.begin
	sweep.Done = func(m record.Measurement) {
		progress.done(m)
		switch m.Status {
		case record.OK, record.NotBuilt: // what does not fit is many, and nobody's fault
		default:
			progress.warn(fmt.Sprintf("%s of %s is left out: %s: %s", record.Label(m.Config), m.Problem, words(m.Status), m.Detail))
		}
	}
	for _, p := range problems {
		err := sweep.Problem(ctx, p.Problem)
		if err != nil && diag.KindOf(err) != diag.Input { // the answer says of each problem why it has none
			return stopped(ctx, err, kept.Data.Len(), folder)
		}
		if err := kept.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// stopped says of what ended a sweep what is left of it.
func stopped(ctx context.Context, err error, measurements int, folder string) error {
	var d *diag.Error
	switch {
	case ctx.Err() != nil:
		d = &diag.Error{What: app.ErrInterrupted.Error(), Err: app.ErrInterrupted}
	case !errors.As(err, &d):
		d = &diag.Error{What: err.Error(), Err: err}
	}
	if measurements == 0 {
		return d
	}
	fix := fmt.Sprintf("%s kept in %s, and the same command with --records %s goes on from there", render.Count(measurements, "measurement is", "measurements are"), folder, folder)
	if d.Fix != "" {
		fix = d.Fix + "; " + fix
	}
	return d.Do("%s", fix)
}

// words writes a status for a reader.
func words(s record.Status) string {
	switch s {
	case record.Wrong:
		return "wrong result"
	case record.Timeout:
		return "it did not end in time"
	default:
		return string(s)
	}
}

// weight is what a configuration of a problem costs, in 10⁹ operations: its arithmetic, and what compiling and checking
// cost beside, about as much as 10¹² operations. Sizes differ by a factor of 10⁶, so a count would mislead.
func weight(p gemm.Problem) int64 { return int64(p.Flops()/1e9) + 1000 }
