package arch_test

import (
	"context"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/costs"
)

// plain takes 1000 cycles for any GEMM of matrices. Its L2 delivers 100 bytes in a cycle, its DRAM 10.
type plain struct{ asked gemm.Problem }

func (*plain) Describe() *arch.Description {
	return &arch.Description{Arch: "toy", Model: "plain", Units: 4, Kernels: []string{"nests", "rows"},
		Constants: costs.Of("", ""), Families: []arch.Family{{Name: "nests", Nests: true}, {Name: "rows"}}}
}

func (p *plain) Hierarchy() arch.MemoryHierarchy { return p }

func (*plain) Levels() []arch.Level {
	return []arch.Level{{Bandwidth: arch.Bandwidth{Peak: 100}}, {Bandwidth: arch.Bandwidth{Peak: 10}}}
}

func (p *plain) Candidates(_ context.Context, q gemm.Problem, _ arch.Space) (*arch.Candidates, error) {
	p.asked = q
	return &arch.Candidates{}, nil
}

func (p *plain) Estimate(_ context.Context, dst []arch.Estimate, q gemm.Problem, _ []gemm.Config) error {
	p.asked = q
	for i := range dst {
		dst[i] = arch.Estimate{Cycles: 1000}
	}
	return nil
}

func (p *plain) Terms(_ context.Context, _ []float64, q gemm.Problem, _ []gemm.Config) error {
	p.asked = q
	return nil
}

func (p *plain) Mapping(_ context.Context, q gemm.Problem, _ gemm.Config) (arch.Mapping, error) {
	p.asked = q
	return arch.Mapping{}, nil
}

func TestWhole(t *testing.T) {
	model := &plain{}
	config := gemm.Config{BlockM: 32, BlockN: 16, BlockK: 16, SplitK: 1, Kernel: "nests"}
	estimate := func(p gemm.Problem, c gemm.Config) (unit.Cycles, error) {
		dst := make([]arch.Estimate, 1)
		err := arch.Whole(model, p).Estimate(t.Context(), dst, p, []gemm.Config{c})
		return dst[0].Cycles, err
	}
	fused := gemm.New(64, 32, 32)
	fused.Epilogue.Bias = true
	once := arch.Whole(model, fused)
	must.That(t, arch.Whole(once, fused) == once, "what is besides the matrices is added twice")
	p := gemm.New(64, 32, 32)
	must.Equal(t, arch.Whole(model, p), arch.Architecture(model))
	p.Beta = 2
	if got, err := estimate(p, config); err != nil || got != 1000+64*32*2/10. { // C once
		t.Error(got, err)
	}
	must.Equal(t, model.asked, gemm.New(64, 32, 32))

	// Scales: a number of 4 bytes for each row and column, and 2 instructions for each element of 4 tiles on 4 SMs.
	p.Beta, p.Epilogue.Scales = 0, true
	must.Equal(t, must.Get(estimate(p, config))(t), 1000+(64+32)*4/10.+32*16/32*2*0.25)
	p.Epilogue.Scales = false

	// Rows side by side: only finding the elements costs. 4 tiles of 2 blocks of 48·16 elements on 4 SMs, 3 cycles for 32.
	var err error
	p.Beta = 0
	if p.Nest, err = gemm.ParseNest("m64:32:0:32,n32:0:1:1,k32:1:32:0"); err != nil {
		t.Fatal(err)
	}
	must.Equal(t, must.Get(estimate(p, config))(t), 1000+4*2*48*16/32*3/4.)
	// A split gives all of 8 SMs a tile, but there are 4. With one tile there is one.
	config.BlockM, config.BlockN = 64, 32
	if b := arch.BesidesOf(model, &p, &config); b.Addresses != 1*2*96*16/32*3 {
		t.Error(b)
	}
	config.BlockM, config.BlockN = 32, 16

	// Every second element of the rows of A: 4 sectors in place of 2, and as many bytes of gaps as of elements.
	if p.Nest, err = gemm.ParseNest("m64:64:0:32,n32:0:1:1,k32:2:32:0"); err != nil {
		t.Fatal(err)
	}
	b := arch.BesidesOf(model, &p, &config)
	want := unit.Cycles(4 * 2 * 32 * 16 * 2 * (4/2. - 1) / 100)
	must.That(t, math.Abs(float64(b.Lines-want)) <= 1e-9, "%+v, want lines of %v", b, want)
	want = unit.Cycles(((63*64+31*2+1)*2. - 64*32*2) / 10)
	must.That(t, math.Abs(float64(b.Gaps-want)) <= 1e-9, "%+v, want gaps of %v", b, want)
	must.That(t, b.Addresses+b.Lines+b.Gaps+b.Beta+b.Scales+b.Pass+b.Epilogue == b.Total() &&
		len(b.Parts()) == 7, "%v", b)

	config.Kernel = "rows"
	if _, err := estimate(p, config); err == nil ||
		err.Error() != "there are no rows kernels for nested indices; use nests kernels" {
		t.Error(err)
	}
	must.Equal(t, model.Describe().NestFamily(), "nests")
	must.Fail(t, model.Describe().Supports("nests", &p),
		"the plain model of toy predicts A·B of matrices, and the problem is 64x32x32 fp16 nest ")
}
