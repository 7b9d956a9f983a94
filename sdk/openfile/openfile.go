// Package openfile opens files that must be regular ones. Whatever is at the path, it does not block: a named pipe
// would wait for a writer, and a device could act on being opened.
package openfile

import (
	"errors"
	"io/fs"
	"os"
)

// ErrNotRegular is the cause if there is something other than a regular file at a path. The error that wraps it is an
// *fs.PathError.
var ErrNotRegular = errors.New("not a regular file")

// Regular opens a regular file for reading and returns it with its state. It follows symbolic links. The checks are of
// the open file: another one may be at the path by then.
func Regular(path string) (*os.File, fs.FileInfo, error) {
	f, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	return regular(f, path)
}

// Append opens a regular file to write behind its end, and makes it if there is none. It follows no link in place of
// the file.
func Append(path string, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|Own, perm)
	if err != nil {
		return nil, nil, err
	}
	return regular(f, path)
}

func regular(f *os.File, path string) (*os.File, fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
