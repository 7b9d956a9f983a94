package cli_test

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

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
