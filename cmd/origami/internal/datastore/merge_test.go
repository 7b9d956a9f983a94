package datastore

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// folderOf makes a folder with measurements of some problems.
func folderOf(t *testing.T, folder string, sizes ...int) string {
	t.Helper()
	s := open(t, folder)
	for _, m := range sizes {
		must.Do(t, s.Append(measurement(m)))
	}
	must.Do(t, s.Close())
	return folder
}

// contents has the files of a folder, but for the lock.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(folder)
	must.Need(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	for _, e := range entries {
		text := must.Get(os.ReadFile(filepath.Join(folder, e.Name())))(t)
		if len(text) > 0 {
			files[e.Name()] = string(text)
		}
	}
	return files
}

// The disk fills up while a merge writes its first file, its last one, and the last byte of that. What the folder had
// is there, the parts are as they were, and the same merge goes on when there is room. The limit is on the size of
// files, and for a whole process, so that one is this test again.
func TestMergeOntoFullDisk(t *testing.T) {
	if root := os.Getenv("MERGE_TEST_ROOT"); root != "" {
		mergeLimited(t, root)
		return
	}
	self := must.Get(os.Executable())(t)
	for name, before := range map[string][]int{"a new folder": nil, "a folder with measurements": {7, 1}} {
		whole := mergedRoot(t, before)
		if _, err := Merge(t.Context(), filepath.Join(whole, "all"), parts(whole)); err != nil {
			t.Fatal(err)
		}
		want := contents(t, filepath.Join(whole, "all"))
		for _, most := range []int{1, len(want[dataset.Log]) / 2, len(want[dataset.Log]) - 1} {
			t.Run(name+" "+strconv.Itoa(most), func(t *testing.T) {
				root := mergedRoot(t, before)
				all, first := filepath.Join(root, "all"), filepath.Join(root, "1")
				had, part := contents(t, all), contents(t, first)
				cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestMergeOntoFullDisk$")
				cmd.Env = append(os.Environ(), "MERGE_TEST_ROOT="+root, "MERGE_TEST_MOST="+strconv.Itoa(most))
				out, err := cmd.CombinedOutput()
				must.Need(t, err == nil, "%v\n%s", err, out)
				if got := contents(t, all)[dataset.Log]; got != had[dataset.Log] {
					t.Errorf("the folder had\n%s, and has\n%s", had[dataset.Log], got)
				}
				must.That(t, maps.Equal(contents(t, first), part), "a part was changed")
				_, err = Merge(t.Context(), all, parts(root))
				must.Do(t, err)
				got := contents(t, all)
				must.That(t, maps.Equal(got, want), "with room there is\n%v\nand not\n%v", got, want)
			})
		}
	}
}

// mergedRoot is a folder with two parts and what they are merged into.
func mergedRoot(t *testing.T, before []int) string {
	t.Helper()
	root := t.TempDir()
	folderOf(t, filepath.Join(root, "1"), 1, 2, 3)
	folderOf(t, filepath.Join(root, "2"), 3, 4, 5, 6)
	if before != nil {
		folderOf(t, filepath.Join(root, "all"), before...)
	}
	return root
}

func parts(root string) []string { return []string{filepath.Join(root, "1"), filepath.Join(root, "2")} }

func mergeLimited(t *testing.T, root string) {
	most := must.Get(strconv.ParseUint(os.Getenv("MERGE_TEST_MOST"), 10, 64))(t)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Skip(err)
	}
	_, err := Merge(t.Context(), filepath.Join(root, "all"), parts(root))
	must.That(t, errors.Is(err, syscall.EFBIG) &&
		strings.Contains(err.Error(), "cannot be written"), "%v", err)
}

// A newer origami, which writes another form of lines, took over a folder early, in the middle or late. This one
// refuses the folder and leaves it as it is, whether it would go on measuring or merge.
func TestNewerRecords(t *testing.T) {
	for _, newer := range []int{0, 1, 2} {
		root := mergedRoot(t, nil)
		folder := filepath.Join(root, "1")
		log := filepath.Join(folder, dataset.Log)
		text := must.Get(os.ReadFile(log))(t)
		lines := bytes.SplitAfter(text, []byte("\n"))
		lines[newer] = bytes.Replace(lines[newer], []byte(`"schema":1`), []byte(`"schema":2`), 1)
		lines[newer] = regexp.MustCompile(`,"sum":"[^"]*"`).ReplaceAll(lines[newer], nil)
		must.Do(t, os.WriteFile(log, bytes.Join(lines, nil), 0o600))
		had := contents(t, folder)
		_, opened := Open(t.Context(), folder, toy())
		_, merged := Merge(t.Context(), filepath.Join(root, "all"), parts(root))
		for what, err := range map[string]error{"going on": opened, "merging": merged} {
			must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "schema"),
				"%s, line %d: %v", what, newer+1, err)
		}
		must.That(t, maps.Equal(contents(t, folder), had) && len(contents(t, filepath.Join(root, "all"))) <= 0,
			"line %d: something was written", newer+1)
	}
}
