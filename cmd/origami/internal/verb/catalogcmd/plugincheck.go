package catalogcmd

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/wire"
)

func newCheck(f *session.Factory, connect func(config.Settings, string, func(string)) *host.Host) *cobra.Command {
	var o conformance.Options
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Check a plugin binary",
		Long: "Run a plugin binary and check what origami relies on: determinism, monotonicity, units, errors,\n" +
			"speed, cancellation, the protocol. A line per check says ok, FAIL or skip, and lists the findings.\n" +
			"docs/conformance.md describes the checks. If one fails, the exit code is 3.\n\n" +
			"The binary runs even if it is not trusted: you named it. It is not entered in the lock file.",
		Example: "  origami plugin check ./origami-plugin-mine\n" +
			"  origami plugin check ./origami-plugin-mine --json\n" +
			"  origami plugin check ./origami-plugin-mine --golden testdata/golden.jsonl",
		Args: session.OneArgument("PATH", "the plugin binary"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.UpdateGolden && o.Golden == "" {
				return diag.Inputf("there is no file to write").At("--update-golden").Do("name it with --golden FILE")
			}
			o.RequireDevice = f.Getenv("ORIGAMI_REQUIRE_GPU") == "1"
			h := connect(f.Settings, args[0], f.Streams.Warn)
			ctx, stop := h.CloseOnSignal(cmd.Context())
			defer stop()
			return check(ctx, f, h, args[0], o)
		},
	}
	cmd.Flags().BoolVar(&o.Short, "short", false,
		"check the default device of each architecture only, and fewer problems")
	cmd.Flags().BoolVar(&o.Untimed, "untimed", false, "leave out the check that measures time")
	cmd.Flags().StringVar(&o.Golden, "golden", "",
		"`FILE` of rankings that must be reproduced to the bit, a JSON object per line")
	cmd.Flags().BoolVar(&o.UpdateGolden, "update-golden", false,
		"write the file of --golden with what is ranked now; the check golden fails then")
	return cmd
}

// checked is a line of `plugin check --json`.
type checked struct {
	Plugin   string   `json:"plugin"`             // the plugin
	Check    string   `json:"check"`              // the [check](conformance.md)
	Result   string   `json:"result"`             // how it ended
	Seconds  float64  `json:"seconds"`            // how long it took
	Findings []string `json:"findings,omitempty"` // what was found, if it failed
	Reason   string   `json:"reason,omitempty"`   // why it was skipped
	Demands  string   `json:"demands"`            // what the check demands
}

func check(ctx context.Context, f *session.Factory, h *host.Host, path string, o conformance.Options) error {
	info, err := find(ctx, h, path)
	if err != nil {
		return err
	}
	conn, err := h.Connection(ctx, info.Name)
	if err != nil {
		return err
	}
	// A plugin that does not start fails every check in the same way. It is reported once.
	if _, err := wire.NewClient(info.Name, conn).Info(ctx); err != nil {
		return err
	}
	checks := conformance.ArchitectureChecks()
	if info.Executor {
		checks = conformance.ExecutorChecks()
	}

	out := newReporter(f, info.Name)
	failed := 0
	progress := newProgress(f.Streams, checks)
	conformance.Run(ctx, info.Name, conn, checks, o, func(r conformance.Result) {
		if ctx.Err() != nil {
			return // interrupted: the remaining checks say nothing about the plugin
		}
		if r.Failed() {
			failed++
		}
		progress.done()
		if err == nil {
			err = out.add(&r)
		}
	})
	progress.stop()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || failed == 0:
		return err
	}
	return &diag.Error{Kind: diag.Plugin, Where: "plugin " + info.Name,
		What: fmt.Sprintf("%d of %d checks fail", failed, len(checks)),
		Fix:  "docs/conformance.md says what each demands"}
}

// find returns the only plugin of a host.
func find(ctx context.Context, h *host.Host, path string) (host.PluginInfo, error) {
	stat, err := os.Stat(path)
	switch {
	case err != nil:
		return host.PluginInfo{}, diag.Inputf("it cannot be read: %v", cause(err)).At("%s", path).
			Do("name the plugin's binary")
	case !stat.Mode().IsRegular():
		return host.PluginInfo{}, diag.Inputf("it is not a file").At("%s", path).Do("name the plugin's binary")
	case stat.Mode().Perm()&0o111 == 0:
		return host.PluginInfo{}, diag.Inputf("it is not executable").At("%s", path).
			Do("name the plugin's binary, or make it executable with chmod +x")
	}
	plugins, err := h.Plugins(ctx)
	if err != nil {
		return host.PluginInfo{}, err
	}
	info := plugins[0]
	if info.State == host.OK {
		return info, nil
	}
	failure := info.Err().At("plugin %s", path)
	if info.State == host.Error { // else the reason says what to do
		failure.Fix = "a plugin answers `" + path + " describe` in JSON, see docs/plugin-protocol.md"
	}
	return info, failure
}

// cause removes the operation and the path, which the message has already.
func cause(err error) error {
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // os.Stat returns nothing else
		return p.Err
	}
	return err
}

// reporter writes the outcome of each check as it comes.
type reporter struct {
	f         *session.Factory
	plugin    string
	delimited *table.Delimited // nil for a table and JSON
}

func newReporter(f *session.Factory, plugin string) *reporter {
	r := &reporter{f: f, plugin: plugin}
	if format := f.Format(); format == table.CSV || format == table.TSV {
		r.delimited = table.NewDelimited(f.Streams, format, []string{"check", "result", "seconds", "detail"})
	}
	return r
}

func (w *reporter) add(r *conformance.Result) error {
	result := "ok"
	switch {
	case r.Failed():
		result = "FAIL"
	case r.Skipped != "":
		result = "skip"
	}
	seconds := r.Took.Round(time.Microsecond).Seconds()
	switch {
	case w.f.Format() == table.JSON:
		if err := table.JSONLine(w.f.Streams, checked{w.plugin, r.Name, strings.ToLower(result), seconds, r.Findings,
			r.Skipped, r.Doc}); err != nil {
			return err
		}
	case w.delimited != nil:
		detail := strings.Join(r.Findings, " | ")
		if r.Skipped != "" {
			detail = r.Skipped
		}
		if err := w.delimited.Write([]string{r.Name, result, fmt.Sprintf("%.3f", seconds), detail}); err != nil {
			return err
		}
	default:
		w.f.Streams.Printf("%s\n", strings.TrimRight(fmt.Sprintf("%-4s  %-18s %s", result, r.Name, r.Skipped), " "))
		if r.Failed() {
			w.f.Streams.Printf("      demanded: %s\n", r.Doc)
		}
		for _, finding := range r.Findings {
			w.f.Streams.Printf("      - %s\n", finding)
		}
	}
	return w.f.Streams.Flush()
}

// progress shows the current check and the number of remaining ones on a terminal.
type progress struct {
	checks []conformance.Check
	next   int
	bar    *table.Bar // nil for none
}

func newProgress(s *iostreams.Streams, checks []conformance.Check) *progress {
	p := &progress{checks: checks}
	if !s.Terminal { // lines of results on the same terminal are progress enough
		p.bar = table.NewBar(s, checks[0].Name)
	}
	return p
}

// done reports a finished check.
func (p *progress) done() {
	if p.next++; p.bar != nil && p.next < len(p.checks) {
		p.bar.Set(int64(p.next), int64(len(p.checks)))
		p.bar.SetMessage(p.checks[p.next].Name)
	}
}

func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Stop()
	}
}
