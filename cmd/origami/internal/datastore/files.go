package datastore

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/origami-gemm/origami/sdk/openfile"
)

// Files returns the regular files of a folder. Nothing else in it is opened: a named pipe would wait for a writer.
// Reading ends with the context's error once the context is cancelled: there can be gigabytes.
func Files(ctx context.Context, folder string) fs.FS { return files{ctx, folder} }

type files struct {
	ctx    context.Context
	folder string
}

// Open implements fs.FS.
func (f files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	opened, _, err := openfile.Regular(filepath.Join(f.folder, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	return file{opened, f.ctx}, nil
}

// ReadDir implements fs.ReadDirFS.
func (f files) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.Join(f.folder, filepath.FromSlash(name)))
}

type file struct {
	*os.File
	ctx context.Context
}

// Read implements fs.File.
func (f file) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}
