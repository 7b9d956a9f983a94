package session

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/release"
	"github.com/origami-gemm/origami/core/unit"
)

// maxAhead bounds the kernels that are compiled during a measurement: each may hold memory of the device, and its
// compiler memory of the host.
const maxAhead = 16

// Sweep is Sweeps for one GPU of this machine.
func (f *Factory) Sweep(ctx context.Context, a arch.Architecture, executor string, warmL2 bool) (
	*measure.Sweep, unit.Bytes, error,
) {
	gpus, memory, err := f.Sweeps(ctx, a, executor, &ShareFlags{}, warmL2)
	if err != nil {
		return nil, 0, err
	}
	return gpus[0].Sweep, memory, nil
}

// sweepOn prepares a sweep on a device of an executor.
func (f *Factory) sweepOn(
	ctx context.Context, a arch.Architecture, x exec.Executor, executor, version string, at int, device exec.Device,
	warmL2 bool,
) (_ *measure.Sweep, memory unit.Bytes, err error) {
	d := a.Describe()
	device.Name = dataset.Text(device.Name, dataset.MaxName)
	for _, library := range device.Libraries {
		if library != dataset.Text(library, dataset.MaxName) {
			return nil, 0, &diag.Error{Kind: diag.Plugin, Where: "executor " + executor, Err: exec.ErrNonsense,
				What: fmt.Sprintf("the name of a library has %d bytes, or is no UTF-8", len(library)),
				Fix:  "report it to the plugin's author"}
		}
	}
	if d.DeviceName != device.Name {
		f.Streams.Warn(fmt.Sprintf("the GPU is %s, and the model describes %s (%s)", device.Name, d.DeviceName, d.ID()))
	}
	families, err := f.familiesToMeasure(executor, device, d)
	if err != nil {
		return nil, 0, err
	}
	family := families[0]
	conditions := dataset.Conditions{
		Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, DriverName: device.Name,
		Kernel: family, WarmL2: warmL2,
		Input: exec.InputNormal, Executor: executor,
		ExecutorVersion: dataset.Text(version, dataset.MaxName),
	}
	data := dataset.New("", conditions)
	data.Software = strings.TrimSpace(executor + " " + conditions.ExecutorVersion)
	environment, err := x.Environment(ctx, at)
	switch {
	case err == nil:
		if environment.Driver != "" {
			data.Software += ", driver " + dataset.Text(environment.Driver, dataset.MaxName)
		}
		if environment.Runtime != "" {
			data.Software += ", runtime " + dataset.Text(environment.Runtime, dataset.MaxName)
		}
	case diag.KindOf(err) != diag.Input:
		return nil, 0, err
	}
	s := &measure.Sweep{
		Executor: x, Device: at, Libraries: device.Libraries, WarmL2: warmL2, Input: exec.InputNormal,
		Host: Software(), Arch: a, Space: arch.Space{Kernel: family}, Data: data,
		Pause: pause, Retry: func(err error, wait time.Duration, attempt, of int) {
			f.Streams.Warn(Retrying(err, wait, attempt, of))
		},
	}
	return s, unit.Bytes(device.Attributes["memory_bytes"]), nil
}

// pause waits until the time is over or the context ends.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Retrying says that the executor failed and is tried again.
func Retrying(err error, wait time.Duration, attempt, of int) string {
	return fmt.Sprintf("%v; trying again in %v (%d of %d)", err, wait, attempt, of)
}

// FamiliesToMeasure returns the kernel families that an opened sweep could measure: first its own, then those for
// problems that have no kernel of it. With --kernel there is one.
func (f *Factory) FamiliesToMeasure(ctx context.Context, s *measure.Sweep) ([]string, error) {
	devices, err := s.Executor.Devices(ctx)
	if err != nil || s.Device >= len(devices) {
		return nil, err
	}
	return f.familiesToMeasure(s.Data.Executor, devices[s.Device], s.Arch.Describe())
}

// familiesToMeasure returns the kernel families that the executor builds, the model predicts and --kernel allows, at
// least one, in the executor's order.
func (f *Factory) familiesToMeasure(executor string, device exec.Device, d *arch.Description) ([]string, error) {
	wanted := d.Kernels
	if f.Settings.Kernel != "" {
		family, err := ask.KernelFamily(d, f.Settings.Kernel)
		if err != nil {
			return nil, err
		}
		wanted = []string{family}
	}
	var families []string
	for _, family := range device.Kernels {
		if slices.Contains(wanted, family) {
			families = append(families, family)
		}
	}
	if families != nil {
		return families, nil
	}
	return nil, diag.Inputf("the executor %s builds the kernel families %s, and %s is wanted", executor,
		strings.Join(device.Kernels, ", "), strings.Join(wanted, ", ")).
		At("--executor %s", executor).Do("choose a model or a --kernel that both know")
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
		return 0, exec.Device{}, &diag.Error{Kind: diag.Device, Where: "executor " + name, What: "it found no device",
			Fix: "check the driver"}
	}
	return 0, exec.Device{}, diag.Inputf("this machine has %s, and the model describes %s", strings.Join(found, ", "),
		d.ID()).
		At("--executor %s", name).Do("use --arch %s", devices[0].Arch)
}

// Software names this program, with its version.
func Software() string {
	build := release.Build{Version: release.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		build = release.BuildOf(info)
	}
	return fmt.Sprintf("origami %s %s %s/%s", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
