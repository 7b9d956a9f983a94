//go:build unix

package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
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

func TestFiles(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "a.csv"), []byte("m,n,k\n"), 0o600))
	names, err1 := fs.Glob(Files(t.Context(), folder), "*.csv")
	text, err2 := fs.ReadFile(Files(t.Context(), folder), "a.csv")
	if err := errors.Join(err1, err2); err != nil || len(names) != 1 || string(text) != "m,n,k\n" {
		t.Errorf("%v, %q, %v", names, text, err)
	}
	for _, name := range []string{"../" + filepath.Base(folder) + "/a.csv", folder + "/a.csv", ".", "b.csv"} {
		_, err := Files(t.Context(), folder).Open(name)
		must.That(t, err != nil, "%s can be opened", name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	file := must.Get(Files(ctx, folder).Open("a.csv"))(t)
	defer file.Close()
	cancel()
	if _, err := file.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("read after the end: %v", err)
	}
}

// A named pipe among the records is an error, and nobody waits for a writer.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	const description = `{"arch":"sm90","device":"h200","kernel":"triton","dtype":"fp16","input":"normal",` +
		`"software":"x","source":"y"}`
	const kernels = "bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status\n"
	for _, name := range []string{dataset.Log, "more.jsonl", "times.csv", "times.csv.gz", dataset.DescriptionFile} {
		folder := t.TempDir()
		err := errors.Join(os.WriteFile(filepath.Join(folder, dataset.DescriptionFile), []byte(description), 0o600),
			os.WriteFile(filepath.Join(folder, "kernels.csv"), []byte(kernels), 0o600))
		if name == dataset.DescriptionFile {
			err = errors.Join(err, os.Remove(filepath.Join(folder, name)))
		}
		if err = errors.Join(err, syscall.Mkfifo(filepath.Join(folder, name), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err = dataset.Read(folder, Files(t.Context(), folder))
		if diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), name+": it cannot be read: not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
