package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
)

// deviceFile is the file that --device-file names.
type deviceFile struct {
	name   string
	header hw.Header
	data   []byte
}

// readDeviceFile reads --device-file, once.
func (f *Factory) readDeviceFile(ctx context.Context) error {
	name := f.Settings.DeviceFile
	if name == "" || f.file != nil {
		return nil
	}
	data, err := readFile(ctx, name, limit.Text, "give the file of one device")
	if limit.Exceeded(err) != nil {
		return err
	} else if err != nil {
		return diag.Inputf("the device file cannot be read: %v", err).At("%s", name).
			Do("check --device-file and ORIGAMI_DEVICE_FILE")
	}
	sheet, err := hw.DecodeSheet(name, data)
	if err != nil {
		return err
	}
	f.file = &deviceFile{name: name, header: sheet.Header, data: data}
	return nil
}

// is reports whether a name means the device of the file: its architecture, "arch@device", the device or an alias.
func (d *deviceFile) is(name string) bool {
	if d == nil {
		return false
	}
	archName, device, has := strings.Cut(name, "@")
	if !has && strings.EqualFold(name, d.header.Arch) {
		return true
	}
	if !has {
		archName, device = d.header.Arch, name
	}
	return strings.EqualFold(archName, d.header.Arch) && (strings.EqualFold(device, d.header.Device) ||
		slices.ContainsFunc(d.header.Aliases, func(alias string) bool { return strings.EqualFold(alias, device) }))
}

// fromFile returns the device of the file. live is the GPU in this machine that it describes, nil if it need not be in
// this machine.
func (f *Factory) fromFile(ctx context.Context, live *arch.LiveDevice) (arch.Match, error) {
	m, err := f.host.Find(ctx, f.file.header.Arch)
	if err != nil {
		var d *diag.Error
		if errors.As(err, &d) {
			return m, d.At("%s", f.file.name)
		}
		return m, err
	}
	m.Device = &arch.DeviceEntry{ID: f.file.header.Device, Name: f.file.header.Name, Aliases: f.file.header.Aliases}
	m.Live, m.DeviceFile = live, f.file.data
	return m, nil
}
