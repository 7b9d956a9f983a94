package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
)

func must(t *testing.T, request string) *model {
	t.Helper()
	m, err := open([]byte(request))
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return m
}

func TestOpen(t *testing.T) {
	for request, want := range map[string]string{
		`{"arch":"sm90"}`:                                                "sm90@h100 pipelined triton",
		`{"arch":"sm90@h200"}`:                                           "sm90@h200 pipelined triton",
		`{"arch":"h200","kernel":"mma"}`:                                 "sm90@h200 pipelined mma",
		`{"arch":"sm90","device":"h200-sxm","model":"reference"}`:        "sm90@h200 tritonblas triton",
		`{"arch":"h200","kernel":"library","options":{"timing":"cold"}}`: "sm90@h200 library library",
		`{"arch":"v100"}`:                                                "sm70@v100 library library",
		`{"arch":"mi300x","kernel":"library"}`:                           "gfx942@mi300x library library",
		`{"arch":"gfx942"}`:                                              "gfx942@mi300x tensile tensile",
		`{"arch":"gfx942","kernel":"triton"}`:                            "gfx942@mi300x amd-origami triton",
		`{"arch":"sm90","live":{"name":"NVIDIA H200"}}`:                  "sm90@h200 pipelined triton",
		`{"arch":"sm89","overrides":{"clock":{"value":1,"unit":"GHz"}}}`: "sm89@rtx4090 pipelined triton",
	} {
		m := must(t, request)
		if got := m.description.ID() + " " + m.description.Model + " " + m.kernel; got != want {
			t.Errorf("%s opens %s, want %s", request, got, want)
		}
	}
	if m := must(t, `{"arch":"sm89","overrides":{"clock":{"value":1,"unit":"GHz"}}}`); m.description.Clock != 1e9 {
		t.Errorf("the overridden clock is %v", m.description.Clock)
	}
	live := `{"arch":"sm89","live":{"name":"NVIDIA GeForce RTX 4070",` +
		`"attributes":{"num_sms":46,"clock":2475e6,"l2_bytes":37748736,"dram_bandwidth":504e9}}}`
	if d := must(t, live).description; d.Device != arch.LiveID || d.Units != 46 || d.Rung != arch.RungSpec {
		t.Errorf("a GPU without a file opens as %s with %d units on rung %s", d.ID(), d.Units, d.Rung)
	}

	for request, want := range map[string]string{
		``:                              "not understood",
		`{"arch":"sm90"} {}`:            "data follows",
		`{"arch":"sm90","arch":"sm80"}`: `the key "arch" is there twice`,
		`{"Arch":"sm90"}`:               `the key "Arch"`,
		`{"arch":"sm90","space":{"block_m":[64],"block_m":[32]}}`:       `there twice`,
		`{"arch":"sm90","overrides":{"clock":1,"clock":2}}`:             `there twice`,
		`{"arch":"sm90","colour":"red"}`:                                "colour",
		`{"arch":7}`:                                                    "not understood",
		`{}`:                                                            "the architecture is missing",
		`{"arch":"sm91"}`:                                               "did you mean sm90",
		`{"arch":"sm90","device":"h900"}`:                               "did you mean h100, h200",
		`{"arch":"sm90","model":"oracle"}`:                              "use one of pipelined, library, sgemm, tritonblas",
		`{"arch":"sm90","kernel":"cutlass"}`:                            "use one of triton, triton_persistent, mma",
		`{"arch":"sm90","rung":"oracular"}`:                             "and oracular was asked for",
		`{"arch":"sm90","options":{"a":"b"}}`:                           `no option "a"`,
		`{"arch":"sm90","space":{"colour":["red"]}}`:                    `unknown axis "colour"`,
		`{"arch":"sm90","space":{"group_m":[8]}}`:                       "space.group_m",
		`{"arch":"sm90","space":{"block_m":["big"]}}`:                   "space.block_m",
		`{"arch":"sm90","overrides":{"x":1}}`:                           `no parameter "x"`,
		`{"arch":"sm90","overrides":[1]}`:                               "not an override file",
		`{"arch":"sm90","overrides":{"sm90":{"clock":1}}}`:              "stand under an architecture",
		`{"arch":"sm90","device":"h200","live":{"name":"NVIDIA H200"}}`: "leave one of them out",
		`{"arch":"sm130","live":{"name":"NVIDIA Future"}}`:              "which no plugin models",
	} {
		m, err := open([]byte(request))
		if m != nil || diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", request, err, want)
		}
	}
}

// Files about the kernels raise the model to their rung and change its answers, as on the command line.
func TestOpenWithKernelFiles(t *testing.T) {
	const (
		timed = `bm,bn,bk,stages,warps,trans_b,ctas,one_2048,one_6144,chip_2048,chip_6144,full_2048,full_6144\n` +
			`128,256,64,3,8,0,1,20,60,22,66,22,66\n`
		built = `target,bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status,trans_a,trans_b\n` +
			`90,128,256,64,3,8,8,1,255,900,147456,ok,0,0\n`
	)
	p := gemm.New(4096, 4096, 4096)
	plain, err := must(t, `{"arch":"sm90","rung":"spec"}`).selectOne(p)
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range map[string]string{"compiled": built, "characterization": timed} {
		m := must(t, `{"arch":"sm90","`+key+`":"`+text+`",`+
			`"space":{"block_m":[128],"block_n":[256],"block_k":[64],"num_stages":[3],"num_warps":[8]}}`)
		e, err := m.selectOne(p)
		if err != nil || m.description.Rung == arch.RungSpec || e.Estimate.Cycles == plain.Estimate.Cycles {
			t.Errorf("%s: rung %s, %v cycles, without it %v, %v",
				key, m.description.Rung, e.Estimate.Cycles, plain.Estimate.Cycles, err)
		}
		for _, bad := range []string{"bm,bn\\n1,2\\n", "colour"} {
			request := `{"arch":"sm90","` + key + `":"` + bad + `"}`
			if _, err := open([]byte(request)); diag.KindOf(err) != diag.Input {
				t.Errorf("%s: %v", request, err)
			}
		}
	}
}

// A space applies to picks and rankings.
func TestSpace(t *testing.T) {
	m := must(t, `{"arch":"sm90","space":{"block_m":[64],"num_warps":[4]}}`)
	p := gemm.New(4096, 4096, 4096)
	pick, err := m.selectOne(p)
	if err != nil || pick.Config.BlockM != 64 || pick.Config.NumWarps != 4 {
		t.Errorf("%s, %v", pick.Config, err)
	}
	err = m.rank(p, 1<<20, func(entries []selector.Entry) {
		if len(entries) < 20 || entries[0] != pick {
			t.Errorf("%d entries, the first %s", len(entries), entries[0].Config)
		}
		for _, e := range entries {
			if e.Config.BlockM != 64 || e.Config.NumWarps != 4 {
				t.Errorf("%s is not of the space", e.Config)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHandles(t *testing.T) {
	var h handles
	m := must(t, `{"arch":"sm90"}`)
	first, second := h.add(m), h.add(m)
	if got, err := h.find(first); first == 0 || second == first || got != m || err != nil {
		t.Fatalf("%d, %d: %p, %v", first, second, got, err)
	}
	if err := h.remove(first); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint64{0, first, 1 << 40} {
		if _, err := h.find(id); diag.KindOf(err) != diag.Input {
			t.Errorf("%d: %v", id, err)
		}
		if err := h.remove(id); diag.KindOf(err) != diag.Input {
			t.Errorf("%d: %v", id, err)
		}
	}
	if third := h.add(m); third == first {
		t.Error("a number is given out twice")
	}
}

// A problem that was asked before costs no memory.
func TestKnownAnswersAllocateNothing(t *testing.T) {
	m := must(t, `{"arch":"sm90"}`)
	p := gemm.New(1000, 3000, 777)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := m.selectOne(p); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Concurrent calls give the same answers as single ones.
func TestConcurrentCallers(t *testing.T) {
	shared, alone := must(t, `{"arch":"sm90"}`), must(t, `{"arch":"sm90"}`)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 20 {
				p := gemm.New(64+i, 512, 512)
				got, err := shared.selectOne(p)
				want, failed := alone.selectOne(p)
				if err != nil || failed != nil || got != want {
					t.Errorf("%s: %s, %v; alone %s, %v", p, got.Config, err, want.Config, failed)
				}
				if err := shared.rank(p, 3, func(e []selector.Entry) {
					if e[0] != want {
						t.Errorf("%s: the ranking begins with %s, want %s", p, e[0].Config, want.Config)
					}
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
