package probe

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Counters is the number of counters of every kernel. The others are their indices.
const (
	Counters           = asm.Counters
	CounterCycles      = asm.CounterCycles
	CounterNanoseconds = asm.CounterNanoseconds
	CounterCTAs        = asm.CounterCTAs
)

func newKernel(name string, threads int) asm.Builder {
	b := asm.New(name)
	b.Begin(threads, 1)
	return b
}

// looped is a kernel that repeats something as often as its parameter turns says. from is the address that the
// parameter in has.
type looped struct {
	asm.Builder
	from, left ptx.Operand
}

func newLooped(name string, threads int) looped {
	b := newKernel(name, threads)
	b.Params(ptx.U64, "in", "counters")
	b.Params(ptx.U32, "turns")
	return looped{b, b.Param64("in"), b.Param32("turns")}
}

// StreamThreads threads of a CTA read slabs of SlabBytes, with streamLoads loads of each thread in flight.
const (
	StreamThreads = 1024
	SlabBytes     = 512 << 10
	streamLoads   = 8
)

// slabsPerSM is how many CTAs of Slabs fit on an SM: one reads while the next one starts.
const slabsPerSM = 2

// Slabs generates a kernel whose CTAs read one slab each past L1, with 8 bytes per thread and load. CTA i reads slab i
// mod slabs. CTAs start in order, so a slab is read again when all others have been. Parameters: in, counters, slabs.
func Slabs(t target.Target) (*ptx.Kernel, error) { return slabs("slabs", false, t) }

// CachedSlabs is Slabs with the loads and the order of gpu-benches' gpu-l2-cache: loads allocate lines in L1, as those
// that a compiler makes of a plain load, and a slab is a stripe of 16 KiB in each of 32 equal parts of the data set.
func CachedSlabs(t target.Target) (*ptx.Kernel, error) { return slabs("slabs_cached", true, t) }

func slabs(name string, cached bool, t target.Target) (*ptx.Kernel, error) {
	b := newKernel(name, StreamThreads)
	b.LaunchBounds(StreamThreads, slabsPerSM)
	s := newStream(b, 8)
	b.Params(ptx.U32, "slabs")
	watch, read := b.Start("counters"), s.read
	if cached {
		read = s.readStripes
	}
	read(b, b.Special(ptx.CtaidX), b.Param32("slabs"))
	watch.Stop()
	return end(b, watch, s.sums, t)
}

// Stream generates a kernel whose CTAs read one slab after the other, with 16 bytes per thread and load. CTA i reads
// slabs i, i + grid, i + 2·grid and so on, so many as turns says, and begins again at the first slab behind the last.
// Parameters: in, counters, slabs, turns.
func Stream(t target.Target) (*ptx.Kernel, error) {
	b := newKernel("stream", StreamThreads)
	s := newStream(b, 16)
	b.Params(ptx.U32, "slabs", "turns")
	count, left, slab, step := b.Param32("slabs"), b.Param32("turns"), b.Special(ptx.CtaidX), b.Special(ptx.NctaidX)
	watch := b.Start("counters")
	b.Repeat("loop", left, func() {
		s.read(b, slab, count)
		b.AddS32(slab, slab, step)
	})
	watch.Stop()
	return end(b, watch, s.sums, t)
}

// stream is what the kernels that read slabs have in common.
type stream struct {
	width int // bytes per thread and load
	base  ptx.Operand
	sums  []ptx.Operand
}

func newStream(b asm.Builder, width int) *stream {
	b.Params(ptx.U64, "in", "counters")
	base := b.Param64("in")
	b.CvtaToGlobalU64(base, base)
	b.MadWideU32(base, b.Special(ptx.TidX), ptx.Int(width), base)
	return &stream{width, base, b.Zeros(width / 4)}
}

// read reads slab mod count.
func (s *stream) read(b asm.Builder, slab, count ptx.Operand) {
	at := s.at(b, slab, count, SlabBytes)
	each := s.width * StreamThreads
	for from := 0; from < SlabBytes; from += streamLoads * each {
		s.loads(b, func(i int, to []ptx.Operand) {
			address := ptx.Global(at, from+i*each)
			if s.width == 8 {
				b.LdGlobalCgV2B32(b.Vec(to...), address)
			} else {
				b.LdGlobalCgV4B32(b.Vec(to...), address)
			}
		})
	}
}

// stripeBytes is a stripe of a slab: two loads of every thread.
const stripeBytes = 2 * 8 * StreamThreads

// readStripes reads slab mod count, in stripes: the i-th of slab j is the (i·count + j)-th of the data set.
func (s *stream) readStripes(b asm.Builder, slab, count ptx.Operand) {
	at := s.at(b, slab, count, stripeBytes)
	for from := 0; from < SlabBytes; from += streamLoads * s.width * StreamThreads {
		s.loads(b, func(i int, to []ptx.Operand) {
			b.Load(to, ptx.Global(at, i%2*stripeBytes/2))
			if i%2 == 1 {
				b.MadWideU32(at, count, ptx.Int(stripeBytes), at)
			}
		})
	}
}

// at returns the address of the thread's first bytes of slab mod count, where slabs begin so many bytes apart.
func (s *stream) at(b asm.Builder, slab, count ptx.Operand, apart int) ptx.Operand {
	quotient := b.DivU32(b.B32(), slab, count)
	b.MulLoS32(quotient, quotient, count)
	at := b.MadWideU32(b.B64(), b.Sub(slab, quotient), ptx.Int(apart), s.base)
	return at
}

// loads has streamLoads loads in flight and takes them into the sums.
func (s *stream) loads(b asm.Builder, load func(i int, to []ptx.Operand)) {
	loaded := make([][]ptx.Operand, streamLoads)
	for i := range loaded {
		loaded[i] = b.Regs(len(s.sums), b.B32)
		load(i, loaded[i])
	}
	for _, of := range loaded {
		for i, r := range of {
			b.XorB32(s.sums[i], s.sums[i], r)
		}
	}
}

// end keeps the sums, and ends the kernel.
func end(b asm.Builder, watch asm.Stopwatch, sums []ptx.Operand, t target.Target) (*ptx.Kernel, error) {
	for _, r := range sums[1:] {
		b.XorB32(sums[0], sums[0], r)
	}
	watch.Keep(sums[0])
	b.Ret()
	return b.Build(t)
}

// TriadThreads is the CTA size of Triad, TriadBytes what a CTA reads of each of b and c, and writes of a.
const (
	TriadThreads = 512
	TriadBytes   = 16 * TriadThreads
)

// Triad generates a kernel that computes a = b + 3·c, 16 bytes per thread, CTA i the i-th TriadBytes of each array.
// Parameters: a, b, c.
func Triad(t target.Target) (*ptx.Kernel, error) {
	b := newKernel("triad", TriadThreads)
	params := []string{"a", "b", "c"}
	b.Params(ptx.U64, params...)
	index := b.Mad(b.Special(ptx.CtaidX), TriadThreads, b.Special(ptx.TidX))
	at := make([]ptx.Operand, len(params))
	for i, p := range params {
		at[i] = b.Param64(p)
		b.CvtaToGlobalU64(at[i], at[i])
		b.MadWideU32(at[i], index, ptx.Int(16), at[i])
	}
	x, y := b.Regs(4, b.F32), b.Regs(4, b.F32)
	b.Load(x, ptx.Global(at[1], 0))
	b.Load(y, ptx.Global(at[2], 0))
	for i := range x {
		b.FmaF32(x[i], y[i], ptx.Float(3), x[i])
	}
	b.Store(ptx.Global(at[0], 0), x)
	b.Ret()
	return b.Build(t)
}

// Chase has ChaseThreads threads, which write the pointers, of which one follows ChaseTurn in each turn. LineBytes lie
// between pointers.
const (
	ChaseThreads = 1024
	ChaseTurn    = 16
	LineBytes    = 128
)

// Chase generates a kernel of one CTA that writes 2^log2 pointers, one per line, each the address of the next in a
// random order, and then follows them one after the other, from the one that was written first. With fewer steps than
// pointers, no line is read twice. Parameters: in, counters, log2, turns.
func Chase(t target.Target) (*ptx.Kernel, error) {
	b := newKernel("chase", ChaseThreads)
	b.Params(ptx.U64, "in", "counters")
	b.Params(ptx.U32, "log2", "turns")
	base, bits, left, tid := b.Param64("in"), b.Param32("log2"), b.Param32("turns"), b.Special(ptx.TidX)
	b.CvtaToGlobalU64(base, base)
	count := b.MovB32(b.B32(), ptx.Int(1))
	b.ShlB32(count, count, bits)
	mask := b.AddS32(b.B32(), count, ptx.Int(-1))
	half := b.ShrU32(b.B32(), b.Add(bits, ptx.Int(1)), ptx.Int(1))
	// line returns the address of the i-th line of the order: a mixture of the bits of i that can be undone, so that
	// different i have different lines.
	line := func(i ptx.Operand) ptx.Operand {
		x := b.And(i, -1)
		for _, odd := range []int{0x2c1b3c6d, 0x297a2d39} {
			b.MulLoS32(x, x, ptx.Int(odd))
			b.AndB32(x, x, mask)
			shifted := b.ShrU32(b.B32(), x, half)
			b.XorB32(x, x, shifted)
		}
		at := b.MadWideU32(b.B64(), x, ptx.Int(LineBytes), base)
		return at
	}
	write := b.Label("write")
	i := b.MovB32(b.B32(), tid)
	b.Place(write)
	next := b.AndB32(b.B32(), b.Add(i, ptx.Int(1)), mask)
	b.StGlobalB64(ptx.Global(line(i), 0), line(next))
	b.AddS32(i, i, ptx.Int(ChaseThreads))
	b.If(b.SetpLtU32(b.Pred(), i, count)).Bra(write)
	done := b.Label("done")
	b.MovB32(i, ptx.Int(0))
	at := line(i)
	watch := b.Start("counters")
	b.If(b.SetpNeS32(b.Pred(), tid, ptx.Int(0))).Bra(done)
	b.RepeatApart("follow", left, func() {
		for range ChaseTurn {
			b.LdGlobalB64(at, ptx.Global(at, 0))
		}
	})
	watch.Keep(b.CvtU32U64(b.B32(), at))
	watch.StopThread(tid)
	b.Place(done)
	b.Ret()
	return b.Build(t)
}
