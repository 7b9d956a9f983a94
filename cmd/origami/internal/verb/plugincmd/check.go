package plugincmd

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
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

// checked is a check that a plugin ran through.
type checked struct {
	Plugin   string   `json:"plugin"` // the plugin, and the check
	Check    string   `json:"check"`
	Result   string   `json:"result"`             // `ok`, `fail` or `skip`
	Seconds  float64  `json:"seconds"`            // how long it took
	Findings []string `json:"findings,omitempty"` // what is wrong
	Reason   string   `json:"reason,omitempty"`   // why it is skipped
	Demands  string   `json:"demands"`            // what it demands
}

func resultOf(r *conformance.Result) string {
	switch {
	case r.Failed():
		return "FAIL"
	case r.Skipped != "":
		return "skip"
	}
	return "ok"
}

// writeResult writes a check for people.
func writeResult(s *iostreams.Streams, r *conformance.Result) error {
	s.Printf("%s\n", strings.TrimRight(fmt.Sprintf("%-4s  %-18s %s", resultOf(r), r.Name, r.Skipped), " "))
	if r.Failed() {
		s.Printf("      demanded: %s\n", r.Doc)
	}
	for _, finding := range r.Findings {
		s.Printf("      - %s\n", finding)
	}
	return nil
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

	write := func(r *conformance.Result) error { return writeResult(f.Streams, r) }
	if format := f.Format(); format != show.Table {
		rows := show.NewRows[checked](f.Streams, format)
		write = func(r *conformance.Result) error {
			return rows.Add(&checked{info.Name, r.Name, strings.ToLower(resultOf(r)),
				r.Took.Round(time.Microsecond).Seconds(), r.Findings, r.Skipped, r.Doc})
		}
	}
	failed, done := 0, 0
	bar := &show.Bar{}
	if !f.Streams.Terminal { // lines of results on the same terminal are progress enough
		bar = show.NewBar(f.Streams, checks[0].Name)
	}
	conformance.Run(ctx, info.Name, conn, checks, o, func(r conformance.Result) {
		if ctx.Err() != nil {
			return // interrupted: the remaining checks say nothing about the plugin
		}
		if r.Failed() {
			failed++
		}
		if done++; done < len(checks) {
			bar.Set(int64(done), int64(len(checks)))
			bar.SetMessage(checks[done].Name)
		}
		if err == nil {
			if err = write(&r); err == nil {
				err = f.Streams.Flush()
			}
		}
	})
	bar.Stop()
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
		return host.PluginInfo{}, diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", path).
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
