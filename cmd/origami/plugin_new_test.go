package main

import (
	"bytes"
	"encoding/json"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// walk runs commands as a user who has only Go and origami: an empty home, no network, and the module cache from
// building origami.
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
	out, err := osexec.Command("go", "env", "GOMODCACHE", "GOCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(out)), "\n")
	home := t.TempDir()
	path := filepath.Dir(binary(t)) + string(os.PathListSeparator) + filepath.Join(known[2],
		"bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	return &walk{t: t, dir: home, env: []string{
		"HOME=" + home, "PATH=" + path, "TMPDIR=" + t.TempDir(), "GOMODCACHE=" + known[0], "GOCACHE=" + known[1],
		"GOPROXY=off", "GOFLAGS=", "GOTOOLCHAIN=local", "GORACE=atexit_sleep_ms=0",
	}}
}

// run runs a line of a shell script and returns what it prints.
func (w *walk) run(line string) string {
	w.t.Helper()
	out, err := w.try(line)
	if err != nil {
		w.t.Fatalf("%s\n%v\n%s", line, err, out)
	}
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
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

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
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out := w.run("origami plugin new --json gfx-new --sdk " + checkoutRoot(t))
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if made.Dir != "origami-plugin-gfx-new" || made.Module != made.Dir || made.SDK != checkoutRoot(t) ||
		len(made.Next) != 5 {
		t.Errorf("%+v", made)
	}
	for _, file := range made.Files {
		text, err := os.ReadFile(filepath.Join(w.dir, made.Dir, file))
		if err != nil {
			t.Error(err)
		}
		if file != "go.mod" && strings.Contains(string(text), "example") {
			t.Errorf("%s still speaks of the example", file)
		}
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
	if !strings.Contains(last, "gfx-new\tabstract\troofline\ttiled\tspec\t8388608\t") {
		t.Errorf("the answer is %s", last)
	}
	if out := w.run("gofmt -l . && go vet ./..."); out != "" {
		t.Errorf("%s", out)
	}

	// A changed plugin does not run before it is trusted again. A deleted plugin is reported and can be distrusted.
	if err := os.WriteFile(filepath.Join(w.dir, "origami-plugin-gfx-new"), []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := w.try("origami --arch gfx-new select -m 1 -n 1 -k 1"); err == nil ||
		!strings.Contains(out, "`origami plugin ls` says why") {
		t.Errorf("%v: %s", err, out)
	}
	w.run("rm origami-plugin-gfx-new")
	if out := w.run("origami plugin ls"); !strings.Contains(out, "its file is missing") {
		t.Errorf("%s", out)
	}
	w.run("origami plugin distrust gfx-new")
	if out := w.run("origami plugin ls"); strings.Contains(out, "gfx-new") {
		t.Errorf("%s", out)
	}
}

// Without --sdk the checkout is that around the working directory. A module may have any name.
func TestNewPluginElsewhere(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	dir := filepath.Join(w.dir, "deep", "down")
	w.dir = "."
	out := w.run("origami plugin new go --dir " + dir + " --module example.com/me/chip")
	if !strings.Contains(out, "on the origami "+checkoutRoot(t)+"; next:\n  cd "+dir+"\n") {
		t.Errorf("%s", out)
	}
	w.dir = dir
	if out := w.run("gofmt -l . && go build ./... && go vet ./..."); out != "" {
		t.Errorf("%s", out)
	}
	if out, err := w.try("origami plugin new go --dir ."); err == nil ||
		!strings.Contains(out, "the folder is not empty; name an empty or a new folder") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := w.try("origami plugin new other --sdk ."); err == nil ||
		!strings.Contains(out, "it is no checkout of") {
		t.Errorf("%v: %s", err, out)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "origami-plugin-other")); err == nil {
		t.Errorf("a refused plugin left %v", entries)
	}
}
