//go:build !race

package emulated

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
)

// observed is what a kernel accessed of A and B in the emulator, by kind of instruction.
type observed struct {
	bytes map[sgemm.Instruction]int
	// first are the shared addresses of the first warp's lanes at each instruction of the text, as it was first run.
	first map[int]*sgemm.Access
}

// observe runs a rung on a problem of 64×64×64.
func observe(t *testing.T, config gemm.Config) observed {
	t.Helper()
	o := observed{map[sgemm.Instruction]int{}, map[int]*sgemm.Access{}}
	lanes := map[int]int{}
	trace := func(_ [3]int, thread, instruction int, opcode, space string, address uint64, n int) {
		kind := sgemm.Instruction(0)
		for i := sgemm.LoadGlobal; i <= sgemm.CopyAsync; i++ {
			if strings.HasPrefix(opcode, i.String()) {
				kind = i
			}
		}
		if strings.HasPrefix(opcode, "wmma.load.") {
			kind = sgemm.LoadGlobal
		}
		if kind == 0 || kind == sgemm.CopyAsync && space == "shared" ||
			space == "global" && address >= 3<<32 && address < 4<<32 {
			return // C
		}
		o.bytes[kind] += n
		if kind != sgemm.LoadShared && kind != sgemm.StoreShared || thread >= warpSize || lanes[instruction] != thread {
			return
		}
		a := o.first[instruction]
		if a == nil {
			a = &sgemm.Access{Instruction: kind, Bytes: n, Lanes: warpSize}
			o.first[instruction] = a
		}
		a.Shared[thread] = int(address)
		lanes[instruction]++
	}
	trial{family: sgemm.Family{}, config: config.String(), majors: "kn", in: gemm.FP32, out: gemm.FP32,
		m: 64, n: 64, k: 64, batch: 1, alpha: 1, target: 80}.run(t, rand.New(rand.NewPCG(7, 8)), false, trace)
	return o
}

// TestTurnIsWhatTheKernelDoes: the bytes that a kernel accesses on a problem of 64×64×64, and the conflicts of its
// reads and writes of shared memory, are those that Turn has, counted from the addresses of an emulated run.
func TestTurnIsWhatTheKernelDoes(t *testing.T) {
	p := fp32(64, 64, 64)
	for _, name := range []string{
		sgemm.RungNaive, sgemm.RungTiled, sgemm.RungPadded, sgemm.RungDoubleBuffer, sgemm.RungWMMA,
		"register-2d", "offset", "warp-tile-double",
	} {
		rung, _ := sgemm.FindRung(name)
		s := sgemm.SpecFor(gemmgen.NewCall(p), rung.Config)
		turn, _, _ := s.Turn()
		got := observe(t, rung.Config)
		c := rung.Config
		turns := (p.K / c.BlockK) * ((p.M + c.BlockM - 1) / c.BlockM) * ((p.N + c.BlockN - 1) / c.BlockN)
		want, degrees := map[sgemm.Instruction]int{}, map[[2]int]bool{}
		for i := range turn.Accesses {
			a := &turn.Accesses[i]
			want[a.Instruction] += a.RequestedBytes() * turns
			if a.Instruction == sgemm.LoadShared || a.Instruction == sgemm.StoreShared {
				_, most := a.Wavefronts()
				degrees[[2]int{int(a.Instruction)<<8 | a.Bytes, most}] = true
			}
		}
		// Of a problem of N×N×N, tiles of T×T request 8·N³/T bytes, and threads without tiles 8·N³.
		const cube = 8 * 64 * 64 * 64
		requests := map[string]int{sgemm.RungNaive: cube, sgemm.RungTiled: cube / 32, sgemm.RungPadded: cube / 32}
		if exact := requests[name]; exact > 0 && got.bytes[sgemm.LoadGlobal] != exact {
			t.Errorf("%s requests %d bytes, want %d", name, got.bytes[sgemm.LoadGlobal], exact)
		}
		for kind, bytes := range want {
			have := got.bytes[kind]
			if kind == sgemm.LoadShared && c.NumStages > 1 { // the first index of a block that is not there is read, too
				have -= bytes / c.BlockK / (p.K / c.BlockK)
			}
			must.That(t, have == bytes, "%s: %s of %d bytes, Turn has %d", name, kind, have, bytes)
		}
		for at, a := range got.first {
			_, most := a.Wavefronts()
			must.That(t, degrees[[2]int{int(a.Instruction)<<8 | a.Bytes, most}],
				"%s: instruction %d, %s of %d bytes, takes %d passes: Turn has %v", name, at, a.Instruction, a.Bytes, most, degrees)
		}
	}
}
