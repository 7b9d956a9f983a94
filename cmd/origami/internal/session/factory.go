// Package session leads from flags and settings to results: it connects to the plugins, finds the architectures that
// the user names, opens their models and executors, reads the problems, and asks. It knows no vendor; all that it
// knows about plugins comes from their manifests.
package session

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/sdk/host/info"
)

// Factory makes what a verb needs: streams, settings, plugins, architectures and executors. It makes each on demand, so
// that `origami version` starts no plugin.
type Factory struct {
	Streams *iostreams.Streams
	Getenv  func(string) string
	// Args are the words of the command line, for what is kept to say how it was made.
	Args []string
	// Connect reaches the plugins. It is called at most once, when a verb first needs a plugin. warn is told what the
	// user should know at once.
	Connect func(ctx context.Context, s config.Settings, warn func(text string)) (Host, error)

	// Settings and PluginOptions, the words of --option, are valid after Configure.
	Settings      config.Settings
	PluginOptions []string
	// Corrected corrects an opened model by what a command was given. It may be nil.
	Corrected func(context.Context, arch.Architecture) (arch.Architecture, error)

	host       Host          // nil until Connect was called
	gpus       []exec.Device // the GPUs of this machine; nil until an executor was asked
	reading    sync.Mutex    // of files that several models need
	deviceFile string        // the text of --device-file, empty until it is read
}

// ErrInterrupted marks an error that says what is left after an interrupt. Every other error after an interrupt is
// reported as "interrupted" and nothing more.
var ErrInterrupted = errors.New("interrupted")

// Format returns the format that the settings ask for, a table by default.
func (f *Factory) Format() show.Format { return cmp.Or(show.Format(f.Settings.Format), show.Table) }

// connect reaches the plugins, once.
func (f *Factory) connect(ctx context.Context) error {
	if f.host != nil {
		return nil
	}
	h, err := f.Connect(ctx, f.Settings, f.Streams.Warn)
	if err != nil {
		return err
	}
	f.host = h
	return nil
}

// Manifests asks every plugin and returns the manifests of those that work.
func (f *Factory) Manifests(ctx context.Context) ([]arch.Manifest, error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	return f.host.Manifests(ctx)
}

// Plugins asks every plugin and lists them.
func (f *Factory) Plugins(ctx context.Context) ([]info.Plugin, error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	return f.host.Plugins(ctx)
}

// LockError returns why the lock file is refused, after plugins were looked for.
func (f *Factory) LockError() error { return f.host.LockError() }

// For returns a factory with the same settings and plugins, for a question whose answer goes elsewhere. The plugins
// must have been reached, as Manifests does, and end with the first factory.
func (f *Factory) For(s *iostreams.Streams) *Factory {
	return &Factory{Streams: s, Getenv: f.Getenv, Args: f.Args, Settings: f.Settings, PluginOptions: f.PluginOptions,
		host: f.host}
}

// Close ends the plugins.
func (f *Factory) Close() error {
	if f.host == nil {
		return nil
	}
	return f.host.Close()
}
