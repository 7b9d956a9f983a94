//go:build !unix

package openfile

import (
	"io/fs"
	"os"
)

// Own are the flags for a file that this program alone makes, such as a lock. This system has none for that.
const Own = 0

// open looks before it opens. Something else can be put there in between.
func open(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return os.Open(path)
}
