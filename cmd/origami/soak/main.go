//go:build linux

// Command soak runs origami's sweeps, selections and trust commands over and over, and at random moments kills, stops
// and starves their processes. After each round it checks that nothing was lost, written twice, or blamed on a kernel
// that a healthy executor measures, and that nothing was left behind. It is also the executor plugin that the sweeps
// use. docs/fault-matrix.md says
// what it expects.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/origami-gemm/origami/sdk/serve"
)

func main() {
	if filepath.Base(os.Args[0]) == pluginFile {
		waitUntilStartable()
		serve.MainExecutor(provider{})
	}
	var o options
	flag.DurationVar(&o.time, "time", 2*time.Minute, "begin no round after this time")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1e6), "seed of all random choices; the moments still vary")
	flag.IntVar(&o.only, "only", 0, "run this round only, over and over")
	flag.IntVar(&o.rounds, "rounds", 0, "end after so many rounds; 0 means no limit")
	flag.BoolVar(&o.race, "race", false, "build origami with the race detector")
	flag.BoolVar(&o.verbose, "v", false, "print each disturbance and the end of each command")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
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
			"a round again: go run ./cmd/origami/soak -seed %d -only ROUND", n, w.dir, o.seed)
	}
	return nil
}
