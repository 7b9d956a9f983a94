package session

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// interruptedArch is interrupted while it predicts its second problem.
type interruptedArch struct {
	arch.Architecture
	cancel func()
	calls  int
}

func (a *interruptedArch) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, c []gemm.Config) error {
	if a.calls++; a.calls == 2 {
		a.cancel()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.Architecture.Estimate(ctx, dst, p, c)
}

// An interrupt is not the error of the problems that it stops, nor of rows that are read after it.
func TestInterruptIsNoRowsError(t *testing.T) {
	toy, err := fakearch.Toy{}.Open(t.Context(), arch.OpenRequest{Arch: "toy1", Device: "small"})
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	const file = "m,n,k\n64,64,64\n64,64,128\n64,64,256\nx,1,1\n"
	f := &Factory{
		Streams: iostreams.Plain(strings.NewReader(file), nil, &stderr), Settings: config.Settings{DType: "fp16"},
	}
	flags := ProblemFlags{Problems: "-"}
	problems := must.Get(flags.Read(t.Context(), f))(t)
	problems.Failures.ctx = ctx
	cancelling := &interruptedArch{Architecture: toy, cancel: cancel}
	contender := &ask.Contender{Model: cancelling}
	err = f.AskEach(ctx, contender.Rankings, problems, ask.Question{}, func(*ask.Ranking) error { return nil })
	must.That(t, errors.Is(err, context.Canceled) && !strings.Contains(stderr.String(), "canceled"),
		"got %v, %q", err, stderr.String())
	problems.Failures.Add("p.csv:9", errors.New("the plugin has ended"))
	problems.Failures.addUnread(errors.New("not a row"))
	if got := stderr.String(); strings.Count(got, "\n") > 1 || !errors.Is(problems.Failures.Err(), context.Canceled) {
		t.Errorf("after the interrupt: %q", got)
	}
}

// An interrupt ends arithmetic that does not look at its context.
func TestUntilCancelled(t *testing.T) {
	if v, err := UntilCancelled(t.Context(), func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	failure := errors.New("no")
	if _, err := UntilCancelled(t.Context(), func() (int, error) { return 0, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	_, err := UntilCancelled(ctx, func() (int, error) {
		cancel()
		<-forever
		return 0, nil
	})
	must.That(t, errors.Is(err, context.Canceled), "got %v", err)
}
