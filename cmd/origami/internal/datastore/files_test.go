//go:build unix

package datastore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

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
