package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Fits reports whether the matrices of a problem fit into a device's memory, and warns if not: no candidate could run.
// Zero means that the executor does not know the memory.
func Fits(s *iostreams.Streams, p gemm.Problem, memory unit.Bytes) bool {
	var need unit.Bytes
	for o := gemm.A; o <= gemm.C; o++ {
		need += unit.Bytes(p.Matrices(o)) * unit.Bytes(p.Type(o).Size(p.Stride(o)))
	}
	if memory == 0 || need <= memory {
		return true
	}
	s.Warn(fmt.Sprintf("%s is not measured: its matrices take %.4g GB, and the device has %.4g GB", p,
		float64(need)/1e9, float64(memory)/1e9))
	return false
}

// LeftOut says that a measurement has no time, and false if that is no reason to warn: many candidates do not fit.
func LeftOut(m *dataset.Measurement) (string, bool) {
	if m.Status == dataset.OK || m.Status == dataset.NotBuilt {
		return "", false
	}
	return fmt.Sprintf("%s of %s is left out: %s: %s", m.Label(), m.Problem, words(m.Status), m.Detail), true
}

// words writes a status for a reader.
func words(s dataset.Status) string {
	switch s {
	case dataset.Wrong:
		return "wrong result"
	case dataset.Timeout:
		return "it did not end in time"
	default:
		return string(s)
	}
}

// Stopped adds to the error that ended a sweep how many measurements are kept, and how to continue.
func Stopped(ctx context.Context, err error, measurements int, folder string) error {
	kept := ""
	if measurements > 0 {
		kept = digits.Plural(measurements, "measurement is", "measurements are") + " kept"
	}
	return StoppedWith(ctx, err, kept, folder)
}

// StoppedWith adds to the error that ended a measurement what is kept in a file or folder of records, and how to
// continue. kept is empty if that is nothing.
func StoppedWith(ctx context.Context, err error, kept, records string) error {
	var d *diag.Error
	switch {
	case ctx.Err() != nil:
		d = &diag.Error{What: session.ErrInterrupted.Error(), Err: session.ErrInterrupted}
	case !errors.As(err, &d):
		d = &diag.Error{What: err.Error(), Err: err}
	}
	if kept == "" {
		return d
	}
	fix := fmt.Sprintf("%s in %s, and the same command with --records %s goes on from there", kept, records, records)
	if d.Fix != "" {
		fix = d.Fix + "; " + fix
	}
	return d.Do("%s", fix)
}
