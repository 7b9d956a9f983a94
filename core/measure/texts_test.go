package measure_test

import (
	"context"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/internal/testing/exectest"
)

// wordy is an executor with a text of its choice in all its answers.
type wordy struct {
	*exectest.Executor
	text string
}

func (x wordy) Environment(context.Context, int) (exec.Environment, error) {
	return exec.Environment{Driver: x.text, Runtime: x.text, ThrottleReasons: []string{x.text, "power", x.text}}, nil
}

func (x wordy) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if c.BlockM == 80 {
		return nil, diag.Inputf("%s", x.text).At("%s", x.text).Do("%s", x.text)
	}
	k, err := x.Executor.Compile(ctx, device, p, c)
	return wordyKernel{k, x.text}, err
}

type wordyKernel struct {
	exec.Kernel
	text string
}

func (k wordyKernel) Check(ctx context.Context) (exec.Numerics, error) {
	n, err := k.Kernel.Check(ctx)
	n.Reference = k.text
	return n, err
}

// However long an executor's texts are, and whatever bytes they have, the records of a sweep can be read back.
func TestLongTexts(t *testing.T) {
	for _, text := range []string{strings.Repeat("thermal ", 1<<18), strings.Repeat("\xff\x00\u2028\"", 1000), "\n{}\n"} {
		l, p := new(log), gemm.New(64, 64, 64)
		s := &measure.Sweep{Arch: wide{}, Ahead: 3, Data: l.read(t), Keep: l.keep, Host: text,
			Executor: wordy{&exectest.Executor{Noise: 0.01}, text}}
		if err := s.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if data := l.read(t); len(data.Sweep(p)) != 14 || len(data.Finals(p)) != 1 {
			t.Errorf("%d measurements and %d finals can be read", len(data.Sweep(p)), len(data.Finals(p)))
		}
	}
}
