package verb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/durable"
)

// Replace writes a file that a flag names, whole or not at all.
func Replace(file string, text []byte) error {
	err := durable.Replace(file, 0o644, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err == nil {
		return nil
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &diag.Error{What: fmt.Sprintf("it cannot be written: %v", err), Where: file, Fix: "name another file", Err: err}
}
