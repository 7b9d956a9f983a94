package session

import (
	"context"
	"io"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/sdk/host/info"
)

// Host reaches plugins. *host.Host is one over processes, InProcess one over providers in this process. Both give
// bit-equal answers.
type Host interface {
	// A host asks no more plugins than it needs to find an architecture.
	models.Source
	// Plugins asks every plugin and lists them, the skipped and the failed ones included.
	Plugins(ctx context.Context) ([]info.Plugin, error)
	// Known lists the plugins that were looked for so far. It asks none.
	Known() []info.Plugin
	// LockError returns why the lock file is refused, if a plugin was looked for in it.
	LockError() error
	// Manifests asks every plugin and returns what the working ones provide, in order of precedence.
	Manifests(ctx context.Context) ([]arch.Manifest, error)
	// Optional returns the optional interfaces of the plugin of that name. Its manifest says what it has.
	Optional(ctx context.Context, plugin string) (info.Optional, error)
	// Executor returns the executor of the plugin of that name, or of the first that runs kernels. Without one the
	// error is of kind diag.Device.
	Executor(ctx context.Context, name string) (exec.Executor, error)
	// OwnExecutor is Executor in a process of its own.
	OwnExecutor(ctx context.Context, name string) (exec.Executor, error)
	// Remote returns the executor of that name at the other end of a shell command, where Lend runs, and its version.
	Remote(ctx context.Context, name, command string) (_ exec.Executor, version string, err error)
	Lend(ctx context.Context, name string, in io.Reader, out io.Writer) error
	// Close ends the plugins.
	Close() error
}

// InProcess is a Host over providers in this process, for --in-process and for tests.
type InProcess struct{ models.Providers }

// Plugins implements Host.
func (h InProcess) Plugins(context.Context) ([]info.Plugin, error) { return h.Known(), nil }

// LockError implements Host.
func (h InProcess) LockError() error { return nil }

// Known implements Host.
func (h InProcess) Known() []info.Plugin {
	infos := make([]info.Plugin, len(h.Providers))
	for i, p := range h.Providers {
		m := p.Manifest()
		infos[i] = info.Plugin{Name: m.Name, Builtin: true, Version: m.Version, State: info.OK}
		for _, a := range m.Archs {
			infos[i].Archs = append(infos[i].Archs, a.ID)
		}
	}
	return infos
}

// Optional implements Host.
func (h InProcess) Optional(_ context.Context, plugin string) (info.Optional, error) {
	o, ok := h.Named(plugin).(info.Optional)
	if !ok {
		return nil, diag.Inputf("the plugin %s has no optional interfaces", plugin)
	}
	return o, nil
}

// Executor implements Host: kernels run in plugins only.
func (h InProcess) Executor(context.Context, string) (exec.Executor, error) {
	return nil, &diag.Error{Kind: diag.Device, Where: "--in-process", What: "kernels run in plugins only",
		Fix: "leave it out"}
}

// OwnExecutor implements Host.
func (h InProcess) OwnExecutor(ctx context.Context, name string) (exec.Executor, error) {
	return h.Executor(ctx, name)
}

// Remote implements Host.
func (h InProcess) Remote(ctx context.Context, name, _ string) (x exec.Executor, version string, err error) {
	x, err = h.Executor(ctx, name)
	return x, "", err
}

// Lend implements Host.
func (h InProcess) Lend(ctx context.Context, name string, _ io.Reader, _ io.Writer) error {
	_, err := h.Executor(ctx, name)
	return err
}

// Close implements Host.
func (h InProcess) Close() error { return nil }
