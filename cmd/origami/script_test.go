package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/origami-gemm/origami/cmd/origami/internal/builtins"
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/serve"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script, and what pages show")

// TestMain makes this binary origami if it is called by that name. It starts its plugins under that name too. Under
// other names it is origami on a machine with GPUs, or a plugin.
func TestMain(m *testing.M) {
	commands := map[string]func(){
		"origami": main, "origami-with-gpus": func() { os.Exit(runWithGPUs()) },
		"origami-plugin-pretend": func() { serve.MainExecutor(pretender{}) },
	}
	maps.Copy(commands, pretendedArchs)
	if commands[filepath.Base(os.Args[0])] == nil { // the tests, which run commands in this process too
		_ = os.Setenv("XDG_CONFIG_HOME", "/the/settings/of/the/user/are/not/here")
	}
	testscript.Main(m, commands)
}

// runWithGPUs is run, with the built-in models in this process and the GPUs that the file $GPUS lists in JSON.
func runWithGPUs() int {
	sys := system()
	sys.Connect = func(ctx context.Context, s config.Settings, warn func(string)) (session.Host, error) {
		s.InProcess = true
		models, err := builtins.Connect(ctx, s, warn)
		return hostWithGPUs{models}, err
	}
	return cli.Main(sys)
}

type hostWithGPUs struct{ session.Host }

func (hostWithGPUs) Executor(context.Context, string) (exec.Executor, error) {
	data, err := os.ReadFile(os.Getenv("GPUS"))
	if err != nil {
		return nil, &diag.Error{Kind: diag.Device, What: "the driver cannot be loaded", Fix: "install one"}
	}
	var e gpus
	return &e, json.Unmarshal(data, &e.devices)
}

// gpus is an executor that only lists its devices.
type gpus struct {
	exec.Executor
	devices []exec.Device
}

func (g *gpus) Devices(context.Context) ([]exec.Device, error) { return g.devices, nil }
func (g *gpus) Close() error                                   { return nil }

// TestScripts runs testdata/script: the command line with the built-in plugins, each in a separate process.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update,
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "race":
				return raceDetector, nil
			case "root":
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("no condition %q", condition)
		},
		Setup: func(env *testscript.Env) error {
			// A race-enabled command would sleep for a second before it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			repo, err := filepath.Abs("../..")
			env.Setenv("REPO", repo)
			env.Setenv("DOCS", filepath.Join(repo, "docs"))
			env.Setenv("RECORDS", filepath.Join(repo, "plugins/nvidia/data"))
			env.Setenv("EXPERIMENTS", filepath.Join(repo, "experiments"))
			env.Vars = append(env.Vars, goVariables()...)
			return err
		},
	})
}

// binary returns the path of an origami to run: this test binary under the name.
func binary(t testing.TB) string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	origami := filepath.Join(t.TempDir(), "origami")
	if os.Link(self, origami) != nil { // another file system
		content := must.Get(os.ReadFile(self))(t)
		must.Do(t, os.WriteFile(origami, content, 0o700))
	}
	return origami
}

// command runs a command line in this process.
func command(t *testing.T, stdin io.Reader, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(cli.System{
		Args: args, Streams: iostreams.Plain(stdin, &out, &errs), Connect: builtins.Connect,
		Getenv: func(string) string { return "" },
	})
	said := slices.DeleteFunc(strings.Split(errs.String(), "\n"), func(line string) bool {
		return line == "" || strings.Contains(line, " left: ") // progress, of what takes over a minute
	})
	if code != 0 || len(said) > 0 {
		t.Fatalf("origami %s: exit code %d, %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}
