//go:build unix

package datastore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Merges that are killed at any moment lose nothing, double nothing and leave nothing behind: the next one removes it.
func TestMergeKilled(t *testing.T) {
	if root := os.Getenv("MERGE_TEST_KILLED"); root != "" {
		must.Do(t, os.WriteFile(os.Getenv("MERGE_TEST_BEGUN"), nil, 0o600))
		for {
			folders := parts(root)
			if os.Getenv("MERGE_TEST_COMPACT") != "" {
				folders = []string{filepath.Join(root, "all")}
			}
			_, err := Merge(t.Context(), filepath.Join(root, "all"), folders)
			must.Do(t, err)
		}
	}
	kills := 30
	if os.Getenv("ORIGAMI_TEST_ALL") == "1" {
		kills = 300
	}
	root := t.TempDir()
	many := func(from, to int) (list []int) {
		for m := from; m < to; m++ {
			list = append(list, m)
		}
		return list
	}
	folderOf(t, filepath.Join(root, "1"), many(1, 400)...)
	folderOf(t, filepath.Join(root, "2"), many(300, 700)...)
	all := filepath.Join(root, "all")
	left, had := 0, false
	for i := range kills {
		beginning := filepath.Join(root, fmt.Sprint("begun", i)) // the process has started
		cmd := exec.Command(os.Args[0], "-test.run=^TestMergeKilled$")
		cmd.Env = append(os.Environ(), "MERGE_TEST_KILLED="+root, "MERGE_TEST_BEGUN="+beginning)
		if i%2 == 1 && described(all) {
			cmd.Env = append(cmd.Env, "MERGE_TEST_COMPACT=1")
		}
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		must.Do(t, cmd.Start())
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(beginning); err == nil {
				break
			}
		}
		time.Sleep(time.Duration(rand.IntN(150+20*i)) * time.Millisecond) // a busy machine needs longer for a merge
		must.Do(t, cmd.Process.Kill())
		_ = cmd.Wait()
		must.Need(t, said.Len() <= 0, "%v", said.String())
		if !described(all) {
			continue // killed before the first merge
		}
		found := must.Get(filepath.Glob(filepath.Join(all, ".*-*")))(t)
		left += len(found)
		d, torn, err := dataset.Recover(all, os.DirFS(all))
		must.Need(t, err == nil && torn == nil && (d.Len() == 699 || !had && d.Len() <= 0),
			"after %d kills: %v, %v", i+1, torn, err)
		had = d.Len() > 0
	}
	if t.Logf("%d files were left behind by %d kills", left, kills); !had {
		t.Error("no merge ended")
	}
	m, err := Merge(t.Context(), all, parts(root))
	if err != nil || m.Len() != 699 || len(m.Apart) > 0 {
		t.Fatal(m.Len(), m.Apart, err)
	}
	for name := range contents(t, all) {
		must.That(t, name == locked || name == dataset.Log || name == dataset.DescriptionFile, "%s is left behind", name)
	}
}

// What is in the place of a lock or of a log is not waited for, and no link is followed.
func TestOddFiles(t *testing.T) {
	for name, odd := range map[string]func(path, elsewhere string) error{
		"a pipe":          func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a dangling link": func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"a folder":        func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, file := range []string{locked, dataset.Log} {
			root := mergedRoot(t, []int{1})
			all, elsewhere := filepath.Join(root, "all"), filepath.Join(root, "elsewhere")
			if err := os.Remove(filepath.Join(all, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			must.Do(t, odd(filepath.Join(all, file), elsewhere))
			done := make(chan error)
			go func() {
				store, opened := Open(t.Context(), all, toy())
				if opened == nil {
					_ = store.Close()
				}
				done <- opened
				_, merged := Merge(t.Context(), all, parts(root))
				done <- merged
			}()
			for _, what := range []string{"going on", "merging"} {
				select {
				case err := <-done:
					must.That(t, err != nil && !strings.Contains(err.Error(), "\n"), "%s as %s, %s: %v", name, file, what, err)
				case <-time.After(20 * time.Second):
					t.Fatal(fmt.Sprint(name, " as ", file, ": ", what, " waits"))
				}
			}
			if _, err := os.Lstat(elsewhere); err == nil {
				t.Errorf("%s as %s made a file elsewhere", name, file)
			}
		}
	}
}
