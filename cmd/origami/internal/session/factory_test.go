package session_test

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// recorder is the toy, and keeps the request to open it.
type recorder struct {
	fakearch.Toy
	got *arch.OpenRequest
}

func (r recorder) Open(ctx context.Context, q arch.OpenRequest) (arch.Architecture, error) {
	*r.got = q
	return r.Toy.Open(ctx, q)
}

// The files about kernels reach the model, unpacked.
func TestKernelFilesReachTheModel(t *testing.T) {
	dir := t.TempDir()
	kernels, times := filepath.Join(dir, "kernels.csv"), filepath.Join(dir, "times.csv.gz")
	must.Do(t, os.WriteFile(kernels, []byte("registers"), 0o600))
	file := must.Get(os.Create(times))(t)
	z := gzip.NewWriter(file)
	must.Get(z.Write([]byte("cycles")))(t)
	must.Do(t, z.Close())
	must.Do(t, file.Close())

	var got arch.OpenRequest
	f := &session.Factory{
		Streams: iostreams.Plain(strings.NewReader(""), nil, nil),
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
			return session.InProcess{Providers: models.Providers{recorder{got: &got}}}, nil
		},
		Settings: config.Settings{Arch: []string{"toy1"}, Rung: "calibrated", CompiledFile: kernels,
			CharacterizationFile: times},
	}
	must.Get(f.Architecture(t.Context()))(t)
	must.That(t, got.Rung == arch.RungCalibrated && string(got.Compiled) == "registers" &&
		string(got.Characterization) == "cycles", "%+v", got)
	// The toy is always on rung calibrated: an answer under another name would be wrong.
	f.Settings.Rung = "characterized"
	_, err := f.Architecture(t.Context())
	must.That(t, diag.KindOf(err) == diag.Input &&
		strings.Contains(err.Error(), "is on rung calibrated, and characterized was asked for"), "%v", err)
	f.Settings.Rung, f.Settings.CompiledFile = "", ""
	_, err = f.Architecture(t.Context())
	must.That(t, err == nil && got.Rung == "" && got.Compiled == nil, "%v, %+v", err, got)
}
