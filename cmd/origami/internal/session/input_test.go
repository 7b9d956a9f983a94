package session

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestReader(t *testing.T) {
	text := strings.Repeat("0123456789\n", 20_000)
	for name, in := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text[:999])),
		"data with end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		want := text
		if name == "bytes" {
			want = text[:999]
		}
		err := iotest.TestReader(Reader(t.Context(), in), []byte(want))
		must.That(t, err == nil, "%s: %v", name, err)
	}
	broken := errors.New("broken")
	got, err := io.ReadAll(Reader(t.Context(), io.MultiReader(strings.NewReader("a"), iotest.ErrReader(broken))))
	must.That(t, string(got) == "a" && errors.Is(err, broken), "got %q, %v", got, err)
}

// A read that nothing ends is left alone when the context is cancelled, also in the middle of a file.
func TestReaderIsInterrupted(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	in := Reader(ctx, r)
	go func() {
		_, _ = io.WriteString(w, "m,n,k\n")
		cancel()
	}()
	got, err := io.ReadAll(in)
	must.That(t, strings.HasPrefix("m,n,k\n", string(got)) && errors.Is(err, context.Canceled), "got %q, %v", got, err)
	n, err := in.Read(make([]byte, 9))
	must.That(t, n == 0 && errors.Is(err, context.Canceled), "afterwards %d bytes, %v", n, err)
}

// A full disk leaves the file that was there, and no part of the new one. The limit is on the size of files, and for a
// whole process, so that one is this test again.
func TestReplaceOnFullDisk(t *testing.T) {
	file := os.Getenv("REPLACE_TEST_FILE")
	if file == "" {
		file = filepath.Join(t.TempDir(), "logic.json")
		must.Do(t, Replace(file, []byte("the old one")))
		self := must.Get(os.Executable())(t)
		cmd := exec.Command(self, "-test.run", "^TestReplaceOnFullDisk$")
		cmd.Env = append(os.Environ(), "REPLACE_TEST_FILE="+file)
		out, err := cmd.CombinedOutput()
		must.Need(t, err == nil, "%v\n%s", err, out)
		entries, err := os.ReadDir(filepath.Dir(file))
		if text, failed := os.ReadFile(file); string(text) != "the old one" || len(entries) != 1 {
			t.Errorf("the file holds %q beside %v, %v, %v", text, entries, err, failed)
		}
		return
	}
	limit := syscall.Rlimit{Cur: 100, Max: 100}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Skip(err)
	}
	err := Replace(file, []byte(strings.Repeat("new ", 100)))
	must.That(t, errors.Is(err, syscall.EFBIG) && strings.Contains(err.Error(), "logic.json: it cannot be written: "),
		"%v", err)
}

// A file that a flag names is replaced whole, and a device is written to.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	for _, text := range []string{"one", "another"} {
		must.Do(t, Replace(name, []byte(text)))
		got, err := os.ReadFile(name)
		must.That(t, string(got) == text && err == nil, "%q, %v", got, err)
	}
	if err := Replace(os.DevNull, []byte("x")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is gone: %v", err)
	}
	err := Replace(filepath.Join(dir, "no", "f"), nil)
	must.That(t, err != nil && strings.Contains(err.Error(), "cannot be written"), "%v", err)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// What a device file or a model's configuration calls itself does not choose the folder.
func TestReplaceInStaysInItsFolder(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "a", "b")
	must.Do(t, os.MkdirAll(folder, 0o755))
	for _, name := range []string{"x/../../../PWNED.json", "../PWNED.json", "/PWNED.json", "..", "", "a\nb", `x\y`} {
		must.That(t, ReplaceIn(folder, name, []byte("{}")) != nil, "%q is written", name)
	}
	if err := ReplaceIn(folder, "E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3.json", []byte("{}")); err != nil {
		t.Error(err)
	}
	var written []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			written = append(written, path)
		}
		return nil
	})
	must.That(t, len(written) == 1 && filepath.Dir(written[0]) == folder, "%v are written", written)
}
