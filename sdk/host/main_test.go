package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/origami-gemm/origami/sdk/host"
)

// The test binary is every plugin of these tests: a built-in if its first argument is asPlugin, an external plugin if
// it is linked under a plugin's file name. The mode says what it does.
const asPlugin = "as-plugin"

func TestMain(m *testing.M) {
	if mode, ok := strings.CutPrefix(filepath.Base(os.Args[0]), host.Prefix); ok {
		if mode == forgerExternal || mode == forgerExecutor {
			runForger(folder(filepath.Dir(os.Args[0])), mode)
		}
		runPlugin(mode)
	}
	if len(os.Args) > 3 && os.Args[1] == asPlugin && os.Args[2] == forger {
		runForger(folder(os.Args[3]), forger)
	}
	if len(os.Args) > 2 && os.Args[1] == asPlugin {
		runPlugin(os.Args[2])
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // plugins under the race detector end at once
	if len(os.Args) > 3 && os.Args[1] == asHost {
		runHost(folder(os.Args[2]), os.Args[3])
		os.Exit(0)
	}
	if len(os.Args) > 3 && os.Args[1] == asLender {
		runLender(os.Args[2], os.Args[3])
	}
	// A separate directory for temporary files shows the files left behind. Its path is short enough for sockets.
	tmp, err := os.MkdirTemp("/tmp", "o")
	if err == nil {
		err = os.Setenv("TMPDIR", tmp)
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(tmp)
		os.Exit(code)
	}))
}
