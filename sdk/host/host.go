// Package host finds plugins, starts them on demand, opens architectures in them and runs kernels with them. A plugin
// that is missing or untrusted, dies, hangs or answers nonsense is an error of kind diag.Plugin. Other plugins are
// not affected.
package host

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/host/info"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Builtin is a plugin inside a program that can run itself as one.
type Builtin struct {
	Manifest arch.Manifest
	// Args make Options.Self serve this plugin, as {"plugin", "serve", "nvidia"}.
	Args []string
}

// Options are the places of plugins and the time limits. The zero value has no plugins.
type Options struct {
	// Self is the program that serves the built-ins; empty means the running one.
	Self     string
	Builtins []Builtin
	// Plugins are plugin binaries that the user named. SearchPath are directories in which every executable file
	// whose name starts with Prefix is a plugin. Of plugins with the same name or the same architecture the first
	// wins, in the order Plugins, Builtins, SearchPath, the binaries at their paths in LockFile.
	Plugins    []string
	SearchPath []string
	// LockFile holds the SHA-256 and the path of each trusted binary (see Trust). Other binaries are never run.
	LockFile string
	// Bundled has the SHA-256 of each binary that was built with this program and stands beside it, by plugin name.
	// They are trusted, unless the lock file has another entry of that name.
	Bundled map[string]string
	// TrustNamed runs Plugins without an entry in the lock file: naming them was the consent. They must still have
	// the hash that they had when the host looked for plugins.
	TrustNamed bool
	// DescribeCache is a directory for the descriptions of plugins, so that a plugin is not started only to describe
	// itself. It is created if necessary. Empty: no cache.
	DescribeCache string
	// Logger receives which model of which plugin was opened, and the log lines of the plugins, under their names. nil
	// drops them.
	Logger hclog.Logger
	// Warn, if set, receives what the user should know at once: a refused lock file, a plugin that is awaited or left
	// out, a file that others may replace. Otherwise the log has it. Warn may be called from several goroutines.
	Warn func(text string)
	// StartTimeout limits a start, including the first answer; 0 means 10 s.
	StartTimeout time.Duration
	// DescribeTimeout limits the wait for a plugin to describe itself when another plugin may be the one that is
	// needed; 0 means 1 s. A plugin that must be asked is waited for up to StartTimeout.
	DescribeTimeout time.Duration
	// CallTimeout limits each call. A plugin that exceeds it counts as hung and is killed; 0 means 30 s. RunTimeout
	// is the same for a plugin that compiles and runs kernels.
	CallTimeout, RunTimeout time.Duration
}

// Prefix is how the file name of a plugin binary starts; the rest is the plugin's name.
const Prefix = "origami-plugin-"

// State says whether a plugin can be used. Package info has it for those who need no process.
type State = info.State

// The states.
const (
	OK      = info.OK
	Skipped = info.Skipped
	Error   = info.Error
	Unasked = info.Unasked
)

// PluginInfo describes a plugin that was found.
type PluginInfo = info.Plugin

// Optional is what a plugin may have beside arch.Provider. Its manifest says what it has.
type Optional = info.Optional

// Host runs plugins. It is safe for concurrent use. Close it.
type Host struct {
	options Options
	ctx     context.Context // until Close
	cancel  context.CancelFunc

	locking   sync.Once // of reading the lock file
	searching sync.Once
	closing   sync.Once
	sockets   sockets

	first []*inquiry // that come before all others

	mu      sync.Mutex
	locked  map[string]lockEntry
	lockErr error
	others  []*inquiry // once they are searched for
	warned  map[string]bool
	own     []*program // of OwnExecutor
}

// New returns a Host. It starts and reads nothing yet.
func New(o Options) *Host {
	if o.Self == "" {
		// Captured now: the file may be replaced later. Linux tells it through /proc, which a chroot may lack: an empty one
		// fails at the start.
		o.Self, _ = os.Executable()
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Second
	}
	if o.DescribeTimeout == 0 {
		o.DescribeTimeout = time.Second
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.RunTimeout == 0 {
		o.RunTimeout = 30 * time.Second
	}
	h := &Host{options: o, warned: map[string]bool{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.first = h.comeFirst()
	return h
}

// warn tells the user something, once.
func (h *Host) warn(text string) {
	h.mu.Lock()
	again := h.warned[text]
	h.warned[text] = true
	h.mu.Unlock()
	switch {
	case again:
	case h.options.Warn != nil:
		h.options.Warn(text)
	default:
		h.options.Logger.Warn(text)
	}
}

// Open opens an architecture in the plugin that provides it and starts that plugin if necessary. r.Arch is any name
// that arch.Find accepts; r.Device, if set, is one of its devices. The result also implements selector.Ranker.
func (h *Host) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	if h.ctx.Err() != nil {
		return nil, errClosed
	}
	f, r, err := h.resolve(ctx, r)
	if err != nil {
		return nil, err
	}
	a, err := wire.NewClient(f.info.Name, f.program).Open(ctx, r)
	if err != nil {
		return nil, err
	}
	d := a.Describe()
	h.options.Logger.Debug("opened", "plugin", f.info.Name, "version", f.info.Version, "device", d.ID(), "model", d.Model,
		"rung", d.Rung, "kernels", strings.Join(d.Kernels, ","))
	return a, nil
}

// Connection returns the connection to the plugin of this name, for a caller that speaks the protocol itself. Its
// calls are treated like those of Open and Executor: each is limited in time, and after the plugin has died the next
// call starts a new process. It is valid until the host is closed.
func (h *Host) Connection(ctx context.Context, name string) (grpc.ClientConnInterface, error) {
	f, err := h.called(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, diag.Inputf("unknown plugin %q", name).Coded(diag.CodeUnknownPlugin, "")
	case f.info.State != OK:
		return nil, f.info.Err()
	case f.info.Executor:
		return f.program.executor(), nil
	default:
		return f.program, nil
	}
}

// Optional returns the optional interfaces of the plugin of this name, in its process.
func (h *Host) Optional(ctx context.Context, name string) (Optional, error) {
	conn, err := h.Connection(ctx, name)
	if err != nil {
		return nil, err
	}
	return wire.NewClient(name, conn), nil
}

// Close stops all plugins and waits until their processes have ended. Calls in progress fail.
func (h *Host) Close() error {
	h.cancel()
	h.closing.Do(func() {
		var wg sync.WaitGroup
		for _, q := range h.listed() {
			wg.Go(func() {
				if f := q.end(); f.program != nil {
					f.program.end()
				}
			})
		}
		h.mu.Lock()
		own := h.own
		h.mu.Unlock()
		for _, p := range own {
			wg.Go(p.end)
		}
		wg.Wait()
	})
	return nil
}

// CloseOnSignal returns a context that is cancelled on SIGINT or SIGTERM, which also closes the host. A second signal
// ends the process at once. stop restores the default handling of signals and closes the host. A command defers stop
// right after New.
func (h *Host) CloseOnSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, release := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		release()
		_ = h.Close()
	})
	return ctx, func() {
		release()
		_ = h.Close()
	}
}
