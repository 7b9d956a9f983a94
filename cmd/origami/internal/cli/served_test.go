package cli_test

import (
	"io"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// A command has an endpoint, or server.Unserved says why it has none.
func TestCommandsAreServed(t *testing.T) {
	f := &session.Factory{Streams: iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard)}
	for _, cmd := range cli.Root(f, cli.System{}).Commands() {
		reason, unserved := server.Unserved[cmd.Name()]
		served := server.Serves(cmd.Name())
		if cmd.Runnable() && !cmd.Hidden && (served == unserved || unserved && reason == "") {
			t.Errorf("%s: add an endpoint to server/api.go, or say in server.Unserved why it has none", cmd.Name())
		}
	}
}
