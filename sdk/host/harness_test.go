package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// verifyList compares rows with the list after a heading of matrixFile. Rows with the same cells are one item there.
// With -update it writes it there.
func verifyList(t *testing.T, heading string, columns, rows []string, cell func(row, column int) string) {
	t.Helper()
	var b strings.Builder
	named := map[string][]string{}
	var distinct []string
	for i, row := range rows {
		cells := make([]string, len(columns))
		for j := range columns {
			cells[j] = cell(i, j)
		}
		key := inWords(columns, cells)
		if named[key] == nil {
			distinct = append(distinct, key)
		}
		named[key] = append(named[key], row)
	}
	for _, cells := range distinct {
		fmt.Fprintf(&b, "- \"%s\" → %s\n", strings.Join(named[cells], `", "`), cells)
	}
	text := must.Get(os.ReadFile(matrixFile))(t)
	before, after, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	start := strings.Index(after, "\n- ")
	must.Need(t, ok && start >= 0, "%s has no list under %q", matrixFile, heading)
	start++
	end := start + max(strings.Index(after[start:]+"\n\n", "\n\n")+1, 0)
	end = min(end, len(after))
	if got := after[start:end]; got == b.String() {
		return
	} else if !*update {
		want := strings.Split(got, "\n")
		for i, line := range strings.Split(b.String(), "\n") {
			must.That(t, i < len(want) && line == want[i],
				"%s does not have this line under %q; check it and run with -update:\n%s", matrixFile, heading, line)
		}
		must.That(t, t.Failed(), "%s has outdated lines under %q; run with -update", matrixFile, heading)
		return
	}
	must.Do(t, os.WriteFile(matrixFile, []byte(before+"\n## "+heading+"\n"+after[:start]+b.String()+after[end:]),
		0o644))
}

// inWords writes the cells of a row: what most cells have, and then what others have, with the names of their columns.
func inWords(columns, cells []string) string {
	of := map[string][]string{}
	for i, cell := range cells {
		of[cell] = append(of[cell], columns[i])
	}
	var most string
	var others []string
	for i, cell := range cells {
		switch {
		case 2*len(of[cell]) > len(cells):
			most = cell
		case slices.Index(cells, cell) == i:
			others = append(others, fmt.Sprintf("%s: **%s**", strings.Join(of[cell], ", "), cell))
		}
	}
	if most != "" {
		others = slices.Insert(others, 0, "**"+most+"**")
	}
	return strings.Join(others, "; ")
}

// leavesNothing checks that a test, after closing its hosts, has no more goroutines and open files than before, and
// that no socket is left.
func leavesNothing(t *testing.T) {
	t.Helper()
	warm := host.New(host.Options{Builtins: []host.Builtin{builtin("good")}}) // the runtime opens some files once
	open(t, warm, arch.OpenRequest{Arch: "good"})
	_ = warm.Close()
	goroutines := goleak.IgnoreCurrent()
	before := openFiles(t)
	t.Cleanup(func() {
		err := goleak.Find(goroutines)
		must.That(t, err == nil, "%v", err)
		for wait := 0; ; wait++ {
			now := openFiles(t)
			if len(now) <= len(before) {
				break
			}
			if wait == 100 {
				t.Errorf("open files before: %v, now: %v", before, now)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		left, _ := filepath.Glob(filepath.Join(os.TempDir(), "origami-run*"))
		must.That(t, len(left) <= 0, "folders left behind: %v", left)
	})
}

func openFiles(t *testing.T) (files []string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			files = append(files, to)
		}
	}
	return files
}

// bench is a forger with a host. Options that are zero have the defaults of the host.
type bench struct {
	folder
	executor     bool
	host         *host.Host
	architecture arch.Architecture
	device       exec.Executor
}

// patience is the time limit of hosts whose plugin hangs.
const patience = 2 * time.Second

func newBench(t *testing.T, plugin string, o host.Options) *bench {
	t.Helper()
	return folder(t.TempDir()).bench(t, plugin, o)
}

// bench is newBench for an existing folder.
func (f folder) bench(t *testing.T, plugin string, o host.Options) *bench {
	t.Helper()
	b := &bench{folder: f, executor: plugin == forgerExecutor}
	if plugin == forger {
		o.Builtins = []host.Builtin{b.builtin()}
	} else {
		self := must.Get(os.Executable())(t)
		path := b.file(host.Prefix + plugin)
		o.LockFile = b.file("lock")
		err := os.Symlink(self, path)
		must.Need(t, err == nil || errors.Is(err, os.ErrExist), "%v", err)
		must.Get(host.Trust(t.Context(), o.LockFile, path))(t)
		o.Plugins = []string{path}
	}
	b.host = host.New(o)
	return b
}

// builtin is the forger that looks into this folder.
func (f folder) builtin() host.Builtin {
	return host.Builtin{Manifest: fake.Provider{Name: forger}.Manifest(), Args: []string{asPlugin, forger, string(f)}}
}

func (b *bench) open(ctx context.Context) (err error) {
	if b.executor {
		b.device, err = b.host.Executor(ctx, forgerExecutor)
	} else {
		b.architecture, err = b.host.Open(ctx, arch.OpenRequest{Arch: forger})
	}
	return err
}

// close closes the host and makes sure that no process is left.
func (b *bench) close(t *testing.T) {
	_ = b.host.Close()
	for _, pid := range append(b.lines(startsFile), b.lines(childrenFile)...) {
		must.That(t, eventually(func() bool { return !lives(pid) }), "process %s lives on", pid)
	}
	for _, pid := range b.lines(daemonsFile) {
		must.That(t, lives(pid), "a process in a new session has been found and ended: say so in the documentation")
		id, _ := strconv.Atoi(pid)
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	_ = os.Remove(b.file(daemonsFile))
}

func eventually(is func() bool) bool {
	for range 250 {
		if is() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return is()
}

// lives reads /proc, because a zombie still accepts signals.
func lives(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	return err == nil && !strings.Contains(string(status), "State:\tZ") &&
		!strings.Contains(string(status), "State:\tX")
}
