// Package host finds plugins, starts them when they are needed, opens architectures in them and runs kernels with
// them. A plugin that is missing, untrusted, dies, hangs or answers nonsense is an error of kind diag.Plugin about
// that plugin; the others go on working.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Builtin is a plugin inside a program that can run itself as one.
type Builtin struct {
	Manifest arch.Manifest
	// Args make Options.Self serve this plugin, as {"plugin", "serve", "nvidia"}.
	Args []string
}

// Options says where plugins come from and how patient to be. The zero value knows no plugin.
type Options struct {
	// Self is the program that serves the built-ins; empty means the running one.
	Self     string
	Builtins []Builtin
	// Plugins are plugin binaries named by the user. SearchPath are directories in which every executable file whose
	// name starts with Prefix is a plugin. For equal plugin names and for equal architectures the first wins: Plugins,
	// SearchPath, the trusted binaries where LockFile says they are, Builtins, each in order.
	Plugins    []string
	SearchPath []string
	// LockFile holds the SHA-256 of each trusted binary, and where it is (see Trust). A binary that is not in it is not
	// run at all.
	LockFile string
	// TrustNamed runs Plugins without an entry in the lock file: naming them was the consent. What runs is pinned all the
	// same, by the hash that the file has when plugins are looked for.
	TrustNamed bool
	// DescribeCache is a directory in which what plugins say about themselves is kept, so that they are not started to be
	// asked; it is made if need be. Empty asks each time.
	DescribeCache string
	// Logger gets the plugins' log lines, under their names; nil drops them.
	Logger hclog.Logger
	// StartTimeout bounds a start up to the first answer; 0 means 10 s.
	StartTimeout time.Duration
	// CallTimeout bounds each call, after which the plugin counts as hung and is killed; 0 means 30 s. RunTimeout is the
	// same for a plugin that compiles and runs kernels.
	CallTimeout, RunTimeout time.Duration
}

// Prefix is how the file name of a plugin binary starts; the rest is the plugin's name.
const Prefix = "origami-plugin-"

// State says whether a plugin can be used.
type State string

// The states.
const (
	OK      State = "ok"
	Skipped State = "skipped" // left out on purpose; the reason says why
	Error   State = "error"   // tried, and failed
)

// PluginInfo describes a plugin that was found.
type PluginInfo struct {
	Name, Version string
	Builtin       bool
	// Named says that the user named this binary (Options.Plugins).
	Named bool
	// Path is the program that runs; SHA256 is its hash in hexadecimal, empty for built-ins.
	Path, SHA256 string
	APIVersions  []string
	// Protocols are the wire protocols that it speaks.
	Protocols []int
	// Archs are the ids of the architectures that it provides and no plugin before it does.
	Archs []string
	// Executor says that it runs kernels.
	Executor bool
	State    State
	Reason   string
	// Code names the reason for front ends, where they may have a hint for it.
	Code diag.Code
}

// Err returns why the plugin cannot be used, nil if it can.
func (p *PluginInfo) Err() *diag.Error {
	if p.State == OK {
		return nil
	}
	subject := p.Path
	if p.Code == diag.CodeMissingPlugin {
		subject = p.Name
	}
	return &diag.Error{Kind: diag.Plugin, Where: "plugin " + p.Name, What: p.Reason, Code: p.Code, Subject: subject}
}

// Host runs plugins. It is safe for concurrent use. Close it.
type Host struct {
	options Options
	ctx     context.Context // until Close
	cancel  context.CancelFunc

	discovery sync.Once
	found     []*found
	closing   sync.Once
	sockets   sockets
}

// New returns a Host. It starts and reads nothing yet.
func New(o Options) *Host {
	if o.Self == "" {
		o.Self, _ = os.Executable() // captured now: the file may be replaced later. An empty one fails at the start.
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Second
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.RunTimeout == 0 {
		o.RunTimeout = 30 * time.Second
	}
	h := &Host{options: o}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Plugins lists every plugin that was found, usable or not, in order of precedence.
func (h *Host) Plugins() []PluginInfo {
	infos := make([]PluginInfo, 0, len(h.plugins()))
	for _, f := range h.plugins() {
		infos = append(infos, f.info)
	}
	return infos
}

// Manifests returns which architectures the usable plugins provide, in order of precedence. An architecture is in the
// first that has it only.
func (h *Host) Manifests() []arch.Manifest {
	var manifests []arch.Manifest
	for _, f := range h.plugins() {
		if f.info.State == OK && f.manifest.Name != "" {
			manifests = append(manifests, f.manifest)
		}
	}
	return manifests
}

// Open opens an architecture in the plugin that provides it, starting that plugin if need be. r.Arch is anything that
// arch.Find takes; r.Device, if set, is a device of it. What comes back also implements selector.Ranker.
func (h *Host) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	if h.ctx.Err() != nil {
		return nil, errClosed
	}
	f, r, err := h.resolve(r)
	if err != nil {
		return nil, err
	}
	a, err := wire.NewClient(f.info.Name, f.program).Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Connection returns the connection to the plugin of that name, for a caller that speaks its protocol itself. Calls
// over it are treated as those of Open and Executor are: each is bounded in time, and after a death the next one
// starts a fresh process. It lasts as long as the host.
func (h *Host) Connection(name string) (grpc.ClientConnInterface, error) {
	for _, f := range h.plugins() {
		switch {
		case f.info.Name != name:
		case f.info.State != OK:
			return nil, f.info.Err()
		case f.info.Executor:
			return f.program.executor(), nil
		default:
			return f.program, nil
		}
	}
	return nil, diag.Inputf("there is no plugin %q", name).Coded(diag.CodeUnknownPlugin, "")
}

// Close stops all plugins and waits until their processes have ended. Calls in progress fail.
func (h *Host) Close() error {
	h.cancel()
	h.closing.Do(func() {
		h.discovery.Do(func() {}) // wait for one in progress, begin none
		var wg sync.WaitGroup
		for _, f := range h.found {
			if f.program != nil {
				wg.Go(f.program.end)
			}
		}
		wg.Wait()
	})
	return nil
}

// CloseOnSignal returns a context that ends, with all plugins, on SIGINT or SIGTERM; a second signal ends the process
// at once. stop undoes this and closes the host. A command defers stop right after New.
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

// resolve finds the plugin for a request and puts ids in the place of aliases.
func (h *Host) resolve(r arch.OpenRequest) (*found, arch.OpenRequest, error) {
	name := r.Arch
	if r.Device != "" {
		name += "@" + r.Device
	}
	manifests := h.Manifests()
	m, err := arch.Find(manifests, name)
	if err != nil {
		return nil, r, h.mentionUnusable(err)
	}
	// Otherwise no device was named, and none is meant.
	if r.Live == nil || r.Device != "" || !strings.EqualFold(r.Arch, m.Arch.ID) {
		r.Device = m.Device.ID
	}
	r.Arch = m.Arch.ID
	for _, f := range h.plugins() {
		if f.info.State == OK && slices.Contains(f.info.Archs, r.Arch) { // its manifest may have another name than its file
			return f, r, nil
		}
	}
	return nil, r, fmt.Errorf("architecture %s was found and lost", r.Arch) // each is one plugin's
}

// mentionUnusable adds to an error about a name that plugins which cannot be used might have had it.
func (h *Host) mentionUnusable(err error) error {
	var unusable []string
	for _, f := range h.plugins() {
		if f.info.State != OK {
			unusable = append(unusable, f.info.Name)
		}
	}
	var d *diag.Error
	if len(unusable) == 0 || !errors.As(err, &d) {
		return err
	}
	return d.Also("plugins that cannot be used: %s", strings.Join(unusable, ", ")).Coded(diag.CodeUnusablePlugins, "")
}
