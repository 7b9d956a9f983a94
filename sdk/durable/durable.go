// Package durable replaces files so that neither the end of the process nor a power cut leaves half a file or none.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Replace writes a file with the given permissions and then gives it its name, over an older file of that name. The
// older one stays whole until then, and if there is an error. The folder must exist.
//
// The new content reaches the disk before the name does: otherwise a power cut could leave the name with no content.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// Sweep removes what Replace left of files of a folder when its process was killed. No other process may be replacing
// them: the caller has the lock that writers of the folder take.
func Sweep(folder string, names ...string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		left := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(e.Name(), "."+name+"-") })
		if left && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
		}
	}
	return err
}

// Write is Replace with a text.
func Write(path string, perm fs.FileMode, text []byte) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// SyncFolder makes the names of files that were created in a folder, or renamed, survive a power cut.
func SyncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil // a folder cannot be synced there; the file system keeps a journal of names
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // some file systems do not offer it
	}
	return errors.Join(err, f.Close())
}
