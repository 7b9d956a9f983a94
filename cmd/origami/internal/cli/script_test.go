package cli_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/plugincmd"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/sdk/host"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/toy")

// TestMain makes this binary an origami whose plugins are made up.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "origami" { // the tests, which run commands in this process too
		_ = os.Setenv("XDG_CONFIG_HOME", "/the/settings/of/the/user/are/not/here")
	}
	testscript.Main(m, map[string]func(){"origami": func() {
		os.Exit(cli.Main(cli.System{
			Args: os.Args[1:], Streams: iostreams.System(), Getenv: os.Getenv,
			Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
				return fakeHost{session.InProcess{Providers: fakearch.Providers()}}, nil
			},
			Plugins: plugincmd.Actions{
				Trust: func(_ context.Context, _ config.Settings, path string, _ func(string)) (string, error) {
					return path, nil
				},
				Distrust: func(_ context.Context, _ config.Settings, name string) (string, error) { return name, nil },
				Serve:    func(string) error { return nil },
			},
			Protocol: 7,
		}))
	}})
}

// interrupt sends this process an interrupt and waits until the command has heard it: on a busy machine the kernels of
// the fake are faster than a signal.
func interrupt() error {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT)
	defer signal.Stop(heard)
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		return err
	}
	<-heard
	time.Sleep(50 * time.Millisecond) // for the goroutine that cancels the command's context
	return nil
}

// fakeHost adds a plugin that is not trusted, one that does not start, and an executor.
type fakeHost struct{ session.InProcess }

// OwnExecutor is Executor.
func (h fakeHost) OwnExecutor(ctx context.Context, name string) (exec.Executor, error) {
	return h.Executor(ctx, name)
}

// Executor opens the executor "fake", a device of toy1. FAKE_EXECUTOR says what goes wrong: a fate per tile, as in
// "wrong=32x16x64 crash=all", the call at which the device is lost or the user interrupts, or what the device is.
func (h fakeHost) Executor(ctx context.Context, name string) (exec.Executor, error) {
	if name == "" {
		return h.InProcess.Executor(ctx, name)
	}
	if name != "fake" {
		return nil, diag.Inputf("there is no executor %q", name).At("--executor %s", name).Do("use one of fake")
	}
	x := &exectest.Executor{Noise: 0.005, Seed: 7, Device: exec.Device{Name: "Acme Small", Arch: "toy1",
		Kernels: []string{"other", "plain"}, Libraries: []string{"blas", "blas-best"}}}
	fates, stops := map[string]exectest.Fate{}, map[int]func() error{}
	names := map[string]exectest.Fate{"wrong": exectest.Wrong, "crash": exectest.Crash, "hang": exectest.Hang,
		"refused": exectest.NotBuilt, "oom": exectest.OutOfMemory, "moves": exectest.ClockMoves}
	for _, word := range strings.Fields(os.Getenv("FAKE_EXECUTOR")) {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "arch":
			x.Device.Arch = value
		case "name":
			x.Device.Name = value
		case "kernels":
			x.Device.Kernels = strings.Split(value, ",")
		case "memory":
			x.Device.Attributes = map[string]float64{"memory_bytes": float64(n)}
		case "lost":
			stops[n] = func() error {
				return &diag.Error{Kind: diag.Device, Where: "executor fake", What: "the device is lost",
					Fix: "look for Xid in the kernel log"}
			}
		case "interrupt":
			stops[n] = interrupt
		case "unstartable": // from one call on, for a number of calls
			from, calls, _ := strings.Cut(value, ":")
			first, _ := strconv.Atoi(from)
			count, _ := strconv.Atoi(calls)
			for i := range count {
				stops[first+i] = func() error {
					return &diag.Error{Kind: diag.Plugin, Where: "plugin fake", What: "it cannot be started"}
				}
			}
		case "killed":
			stops[n] = func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
		default:
			fates[value] = names[key]
		}
	}
	x.Fate = func(_ gemm.Problem, c gemm.Config) exectest.Fate {
		if fate, ok := fates["all"]; ok {
			return fate
		}
		return fates[fmt.Sprintf("%dx%dx%d", c.BlockM, c.BlockN, c.BlockK)]
	}
	x.Before = func(call int) error {
		if stop := stops[call]; stop != nil {
			return stop()
		}
		return nil
	}
	return x, nil
}

func (h fakeHost) Plugins(context.Context) ([]host.PluginInfo, error) { return h.Known(), nil }

func (h fakeHost) Known() []host.PluginInfo {
	return append(h.InProcess.Known(),
		host.PluginInfo{Name: "fake", Version: "0.3.0", Path: "/opt/origami-plugin-fake", Executor: true,
			State: host.OK},
		host.PluginInfo{Name: "stranger", Path: "/opt/origami-plugin-stranger", State: host.Skipped,
			Reason: "not in the lock file"},
		host.PluginInfo{Name: "sick", Path: "/opt/origami-plugin-sick", State: host.Error,
			Reason: "exited with status 1"})
}

// TestScripts runs testdata/toy: a behaviour of the command line per file, over made-up architectures. The scripts over
// the built-in plugins are in cmd/origami/testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/toy", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			// A race-enabled command would sleep for a second before it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
	})
}
