package measure_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
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
		must.Do(t, s.Run(t.Context(), p))
		if data := l.read(t); len(data.Sweep(p)) != 14 || len(data.Finals(p)) != 1 {
			t.Errorf("%d measurements and %d finals can be read", len(data.Sweep(p)), len(data.Finals(p)))
		}
	}
}

// The parts of a work are disjoint, have all of it, and are about equal in cost.
func TestParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		costs := make([]unit.Seconds, random.IntN(60))
		total, largest := unit.Seconds(0), unit.Seconds(0)
		for i := range costs {
			costs[i] = unit.Seconds(random.ExpFloat64())
			total += costs[i]
			largest = max(largest, costs[i])
		}
		n := 1 + random.IntN(9)
		var all []int
		for i := range n {
			part, load := measure.Shard{Index: i + 1, Of: n}.Part(costs), unit.Seconds(0)
			must.Need(t, slices.IsSorted(part), "%v", part)
			for _, at := range part {
				load += costs[at]
			}
			must.That(t, load <= max(total/unit.Seconds(n), largest)*4/3+1e-9 || load <= total/unit.Seconds(n)+largest,
				"part %d of %d has %v of %v, the largest piece is %v", i+1, n, load, total, largest)
			all = append(all, part...)
		}
		slices.Sort(all)
		for i, at := range all {
			must.Need(t, i == at && len(all) == len(costs), "%v of %d pieces", all, len(costs))
		}
	}
	must.Alike(t, (measure.Shard{}).Part(make([]unit.Seconds, 3)), []int{0, 1, 2})
	s := (measure.Shard{Index: 2, Of: 4})
	must.That(t, s.String() == "2/4", "%v", s)
}
