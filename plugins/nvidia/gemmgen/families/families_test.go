package families

import (
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// roomy are the limits of a device that has everything that a kernel of today's families may ask for.
var roomy = gemmgen.Limits{RegistersPerThread: 255, RegisterFile: 65536, SharedMemory: 227 << 10}

// inTypes returns a problem in types that a family computes: fp16, or else fp32.
func inTypes(f gemmgen.Family, p gemm.Problem) gemm.Problem {
	p.DType, p.Out = gemm.FP16, gemm.FP16
	if f.Name() == sgemm.Name {
		p.DType, p.Out = gemm.FP32, gemm.FP32
	}
	return p.Canonical()
}

// programs returns some of the programs of a family for a problem, at least one: every step-th of its space.
func programs(t *testing.T, f gemmgen.Family, p gemm.Problem, step int) []gemmgen.Program {
	t.Helper()
	found := offered(t, f, p, step)
	if len(found) == 0 {
		t.Fatalf("%s: no program for %s", f.Name(), p)
	}
	return found
}

// offered returns what programs does, or nothing if the family does not compute the problem.
func offered(t *testing.T, f gemmgen.Family, p gemm.Problem, step int) []gemmgen.Program {
	t.Helper()
	all := must.Get(arch.Space{}.Enumerate(f.Space(), f.Axes()...))(t)
	p = inTypes(f, p)
	var found []gemmgen.Program
	for i := 0; i < len(all); i += step {
		p, reason, _ := f.Program(gemmgen.NewCall(p), p.Output(), all[i], roomy)
		if reason == "" {
			found = append(found, p)
		}
	}
	return found
}

func emit(t *testing.T, p gemmgen.Program, to target.Target) *gemmgen.Kernel {
	t.Helper()
	return must.Get(p.Emit(to))(t)
}

// TestNames: the executor finds families by name, so no two may share one.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range All() {
		if f.Name() == "" || seen[f.Name()] || f.Space().Kernel != f.Name() {
			t.Errorf("family %q, space of %q", f.Name(), f.Space().Kernel)
		}
		seen[f.Name()] = true
	}
}

// TestEmitIsDeterministic: the same program gives the same bytes, whatever is emitted before it or beside it.
func TestEmitIsDeterministic(t *testing.T) {
	for _, f := range All() {
		programs := programs(t, f, gemm.New(512, 512, 512), 37)
		texts := make([]string, len(programs))
		for i, p := range programs {
			texts[i] = emit(t, p, f.Target()).Text
		}
		again := make([]string, len(programs))
		var wait sync.WaitGroup
		for i := range programs {
			wait.Go(func() {
				if k, err := programs[len(programs)-1-i].Emit(f.Target()); err == nil {
					again[len(programs)-1-i] = k.Text
				}
			})
		}
		wait.Wait()
		for i := range texts {
			if texts[i] != again[i] {
				t.Errorf("%s: %v gave two texts", f.Name(), programs[i].Key())
			}
		}
	}
}

// TestKeys: programs with equal keys have the same text, and others another, so that a cache by key is right.
func TestKeys(t *testing.T) {
	for _, f := range All() {
		keys := map[any]string{}
		texts := map[string]any{}
		for _, p := range []gemm.Problem{gemm.New(512, 512, 512), gemm.New(1024, 256, 768), gemm.New(513, 511, 510)} {
			for _, program := range offered(t, f, p, 61) {
				k := emit(t, program, f.Target())
				if k.Key != program.Key() {
					t.Errorf("%s: a kernel of %v has the key %v", f.Name(), program.Key(), k.Key)
				}
				if text, ok := keys[k.Key]; ok && text != k.Text {
					t.Errorf("%s: two texts for %v", f.Name(), k.Key)
				}
				if key, ok := texts[k.Text]; ok && key != k.Key {
					t.Errorf("%s: one text for %v and %v", f.Name(), key, k.Key)
				}
				keys[k.Key], texts[k.Text] = k.Text, k.Key
			}
		}
		if len(keys) < 2 {
			t.Errorf("%s: %d keys", f.Name(), len(keys))
		}
	}
}

// TestLaunch: a program launches the kernel that it was built for and no other.
func TestLaunch(t *testing.T) {
	p := gemm.New(512, 512, 512)
	for _, f := range All() {
		programs := programs(t, f, p, 151)
		if len(programs) < 2 {
			t.Fatalf("%s: %d programs", f.Name(), len(programs))
		}
		a, b := emit(t, programs[0], f.Target()), emit(t, programs[1], f.Target())
		call := gemmgen.NewCall(inTypes(f, p))
		call.Partials, call.Counters = 1<<20, 1<<30 // some programs share tiles
		l, err := programs[0].Launch(a, call)
		if err != nil || l.Threads != a.Threads || l.SharedMemory != a.SharedMemory || len(l.Params) != a.ParamBytes {
			t.Errorf("%s: %+v, %v", f.Name(), l, err)
		}
		if _, err := programs[0].Launch(b, call); err == nil {
			t.Errorf("%s: the kernel of another program is launched", f.Name())
		}
	}
}

// TestTarget: a family's kernels build for the target that it names, and for nothing below.
func TestTarget(t *testing.T) {
	for _, f := range All() {
		p := programs(t, f, gemm.New(512, 512, 512), 151)[0]
		if k := emit(t, p, f.Target()); !f.Target().Covers(k.Target) {
			t.Errorf("%s for %s: the kernel needs %s", f.Name(), f.Target(), k.Target)
		}
		below := target.Target{CC: f.Target().CC - 1}
		if _, err := p.Emit(below); err == nil || !strings.Contains(err.Error(), below.String()) {
			t.Errorf("%s for %s: %v", f.Name(), below, err)
		}
	}
}

// TestLimits: what a device lacks is rejected for that reason, each limit by itself.
func TestLimits(t *testing.T) {
	for _, f := range All() {
		all := must.Get(arch.Space{}.Enumerate(f.Space(), f.Axes()...))(t)
		for _, c := range []struct {
			limits gemmgen.Limits
			reason arch.Reason
		}{
			{gemmgen.Limits{RegistersPerThread: 8, RegisterFile: 65536, SharedMemory: 227 << 10}, arch.ReasonRegisters},
			{gemmgen.Limits{RegistersPerThread: 255, RegisterFile: 64, SharedMemory: 227 << 10}, arch.ReasonRegisters},
			{gemmgen.Limits{RegistersPerThread: 255, RegisterFile: 65536, SharedMemory: 64}, arch.ReasonSharedMemory},
		} {
			rejected := 0
			for _, config := range all {
				call := gemmgen.NewCall(inTypes(f, gemm.New(512, 512, 512)))
				out := call.Problem.Output()
				if _, reason, _ := f.Program(call, out, config, roomy); reason != "" {
					continue
				}
				_, reason, detail := f.Program(call, out, config, c.limits)
				if reason != c.reason || detail == "" {
					t.Fatalf("%s, %s within %+v: %q (%q), want %q", f.Name(), config, c.limits, reason, detail,
						c.reason)
				}
				rejected++
			}
			if rejected == 0 {
				t.Errorf("%s: nothing fits %+v", f.Name(), roomy)
			}
		}
	}
}
