package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// walk runs commands as a user who has only Go and origami: an empty home, no network, and the caches and flags from
// building origami, so that it is not compiled again.
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
	out := must.Get(osexec.Command("go", "env", "GOMODCACHE", "GOCACHE", "GOROOT").Output())(t)
	known := strings.Split(strings.TrimSpace(string(out)), "\n")
	home := t.TempDir()
	path := filepath.Dir(binary(t)) + string(os.PathListSeparator) + filepath.Join(known[2],
		"bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	return &walk{t: t, dir: home, env: []string{
		"HOME=" + home, "PATH=" + path, "TMPDIR=" + t.TempDir(), "GOMODCACHE=" + known[0], "GOCACHE=" + known[1],
		"GOPROXY=off", "GOFLAGS=" + os.Getenv("GOFLAGS"), "GOTOOLCHAIN=local", "GORACE=atexit_sleep_ms=0",
	}}
}

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

// tidy checks a plugin's Go, tests included. It runs the checks of go vet that read only the plugin. The others read
// all that it imports: lint runs those on the example that plugins are made from.
const tidy = "gofmt -l . && go vet -composites -copylocks -unmarshal -unusedresult ./..."

// From nothing to an answer: `plugin new` names every command as the next step.
func TestNewPlugin(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	begin := time.Now()
	var made struct {
		Dir, Module, SDK string
		Files, Next      []string
	}
	// The name is not a package name, and the path needs quoting.
	w.dir = filepath.Join(w.dir, "my work")
	must.Do(t, os.Mkdir(w.dir, 0o755))
	out := w.run("origami plugin new --json gfx-new --sdk " + checkoutRoot(t))
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must.That(t, made.Dir == "origami-plugin-gfx-new" && made.Module == made.Dir && made.SDK == checkoutRoot(t) &&
		len(made.Next) == 5, "%+v", made)
	for _, file := range made.Files {
		text, err := os.ReadFile(filepath.Join(w.dir, made.Dir, file))
		must.That(t, err == nil, "%v", err)
		must.That(t, file == "go.mod" || !strings.Contains(string(text), "example"), "%s still speaks of the example", file)
	}
	var last string
	for _, line := range made.Next {
		if dir, ok := strings.CutPrefix(line, "cd "); ok {
			w.dir = filepath.Join(w.dir, dir)
			continue
		}
		start := time.Now()
		last = w.run(line)
		t.Logf("%6.2f s  %s", time.Since(start).Seconds(), line)
	}
	t.Logf("%6.2f s  in all", time.Since(begin).Seconds())
	must.That(t, strings.Contains(last, "(gfx-new@abstract)") && strings.Contains(last, "predicted   8.39 ms"),
		"the answer is %s", last)
	out = w.run(tidy)
	must.That(t, out == "", "%s", out)

	fitNewPlugin(t, w)

	// A changed plugin does not run before it is trusted again. A deleted plugin is reported and can be distrusted.
	must.Do(t, os.WriteFile(filepath.Join(w.dir, "origami-plugin-gfx-new"), []byte("another"), 0o755))
	if out, err := w.try("origami --arch gfx-new select -m 1 -n 1 -k 1"); err == nil ||
		!strings.Contains(out, "trust it again if you changed the plugin") {
		t.Errorf("%v: %s", err, out)
	}
	w.run("rm origami-plugin-gfx-new")
	out = w.run("origami plugin ls")
	must.That(t, strings.Contains(out, "its file is missing"), "%s", out)
	w.run("origami plugin distrust gfx-new")
	out = w.run("origami plugin ls")
	must.That(t, !strings.Contains(out, "gfx-new"), "%s", out)
}

// fitNewPlugin follows docs/fitting.md: the constants of the scaffold's simulator, which its model does not have, are
// found from times that the simulator makes, both in their processes.
func fitNewPlugin(t *testing.T, w *walk) {
	t.Helper()
	w.run("go build ./cmd/origami-plugin-gfx-new-simulator")
	w.run("origami plugin trust ./origami-plugin-gfx-new-simulator")
	w.run("origami --arch gfx-new bench --executor gfx-new-simulator --records sweep")
	var fitted struct {
		Adopted    bool
		Problems   int
		Quantities []struct {
			Name          string
			Before, After float64
		}
	}
	out := w.run("origami --arch gfx-new fit --records sweep --output mine.yaml --json 2> notes")
	if err := json.Unmarshal([]byte(out), &fitted); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const tolerance = 0.01
	hidden := map[string]float64{"compute_efficiency": 0.82, "memory_efficiency": 0.57}
	for _, q := range fitted.Quantities {
		if want := hidden[q.Name]; q.Before != 1 || math.Abs(q.After-want) > tolerance*want {
			t.Errorf("%s is %v, and was %v, want %v", q.Name, q.After, q.Before, want)
		}
	}
	must.That(t, fitted.Adopted && fitted.Problems >= 20 && len(fitted.Quantities) == len(hidden), "%+v", fitted)
	// The device file has the constants in every command: what waits for memory takes 1 ÷ 0.57 times as long.
	out = w.run("origami --device-file mine.yaml select -m 4096 -n 4096 -k 4096 --json")
	var pick struct{ Predicted struct{ Cycles float64 } }
	err := json.Unmarshal([]byte(out), &pick)
	must.That(t, err == nil && math.Abs(pick.Predicted.Cycles*0.57/8388608-1) <= tolerance, "%v: %s", err, out)
	out = w.run("origami --device-file mine.yaml explain -m 64 -n 64 -k 64 --json")
	must.That(t, strings.Contains(out, "fitted to sweep ("), "%s", out)
	must.Do(t, os.WriteFile(filepath.Join(w.dir, "sizes.yaml"), []byte("problems:\n  - dtype: fp16\n    sets:\n"+
		"      - {name: two, sizes: [{exact: [1024, 1024, 1024]}, {exact: [4096, 64, 16384]}]}\n"), 0o644))
	out = w.run("origami --device-file mine.yaml tune sizes.yaml --executor gfx-new-simulator --records tuned --json")
	must.That(t, strings.Contains(out, `"sizes":2,`), "%s", out)
	// What the plugin does not have is said.
	for command, says := range map[string]string{
		"ladder --arch gfx-new":                  "there is no ladder of kernels for gfx-new; the plugin",
		"calibrate --executor gfx-new-simulator": "there are no microbenchmarks for abstract machine of 16 units",
	} {
		out, err := w.try("origami " + command)
		must.That(t, err != nil && strings.Contains(out, says), "%s: %v: %s", command, err, out)
	}
	w.run("origami plugin distrust gfx-new-simulator")
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

// Without --sdk the checkout is that around the working directory.
func TestNewPluginElsewhere(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	dir := filepath.Join(w.dir, "deep", "down")
	w.dir = "."
	out := w.run("origami plugin new go --dir " + dir + "")
	must.That(t, strings.Contains(out, "on the origami "+checkoutRoot(t)+"; next:\n  cd "+dir+"\n"), "%s", out)
	w.dir = dir
	out = w.run(tidy)
	must.That(t, out == "", "%s", out)
	out, err := w.try("origami plugin new go --dir .")
	must.That(t, err != nil &&
		strings.Contains(out, "the folder is not empty; name an empty or a new folder"), "%v: %s", err, out)
	out, err = w.try("origami plugin new other --sdk .")
	must.That(t, err != nil &&
		strings.Contains(out, "it is no checkout of"), "%v: %s", err, out)
	entries, err := os.ReadDir(filepath.Join(dir, "origami-plugin-other"))
	must.That(t, err != nil, "a refused plugin left %v", entries)
}
