// Package builtins reaches the plugins that are part of this binary, and all others.
package builtins

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	shipped "github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/export"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/serve"
)

// bundled are the executors that stand beside this command in a wheel, as "cuda=SHA256,triton=SHA256". The linker sets
// it.
var bundled string

// Connect reaches the plugins under the given settings: over processes, or with --in-process the built-in ones in this
// one. warn is told what the user should know at once.
func Connect(_ context.Context, s config.Settings, warn func(string)) (session.Host, error) {
	inProcess := make(models.Providers, len(shipped.Plugins))
	for i, b := range shipped.Plugins {
		var err error
		if inProcess[i], err = provider(b); err != nil {
			return nil, err
		}
	}
	if s.InProcess {
		if len(s.Plugins) > 0 {
			return nil, diag.Inputf("--in-process answers without plugins").At("--plugin").Do("leave one of them out")
		}
		return session.InProcess{Providers: inProcess}, nil
	}
	builtins := make([]host.Builtin, len(shipped.Plugins))
	for i, b := range shipped.Plugins {
		builtins[i] = host.Builtin{Manifest: inProcess[i].Manifest(), Args: []string{"plugin", "serve", b.Name}}
	}
	o := options(s, warn)
	o.Builtins, o.Plugins, o.SearchPath, o.LockFile = builtins, s.Plugins, s.PluginPath, s.LockFile
	o.Bundled = map[string]string{}
	for one := range strings.SplitSeq(bundled, ",") {
		if name, sum, ok := strings.Cut(one, "="); ok {
			o.Bundled[name] = sum
		}
	}
	return host.New(o), nil
}

// ConnectTo reaches the plugin binary at path and no other, trusted or not.
func ConnectTo(s config.Settings, path string, warn func(string)) *host.Host {
	o := options(s, warn)
	o.Plugins, o.TrustNamed = []string{path}, true
	return host.New(o)
}

// cacheDir is the folder for the descriptions of plugins, empty if there is none.
func cacheDir() string {
	cache, err := os.UserCacheDir()
	if err != nil || !filepath.IsAbs(cache) {
		return "" // a folder of the working directory is not the user's
	}
	return filepath.Join(cache, "origami", "plugins")
}

func options(s config.Settings, warn func(string)) host.Options {
	return host.Options{
		DescribeCache: cacheDir(), Warn: warn,
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: "origami", Level: hclog.LevelFromString(s.LogLevel), Output: iostreams.Log(os.Stderr),
		}),
		StartTimeout: s.Timeout, CallTimeout: s.Timeout, RunTimeout: s.Timeout,
	}
}

// Started returns the built-in plugin that a host started this program as.
func Started(args []string) (name string, ok bool) {
	if len(args) != 3 || args[0] != "plugin" || args[1] != "serve" || !serve.Started() {
		return "", false
	}
	return args[2], true
}

// Serve serves a built-in plugin to the process that started this one.
func Serve(name string) error {
	b, err := find(name)
	if err != nil {
		return err
	}
	if !serve.Started() {
		return diag.Inputf("the plugin %s is served to origami, which starts it when it needs it", name).
			Do("ask origami instead, as in `origami arch ls`")
	}
	p, err := provider(b)
	if err != nil {
		return err
	}
	serve.Serve(p)
	return nil
}

// Trust enters a plugin binary in the lock file. Then it asks the plugin to describe itself, without the hurry of a
// command that waits for many: from now on the description is cached. A plugin that cannot be used is trusted too, and
// a warning says why it cannot be used.
func Trust(ctx context.Context, s config.Settings, path string, warn func(string)) (name string, err error) {
	name, err = host.Trust(ctx, s.LockFile, path)
	if err != nil {
		return name, err
	}
	o := options(s, warn)
	o.Plugins, o.LockFile = []string{path}, s.LockFile
	h := host.New(o)
	defer func() { _ = h.Close() }()
	plugins, err := h.Plugins(ctx)
	if err != nil {
		return name, err
	}
	if failure := plugins[0].Err(); failure != nil {
		warn(failure.Error())
	}
	return name, nil
}

// Distrust takes a plugin out of the lock file, and its description out of the cache.
func Distrust(ctx context.Context, s config.Settings, plugin string) (name string, err error) {
	if name, err = host.Distrust(ctx, s.LockFile, plugin); err != nil {
		return name, err
	}
	return name, host.Forget(cacheDir(), name)
}

func provider(b shipped.Plugin) (arch.Provider, error) {
	p, err := b.Provider()
	if err != nil {
		return nil, &diag.Error{Kind: diag.Plugin, Where: "plugin " + b.Name, What: err.Error(),
			Fix: "report it: a built-in device file is broken", Err: err}
	}
	return p, nil
}

// find returns the built-in plugin of that name.
func find(name string) (shipped.Plugin, error) {
	var names []string
	for _, b := range shipped.Plugins {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return shipped.Plugin{}, diag.Inputf("there is no built-in plugin %q", name).
		Do("the built-in plugins: %s", strings.Join(names, ", "))
}

// Export generates a kernel of the built-in families, for `origami export`.
func Export(d *arch.Description, p gemm.Problem, c gemm.Config, adds bool) ([]pickcmd.File, error) {
	k, err := export.For(d, p, c, adds)
	if err != nil {
		return nil, err
	}
	files, err := k.Files()
	out := make([]pickcmd.File, len(files))
	for i, one := range files {
		out[i] = pickcmd.File(one)
	}
	return out, err
}
