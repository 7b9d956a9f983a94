package verb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/durable"
)

// Replace writes a file that a flag names, whole or not at all.
func Replace(file string, text []byte) error {
	return unwritable(file, durable.Replace(file, 0o644, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}))
}

// Writable checks that Replace can write a file: before long work, so that its result is not lost. Without a name it
// does nothing.
func Writable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return unwritable(file, err)
}

func unwritable(file string, err error) error {
	if err == nil {
		return nil
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &diag.Error{What: fmt.Sprintf("it cannot be written: %v", err), Where: file, Fix: "name another file", Err: err}
}
