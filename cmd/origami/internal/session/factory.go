// Package app is what every verb is given: the streams, the settings in force, and a way to the plugins.
package app

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/host"
)

// App is the environment of one run.
type App struct {
	Streams *iostreams.Streams
	Getenv  func(string) string
	// Connect reaches the plugins. It is called at most once, by the first verb that needs one.
	Connect func(context.Context, config.Settings) (session.Host, error)

	// Settings are in force once Configure has run.
	Settings config.Settings

	host session.Host
}

// Configure loads the settings for a command.
func (a *App) Configure(cmd *cobra.Command) error {
	settings, err := config.Load(cmd.Flags(), a.Getenv)
	if err != nil {
		return err
	}
	a.Settings = settings
	a.Streams.JSONErrors = settings.Format == string(render.JSON)
	return nil
}

// Format returns the output format.
func (a *App) Format() render.Format { return render.FormatFor(a.Settings.Format, a.Streams) }

// Session connects to the plugins.
func (a *App) Session(ctx context.Context) (*session.Session, error) {
	if a.host == nil {
		h, err := a.Connect(ctx, a.Settings)
		if err != nil {
			return nil, err
		}
		a.host = h
	}
	return session.New(a.host), nil
}

// Executor opens the executor of the plugin of that name. It ends with the plugins.
func (a *App) Executor(ctx context.Context, name string) (exec.Executor, error) {
	if _, err := a.Session(ctx); err != nil {
		return nil, err
	}
	return a.host.Executor(ctx, name)
}

// PluginVersion returns the version of the plugin of that name, once it has been reached.
func (a *App) PluginVersion(name string) string {
	for _, p := range a.host.Plugins() {
		if p.Name == name {
			return p.Version
		}
	}
	return ""
}

// ErrInterrupted is the cause of an error that says what an interrupt has left. Any other error that comes of one is told
// as "interrupted" alone.
var ErrInterrupted = errors.New("interrupted")

// Close ends the plugins.
func (a *App) Close() error {
	if a.host == nil {
		return nil
	}
	return a.host.Close()
}

// Selection is what the persistent flags select.
type Selection struct {
	*session.Session
	Targets []arch.Match
	Open    session.OpenOptions
}

// Select resolves --arch, --device, --model, --rung, --kernels, --characterization, --option and --hw-params. archs and device come from Settings or, for
// `arch show`, from the arguments.
func (a *App) Select(ctx context.Context, archs []string, device string, options []string) (*Selection, error) {
	parsed, err := session.ParseOptions(options)
	if err != nil {
		return nil, err
	}
	s, err := a.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkPlugins(s); err != nil {
		return nil, err
	}
	sel := &Selection{Session: s, Open: session.OpenOptions{Model: a.Settings.Model, Options: parsed, Rung: arch.Rung(a.Settings.Rung)}}
	if sel.Targets, err = s.Targets(ctx, archs, device); err != nil {
		return nil, err
	}
	if err := session.CheckOptions(parsed, sel.Targets); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		flag, file string
		into       *[]byte
	}{{"--kernels", a.Settings.KernelsFile, &sel.Open.Compiled}, {"--characterization", a.Settings.CharacterizationFile, &sel.Open.Characterization}} {
		if f.file == "" {
			continue
		}
		if len(sel.Targets) > 1 {
			return nil, diag.Inputf("the file is about the kernels of one device, and %d are selected", len(sel.Targets)).At("%s %s", f.flag, f.file).Do("leave it out")
		}
		if *f.into, err = readFile(f.file, limit.Table, "leave rows out"); limit.Exceeded(err) != nil {
			return nil, err
		} else if err != nil {
			return nil, diag.Inputf("it cannot be read: %v", err).At("%s %s", f.flag, f.file).Do("check the file")
		}
	}
	if file := a.Settings.HWParams; file != "" {
		data, err := readFile(file, limit.Text, "give a file of hardware numbers")
		if limit.Exceeded(err) != nil {
			return nil, err
		} else if err != nil {
			return nil, diag.Inputf("the hardware numbers cannot be read: %v", err).At("%s", file).Do("check --hw-params, ORIGAMI_HW_PARAMS and TRITONBLAS_HW_PARAMS")
		}
		sel.Open.OverrideFile = file
		overrides, err := hw.ParseOverrides(file, data)
		if err != nil {
			return nil, err
		}
		if sel.Open.Overrides, err = s.CheckOverrides(file, overrides, sel.Targets); err != nil {
			return nil, err
		}
	}
	return sel, nil
}

// readFile reads a file whole, through gzip where its name ends in .gz. The error does not repeat the name, unless it is
// limit's.
func readFile(name string, most limit.Size, fix string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { _ = f.Close() }()
	in := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, cause(err)
		}
	}
	data, err := limit.ReadAll(in, name, most, fix)
	return data, cause(err)
}

// cause drops the operation and the path, which the message has anyway.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// checkPlugins refuses to answer without a plugin that the user named and that cannot be used: the answer might be
// another one's.
func checkPlugins(s *session.Session) error {
	for _, p := range s.Plugins() {
		if p.Named && p.State != host.OK {
			return &diag.Error{Kind: diag.Plugin, Where: "plugin " + p.Path, What: p.Reason}
		}
	}
	return nil
}

// OpenOne resolves the flags to exactly one architecture and opens it.
func (a *App) OpenOne(ctx context.Context, options []string) (arch.Architecture, error) {
	sel, err := a.Select(ctx, a.Settings.Arch, a.Settings.Device, options)
	if err != nil {
		return nil, err
	}
	if len(sel.Targets) > 1 {
		return nil, diag.Inputf("%d architectures are given, and this command answers for one", len(sel.Targets)).At("--arch").
			Do("leave one, or use `origami compare`")
	}
	return sel.Session.Open(ctx, sel.Targets[0], sel.Open)
}

// Options returns the words of --option.
func Options(cmd *cobra.Command) []string {
	words, err := cmd.Flags().GetStringArray("option")
	if err != nil {
		return nil // a command without the flag has no options
	}
	return words
}
