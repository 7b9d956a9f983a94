package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// gpuHost is a Host with an executor that finds devices, or fails.
type gpuHost struct {
	session.InProcess
	devices       []exec.Device
	err           error
	asked, closed int
}

func (h *gpuHost) Executor(context.Context, string) (exec.Executor, error) {
	h.asked++
	return &executor{host: h}, nil
}

type executor struct {
	exec.Executor
	host *gpuHost
}

func (e *executor) Devices(context.Context) ([]exec.Device, error) { return e.host.devices, e.host.err }
func (e *executor) Close() error                                   { e.host.closed++; return nil }

func targetsOf(t *testing.T, h session.Host, archs []string, device string) ([]models.Found, error) {
	f := &session.Factory{
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) { return h, nil },
	}
	return f.Targets(t.Context(), archs, device)
}

func TestTargetsOfThisMachine(t *testing.T) {
	h := &gpuHost{InProcess: session.InProcess{Providers: fakearch.Providers()}, devices: []exec.Device{
		{Name: "Acme Prototype", Arch: "toy1", Attributes: map[string]float64{"units": 3}},
		{Name: "Acme Mono", Arch: "toy2"},
		{Name: "Acme Future", Arch: "toy9"},
	}}
	for _, tc := range []struct {
		archs, device, want string // arch@device of each target, or an error
	}{
		{"", "auto", "toy1@auto"},
		{"auto", "", "toy1@auto"},
		{"AUTO:1", "", "toy2@mono"},
		{"toy2", "auto", "toy2@mono"},
		{"TOY2@auto", "", "toy2@mono"},
		{"toy1@auto:0 toy1@big auto:1", "", "toy1@auto toy1@big toy2@mono"},
		{"toy1@auto toy2", "auto", "toy1@auto toy2@mono"},
		{"toy1 toy2", "auto", "it is not clear"},
		{"toy1@auto:1", "", "no such GPU"},
		{"auto:3", "", "no such GPU"},
		{"auto:x", "", "no such GPU"},
		{"auto:", "", "unknown architecture"},
		{"auto:2", "", "Acme Future has the architecture toy9"},
	} {
		h.asked, h.closed = 0, 0
		targets, err := targetsOf(t, h, strings.Fields(tc.archs), tc.device)
		var ids []string
		for _, m := range targets {
			ids = append(ids, m.ID())
			if live := strings.HasSuffix(m.ID(), "@auto") || m.Device.ID == "mono"; live != (m.Live != nil) {
				t.Errorf("%s %s: %s has live device %+v", tc.archs, tc.device, m.ID(), m.Live)
			}
		}
		if got := strings.Join(ids, " "); err == nil && got != tc.want || err != nil &&
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("--arch %q --device %q: %s, %v; want %s", tc.archs, tc.device, got, err, tc.want)
		}
		must.That(t, h.asked <= 1 && h.closed == h.asked,
			"--arch %q --device %q: %d executors opened, %d closed", tc.archs, tc.device, h.asked, h.closed)
	}

	// The request keeps the driver's numbers. It names a device of the catalogue, and leaves another one unnamed.
	targets := must.Get(targetsOf(t, h, []string{"auto:0", "auto:1"}, ""))(t)
	r := targets[0].OpenRequest
	must.That(t, r.Arch == "toy1" && r.Device == "" && r.Live.Name == "Acme Prototype" &&
		r.Live.Attributes["units"] == 3, "request %+v of %+v", r, r.Live)
	r = targets[1].OpenRequest
	must.That(t, r.Arch == "toy2" && r.Device == "mono" && r.Live.Name == "Acme Mono", "request %+v", r)

	// A failure keeps its kind and says which flag asked.
	h.err = errors.New("the bus is on fire")
	if _, err := targetsOf(t, h, nil, "auto"); err == nil || err.Error() != "--device auto: the bus is on fire" {
		t.Errorf("%v", err)
	}
	h.err, h.devices = nil, nil
	if _, err := targetsOf(t, h, nil, "auto"); diag.KindOf(err) != diag.Device {
		t.Errorf("no GPU: %v", err)
	}
}
