package cli_test

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/fakearch"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	pluginverb "github.com/origami-gemm/origami/cmd/origami/internal/verb/plugin"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/version"
	"github.com/origami-gemm/origami/sdk/host"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestMain makes this binary an origami whose plugins are made up.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"origami": func() {
		os.Exit(cli.Main(cli.System{
			Args: os.Args[1:], Streams: iostreams.System(), Getenv: os.Getenv,
			Connect: func(context.Context, config.Settings) (session.Host, error) {
				return fakeHost{fakearch.Providers()}, nil
			},
			Plugins: pluginverb.Actions{
				Trust: func(_, path string) (string, error) { return path, nil },
				Serve: func(string) error { return nil },
			},
			Protocol: version.Protocol{Wire: 7, API: []string{"1.0.0", "2.0.0"}},
		}))
	}})
}

// fakeHost adds an executor, a plugin that is not trusted and one that does not start.
type fakeHost struct{ session.InProcess }

func (h fakeHost) Plugins() []host.PluginInfo {
	return append(h.InProcess.Plugins(),
		host.PluginInfo{Name: "runner", Version: "0.1.0", Path: "/opt/origami-plugin-runner", Executor: true, State: host.OK},
		host.PluginInfo{Name: "stranger", Path: "/opt/origami-plugin-stranger", State: host.Skipped, Reason: "not in the lock file"},
		host.PluginInfo{Name: "sick", Path: "/opt/origami-plugin-sick", State: host.Error, Reason: "exited with status 1"})
}

// TestScripts runs testdata/script: one behaviour of the command line each, over made-up architectures.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			// A race-enabled command would sleep for a second before it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
	})
}
