package cli_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/served"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// unserved are the commands that no endpoint answers, with the reason.
var unserved = map[string]string{
	"arch": "its list is archs; show has the parameters of explain", "report": "the page at / is it",
	"bench": "it measures, or reads files", "calibrate": "it measures", "tune": "it measures", "lend": "it measures",
	"ladder": "it measures", "here": "it measures",
	"fit": "it reads measurements, and takes minutes", "logic": "it reads files",
	"records": "it reads and writes files", "export": "it writes files", "table": "it writes files",
	"model":  "it reads a file",
	"plugin": "it starts programs", "serve": "it is the server", "config": "the settings are the server's own",
	"trust": "docs/trust.md has it", "version": "/metrics and the page say it",
	"completion": "it is for shells", "help": "/openapi.json describes all",
}

// Help is short: few flags stand in it, and the others are a --all away.
func TestShortHelp(t *testing.T) {
	f := &session.Factory{Streams: iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard)}
	for _, cmd := range cli.Root(f, cli.System{}).Commands() {
		count := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !session.IsRare(f) {
				count++
			}
		})
		if count > 25 {
			t.Errorf("the help of %s has %d flags; mark those that few people need with rare:\"yes\"", cmd.Name(), count)
		}
	}
}

// A command has an endpoint, or unserved says why it has none.
func TestCommandsAreServed(t *testing.T) {
	f := &session.Factory{Streams: iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard)}
	endpoints := served.Endpoints()
	for _, cmd := range cli.Root(f, cli.System{}).Commands() {
		reason, without := unserved[cmd.Name()]
		served := slices.ContainsFunc(endpoints, func(e server.Endpoint) bool { return e.Name == cmd.Name() })
		if cmd.Runnable() && !cmd.Hidden && (served == without || without && reason == "") {
			t.Errorf("%s: add an endpoint to served.go, or say in unserved why it has none", cmd.Name())
		}
	}
}
