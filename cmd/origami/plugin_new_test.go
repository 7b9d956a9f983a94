package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// walk runs commands as a user who has only Go and origami: an empty home and no network.
type walk struct {
	t   *testing.T
	dir string // the working directory
	env []string
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	if _, err := osexec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	home, path := t.TempDir(), filepath.Dir(binary(t))+string(os.PathListSeparator)+os.Getenv("PATH")
	return &walk{t: t, dir: home, env: append(goVariables(), "HOME="+home, "PATH="+path, "TMPDIR="+t.TempDir(),
		"GORACE=atexit_sleep_ms=0")}
}

// goVariables are what the go command needs where there is no home and no network: the caches and flags from building
// origami, so that it is not compiled again.
var goVariables = sync.OnceValue(func() []string {
	variables := []string{"GOPROXY=off", "GOFLAGS=" + os.Getenv("GOFLAGS"), "GOTOOLCHAIN=local"}
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		value, _ := osexec.Command("go", "env", name).Output()
		variables = append(variables, name+"="+strings.TrimSpace(string(value)))
	}
	return variables
})

// run runs a line of a shell script and returns what it prints.
func (w *walk) run(line string) string {
	w.t.Helper()
	out, err := w.try(line)
	must.Need(w.t, err == nil, "%s\n%v\n%s", line, err, out)
	return out
}

func (w *walk) try(line string) (string, error) {
	cmd := osexec.Command("sh", "-ec", line)
	cmd.Dir, cmd.Env = w.dir, w.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// checkoutRoot is the folder of this checkout.
func checkoutRoot(t *testing.T) string {
	t.Helper()
	root := must.Get(filepath.Abs("../.."))(t)
	return root
}

// An executor in Python passes the checks of plugins and measures, by the commands that `plugin new --python` names.
// Pip would need a network: the package and what it needs are linked instead.
func TestNewPluginInPython(t *testing.T) {
	t.Parallel()
	root := checkoutRoot(t)
	w := newWalk(t)
	var made struct {
		Dir   string
		Files []string
		Next  []string
	}
	out := w.run("origami plugin new --json bench-new --python --sdk " + root)
	err := json.Unmarshal([]byte(out), &made)
	must.Need(t, err == nil && slices.Equal(made.Files, []string{made.Dir}), "%v: %s", err, out)
	w.dir = filepath.Join(w.dir, made.Dir)
	for _, line := range made.Next[2:4] { // check and trust, before pip
		out, _ := w.try(line)
		must.That(t, strings.Contains(out, "install what it needs into lib, as the head of "), "%s", out)
	}
	w.run(fmt.Sprintf("mkdir lib; ln -s %q/sdk/python/origami_gemm_plugin %q/bin/tools/python/* lib || true", root, root))
	if out, err := w.try("PYTHONPATH=lib python3 -c 'import grpc, origami_gemm_plugin'"); err != nil {
		must.Need(t, os.Getenv("ORIGAMI_REQUIRE_PYTHON") == "", "%v %v", err, out)
		t.Skipf("needs python3 with grpcio (make python-test): %v: %s", err, out)
	}
	for _, line := range made.Next[2:] {
		out = w.run(line)
		if strings.Contains(out, "FAIL") || strings.Contains(line, " check ") && !strings.Contains(out, "ok    concurrent") {
			t.Errorf("%s: %s", line, out)
		}
	}
	must.That(t, strings.Contains(out, "measured    "), "the answer is %s", out)
}
