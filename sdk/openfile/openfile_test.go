//go:build unix

package openfile_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// Only regular files are opened, also through links, and nothing blocks.
func TestRegular(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the path of a socket must be short
	must.Do(t, os.WriteFile("file", []byte("text"), 0o600))
	must.Do(t, syscall.Mkfifo("pipe", 0o600))
	socket := must.Get(net.Listen("unix", "socket"))(t)
	defer func() { _ = socket.Close() }()
	for link, to := range map[string]string{"link": "file", "to-pipe": "pipe", "loop": "loop", "to-nothing": "nothing"} {
		must.Do(t, os.Symlink(to, link))
	}
	for path, want := range map[string]error{
		"file": nil, "link": nil, filepath.Join(dir, "file"): nil,
		"pipe": openfile.ErrNotRegular, "to-pipe": openfile.ErrNotRegular, "/dev/null": openfile.ErrNotRegular,
		".": openfile.ErrNotRegular, "nothing": fs.ErrNotExist, "to-nothing": fs.ErrNotExist,
		"loop": syscall.ELOOP, "socket": syscall.ENXIO,
	} {
		done := make(chan error)
		go func() {
			f, info, err := openfile.Regular(path)
			if err == nil {
				var text []byte
				if text, err = io.ReadAll(f); string(text) != "text" || info.Size() != 4 {
					t.Errorf("%s: read %q, size %d", path, text, info.Size())
				}
				_ = f.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			var at *fs.PathError
			must.That(t, errors.Is(err, want) && (err == nil || errors.As(err, &at) && at.Path == path),
				"%s: got %v, want %v", path, err, want)
		case <-time.After(10 * time.Second):
			t.Fatalf("%s blocks", path)
		}
	}
	// What is appended to is the file itself, and no link makes another one.
	for path, want := range map[string]error{"file": nil, "new": nil, "pipe": syscall.ENXIO, "link": syscall.ELOOP,
		"to-nothing": syscall.ELOOP, "loop": syscall.ELOOP, "/dev/null": openfile.ErrNotRegular} {
		f, _, err := openfile.Append(path, 0o600)
		must.That(t, errors.Is(err, want), "append to %s: %v, want %v", path, err, want)
		if err == nil {
			_ = f.Close()
		}
	}
	if _, err := os.Lstat("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was made behind a link")
	}
}
