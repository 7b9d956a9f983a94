package session

import (
	"context"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
)

// DeviceAuto is the --device that means a GPU of this machine: the first one, or with ":" and a number the GPU with
// that number, from 0, in the driver's order.
const DeviceAuto = arch.LiveID

// cutLive splits "auto", "auto:1", "sm90@auto" and "sm90@auto:1". number is empty if the name has none.
func cutLive(name string) (archID, number string, live bool) {
	device := name
	if before, behind, ok := strings.Cut(name, "@"); ok {
		archID, device = before, behind
	}
	device, number, numbered := strings.Cut(device, ":")
	return archID, number, strings.EqualFold(device, DeviceAuto) && (number != "" || !numbered)
}

// NamesGPU reports whether a name of an architecture or a device means a GPU of this machine.
func NamesGPU(name string) bool {
	_, _, live := cutLive(name)
	return live
}

// findLive finds the GPU of this machine that name means: the GPU with the number, or the first GPU of the
// architecture, or the first GPU.
func (f *Factory) findLive(ctx context.Context, name, archID, number string) (arch.Match, error) {
	place := "--device " + name
	gpus, err := f.listGPUs(ctx)
	if err != nil {
		return arch.Match{}, diag.Within(place, err)
	}
	found := make([]string, len(gpus))
	for i, g := range gpus {
		found[i] = strconv.Itoa(i) + " " + g.Name + " (" + g.Arch + ")"
	}
	chosen := -1
	for i, g := range gpus {
		if (archID == "" || strings.EqualFold(archID, g.Arch)) && (number == "" || number == strconv.Itoa(i)) {
			chosen = i
			break
		}
	}
	if chosen < 0 {
		return arch.Match{}, &diag.Error{Kind: diag.Device, Where: place, What: "this machine has no such GPU",
			Fix: "it has " + strings.Join(found, ", ")}
	}
	g := &gpus[chosen]
	live := &arch.LiveDevice{Name: g.Name, Attributes: g.Attributes}
	if f.file != nil && f.file.header.Name == g.Name && f.file.header.Arch == g.Arch {
		return f.fromFile(ctx, live)
	}
	m, err := f.host.FindLive(ctx, g.Arch, live)
	if err != nil {
		return arch.Match{}, diag.Within(place, err)
	}
	return m, nil
}

// listGPUs asks the executor for the GPUs of this machine, once. Without an executor, a driver or a GPU the error is of
// kind diag.Device.
func (f *Factory) listGPUs(ctx context.Context) ([]exec.Device, error) {
	if f.gpus != nil {
		return f.gpus, nil
	}
	e, err := f.host.Executor(ctx, "")
	if err != nil {
		return nil, err
	}
	gpus, err := e.Devices(ctx)
	if closed := e.Close(); err == nil {
		err = closed
	}
	if err == nil && len(gpus) == 0 {
		err = &diag.Error{Kind: diag.Device, What: "this machine has no GPU that can be used",
			Fix: "name the device, as in --arch sm90@h200; `origami arch ls` lists them"}
	}
	f.gpus = gpus
	return gpus, err
}
