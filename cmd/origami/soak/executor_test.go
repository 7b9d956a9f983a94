//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/exectest"
)

const (
	pluginName = "soak"
	pluginFile = "origami-plugin-" + pluginName
	// hindrance is a file beside the plugin that keeps it from starting. Its text says how.
	hindrance = "hindrance"
)

// provider opens the executor. Its values follow from the problem and the configuration, and its calls take a random
// time of some milliseconds.
type provider struct{}

func (provider) Manifest() exec.Manifest { return exec.Manifest{Name: pluginName, Version: "1.0.0"} }

func (provider) Open(context.Context) (exec.Executor, error) {
	return executor{&exectest.Executor{
		Device: exec.Device{Name: "NVIDIA GeForce RTX 4090", Arch: "sm89", Kernels: []string{"triton"},
			Libraries: []string{"cublas"}},
		Fate: fate,
		Before: func(int) error {
			time.Sleep(time.Duration(rand.Int64N(int64(6 * time.Millisecond))))
			return nil
		},
	}}, nil
}

// fate picks a few configurations that do not build, compute wrong results, or end the process.
func fate(p gemm.Problem, c gemm.Config) exectest.Fate {
	if kills(p, c) && p.K > p.M {
		die() // while it is compiled
	}
	switch [4]int{c.BlockM, c.BlockN, c.BlockK, c.NumStages} {
	case [4]int{64, 64, 32, 2}:
		return exectest.Wrong
	case [4]int{128, 64, 64, 3}:
		return exectest.NotBuilt
	}
	return exectest.Fine
}

// kills reports whether the kernel ends the executor's process, each time.
func kills(_ gemm.Problem, c gemm.Config) bool {
	return c.BlockM == 32 && c.BlockN == 64 && c.BlockK == 32 && c.NumStages == 3
}

func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// executor adds the kernels that really end the process when they run.
type executor struct{ *exectest.Executor }

func (x executor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	k, err := x.Executor.Compile(ctx, device, p, c)
	if err == nil && kills(p, c) {
		k = killer{k}
	}
	return k, err
}

type killer struct{ exec.Kernel }

func (killer) Measure(context.Context, exec.MeasureOptions, func(exec.Sample) bool) error {
	die()
	return errors.New("it lives")
}

// waitUntilStartable does not return, or returns late, if there is a hindrance.
func waitUntilStartable() {
	path, err := os.Executable()
	if err != nil {
		return
	}
	path = filepath.Join(filepath.Dir(path), hindrance)
	for first := true; ; first = false {
		text, err := os.ReadFile(path)
		switch how := strings.TrimSpace(string(text)); {
		case errors.Is(err, fs.ErrNotExist):
			return
		case how == "die":
			die()
		case how == "garbage" && first:
			fmt.Println("1|2|what?")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
