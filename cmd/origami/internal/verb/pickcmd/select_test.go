package pickcmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Terminal and pipe get the card without being asked, and colour only where it is welcome.
func TestFormatOfEveryStream(t *testing.T) {
	for _, tc := range []struct {
		terminal, colour bool
		want             string
	}{
		{true, false, "pick        64x64x64 "},
		{true, true, "pick        \x1b[1m\x1b[32m64x64x64 "},
		{false, false, "pick        64x64x64 "},
	} {
		var out bytes.Buffer
		streams := iostreams.Plain(strings.NewReader(""), &out, nil)
		streams.Terminal, streams.Colour = tc.terminal, tc.colour
		cmd := NewSelect(&session.Factory{
			Streams: streams,
			Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
				return session.InProcess{Providers: fakearch.Providers()}, nil
			},
			Settings: config.Settings{Arch: []string{"toy1"}, DType: "fp16"},
		})
		cmd.SetArgs(strings.Fields("-m 256 --n 256 -k 256"))
		must.Do(t, cmd.ExecuteContext(t.Context()))
		must.Do(t, streams.Flush())
		must.That(t, strings.Contains(out.String(), tc.want), "terminal %v: %q lacks %q", tc.terminal, out.String(), tc.want)
	}
}

// A row is answered while those behind it are still being written, in each format of rows. An interrupt and a reader
// that goes away end the command where it waits for the next row, and what was written stays.
func TestRowsAsTheyCome(t *testing.T) {
	errGone := errors.New("nobody reads")
	endings := map[error]func(io.WriteCloser, selectAnswered){
		nil:              func(keyboard io.WriteCloser, _ selectAnswered) { _ = keyboard.Close() },
		context.Canceled: func(_ io.WriteCloser, out selectAnswered) { out.interrupt() },
		errGone: func(keyboard io.WriteCloser, out selectAnswered) {
			_ = out.gone(errGone)
			_, _ = io.WriteString(keyboard, "64,64,64\n")
		},
	}
	for format, row := range map[string]string{
		"csv": "toy1,small,", "json": `{"arch":"toy1",`,
	} {
		for want, end := range endings {
			keyboard, out, ended := typing(t, format)
			for range 2 {
				must.Get(io.WriteString(keyboard, "64,64,64\n"))(t)
				for line := ""; !strings.HasPrefix(line, row); {
					var err error
					if line, err = out.ReadString('\n'); err != nil {
						t.Fatalf("%s: after %q: %v", format, line, err)
					}
				}
			}
			end(keyboard, out)
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("%s: ended with %v, want %v", format, err, want)
			}
		}
	}
}

// selectAnswered is the standard output of a command, read while it runs.
type selectAnswered struct {
	*bufio.Reader
	gone      func(error) error // no longer read
	interrupt func()
}

// typing runs select over problems that are written to the keyboard.
func typing(t *testing.T, format string) (keyboard io.WriteCloser, out selectAnswered, ended chan error) {
	t.Helper()
	in, keyboard := io.Pipe()
	from, to := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	o := &SelectOptions{Factory: &session.Factory{
		Streams: iostreams.Plain(in, to, io.Discard),
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
			return session.InProcess{Providers: fakearch.Providers()}, nil
		},
		Settings: config.Settings{Arch: []string{"toy1"}, DType: "fp16", Format: format},
	}}
	o.Query.Problems = "-"
	ended = make(chan error, 1)
	go func() {
		err := o.answer(ctx)
		_ = to.CloseWithError(err)
		ended <- err
	}()
	must.Get(io.WriteString(keyboard, "m,n,k\n"))(t)
	return keyboard, selectAnswered{bufio.NewReader(from), from.CloseWithError, interrupt}, ended
}
