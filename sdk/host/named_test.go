package host_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/wire"
)

// With TrustNamed a named binary runs without an entry in a lock file, but only if it has not changed since
// discovery. A binary on the search path does not run.
func TestNamedBinariesRunOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	named := install(t, t.TempDir(), "outside")
	install(t, dir, "twin")
	h := newHost(t, host.Options{Plugins: []string{named}, SearchPath: []string{dir}, TrustNamed: true})
	p := info(t, h, "outside")
	must.That(t, p.State == host.OK && p.Named && p.SHA256 != "" && len(p.Protocols) == 1 &&
		p.Protocols[0] == wire.ProtocolVersion, "got %+v", p)
	p = info(t, h, "twin")
	must.That(t, p.State == host.Skipped, "got %+v", p)
	conn, err := h.Connection(t.Context(), "outside")
	must.Do(t, err)
	if who, err := wire.NewClient("outside", conn).Info(t.Context()); err != nil || who.Name != "outside" {
		t.Errorf("got %+v, %v", who, err)
	}
	for name, kind := range map[string]diag.Kind{"twin": diag.Plugin, "nobody": diag.Input} {
		_, err := h.Connection(t.Context(), name)
		must.That(t, err != nil && diag.KindOf(err) == kind, "the connection to %s: %v", name, err)
	}

	_ = h.Close() // a file that is being executed cannot be written
	h = newHost(t, host.Options{Plugins: []string{named}, TrustNamed: true})
	info(t, h, "outside")
	tamper(t, named)
	_, err = h.Open(t.Context(), arch.OpenRequest{Arch: "outside"})
	wantFault(t, err, "outside", host.FaultUntrusted, "has changed")
}
