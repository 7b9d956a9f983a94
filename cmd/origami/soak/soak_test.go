//go:build linux

// Package soak runs origami's sweeps, selections and trust commands over and over, and at random moments kills, stops
// and starves their processes. After each round it checks that nothing was lost, written twice, or blamed on a kernel
// that a healthy executor measures, and that nothing was left behind. The test binary is also the executor plugin that
// the sweeps use. docs/fault-matrix.md says what it expects.
package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/serve"
)

var o options

func init() {
	flag.DurationVar(&o.time, "soak.time", 0, "soak, and begin no round after this time")
	flag.Uint64Var(&o.seed, "soak.seed", rand.Uint64N(1e6), "seed of all random choices; the moments still vary")
	flag.IntVar(&o.only, "soak.only", 0, "run this round only, over and over")
	flag.IntVar(&o.rounds, "soak.rounds", 0, "end after so many rounds; 0 means no limit")
	flag.BoolVar(&o.race, "soak.race", false, "build origami with the race detector")
	flag.BoolVar(&o.verbose, "soak.v", false, "print each disturbance and the end of each command")
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == pluginFile {
		waitUntilStartable()
		serve.MainExecutor(provider{})
	}
	os.Exit(m.Run())
}

// Whatever is killed, nothing is lost, written twice, blamed on a kernel or left behind. make soak runs it.
func TestSoak(t *testing.T) {
	if o.time == 0 {
		t.Skip("no -soak.time")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	must.Do(t, run(ctx, o))
}

type options struct {
	time          time.Duration
	seed          uint64
	only, rounds  int
	race, verbose bool
}

func run(ctx context.Context, o options) (err error) {
	w, err := newWorld(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if left := w.close(); err == nil {
			err = left
		}
	}()
	fmt.Printf("soak: seed %d, in %s\n", o.seed, w.dir)
	begin := time.Now()
	rounds := 0
	for n := 1; ctx.Err() == nil && time.Since(begin) < o.time && (o.rounds == 0 || rounds < o.rounds); n++ {
		number := n
		if o.only != 0 {
			number = o.only
		}
		if err := w.round(ctx, n, rand.New(rand.NewPCG(o.seed, uint64(number)))); err != nil {
			return err
		}
		rounds++
	}
	w.tally.print(os.Stdout, rounds, time.Since(begin), o.seed)
	if n := w.tally.violations(); n > 0 {
		return fmt.Errorf("%d violations; the folders of their rounds are kept in %s; "+
			"a round again: go test -run TestSoak ./cmd/origami/soak -soak.time 1m -soak.seed %d -soak.only ROUND",
			n, w.dir, o.seed)
	}
	return nil
}
