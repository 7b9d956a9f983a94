package conformance

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
)

// badConfigs are configurations with an impossible number, named by it.
func badConfigs(good gemm.Config) []named[gemm.Config] {
	change := func(what string, change func(*gemm.Config)) named[gemm.Config] {
		c := good
		change(&c)
		return named[gemm.Config]{"a configuration with " + what, c}
	}
	stages := change("no pipeline stage", func(c *gemm.Config) { c.NumStages = 0 })
	if good.NumStages == 0 {
		stages = change("pipeline stages that nobody knows", func(c *gemm.Config) { c.NumStages = 4 })
	}
	return []named[gemm.Config]{
		change("a block of 0", func(c *gemm.Config) { c.BlockM = 0 }),
		change("a negative block", func(c *gemm.Config) { c.BlockK = -64 }),
		change("a block of 2^40", func(c *gemm.Config) { c.BlockN = 1 << 40 }),
		change("a block of 2^62", func(c *gemm.Config) { c.BlockM = 1 << 62 }),
		change("-1 warps", func(c *gemm.Config) { c.NumWarps = -1 }),
		stages,
		change("2^40 pipeline stages", func(c *gemm.Config) { c.NumStages = 1 << 40 }),
		change("a split of 0", func(c *gemm.Config) { c.SplitK = 0 }),
		change("a split of 2^40", func(c *gemm.Config) { c.SplitK = 1 << 40 }),
		change("a launch group below 0", func(c *gemm.Config) { c.GroupM = -1 }),
		change("a launch group of 2^40", func(c *gemm.Config) { c.GroupM = 1 << 40 }),
		change("an unknown kernel family", func(c *gemm.Config) { c.Kernel = unknownName }),
	}
}

// badProblems are impossible problems, named by what is wrong.
func badProblems(good gemm.Problem) []named[gemm.Problem] {
	change := func(what string, change func(*gemm.Problem)) named[gemm.Problem] {
		p := good
		change(&p)
		return named[gemm.Problem]{"a problem " + what, p}
	}
	return []named[gemm.Problem]{
		change("with m = 0", func(p *gemm.Problem) { p.M = 0 }),
		change("with n = -1", func(p *gemm.Problem) { p.N = -1 }),
		change("with k = 0", func(p *gemm.Problem) { p.K = 0 }),
		change("with batch = -7", func(p *gemm.Problem) { p.Batch = -7 }),
		change("of 2^62 by 2^62", func(p *gemm.Problem) { p.M, p.N = 1<<62, 1<<62 }),
		change("without an element type", func(p *gemm.Problem) { p.DType = 0 }),
		change("without a storage order", func(p *gemm.Problem) { p.AMajor = 0 }),
		change("with rows of A that overlap", func(p *gemm.Problem) { p.LDA = 1 }),
		change("with a leading dimension of C of 2^62", func(p *gemm.Problem) { p.LDC = 1 << 62 }),
		change("with B aligned to 3 bytes", func(p *gemm.Problem) { p.AlignB = 3 }),
		change("of results that no hardware has", func(p *gemm.Problem) { p.Out = gemm.TF32 }),
	}
}

// named is a value with a description.
type named[T any] struct {
	what  string
	value T
}

func checkBadConfig(ctx context.Context, _ *subject, found *findings, b *bench) error {
	k, good, err := b.compile(ctx, b.Kernels[0], small)
	if err != nil {
		return err
	}
	found.release(k)
	try := func(what string, p gemm.Problem, c gemm.Config) {
		k, err := b.Compile(ctx, b.device, p, c)
		expectInput(found, "compiling "+what, err)
		if err == nil {
			found.release(k)
		}
	}
	for _, bad := range badConfigs(good) {
		try(bad.what, small, bad.value)
	}
	odd := good
	if odd.Axes, err = good.Axes.With(unusedName(nil), "1"); err != nil {
		return err
	}
	try("a configuration with a named axis that no family has", small, odd)
	for _, bad := range badProblems(small) {
		try(bad.what, bad.value, good)
	}
	if k, err := b.Compile(ctx, b.device, small, good); err != nil {
		found.add("afterwards: %s", err)
	} else {
		found.release(k)
	}
	return nil
}

func checkBadDevice(ctx context.Context, _ *subject, found *findings, b *bench) error {
	devices, err := b.Devices(ctx)
	if err != nil {
		return err
	}
	c := tiles[0]
	c.Kernel = b.Kernels[0]
	for _, device := range []int{len(devices), -1, 1 << 40} {
		_, err := b.Environment(ctx, device)
		expectInput(found, fmt.Sprintf("the environment of device %d", device), err)
		k, err := b.Compile(ctx, device, small, c)
		expectInput(found, fmt.Sprintf("compiling for device %d", device), err)
		if err == nil {
			found.release(k)
		}
	}
	return nil
}
