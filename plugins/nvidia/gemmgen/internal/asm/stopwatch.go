package asm

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// Counters are what a kernel with a stopwatch counts: for each CTA it adds the cycles and the nanoseconds between Start
// and Stop, and 1. Together they give the cycles of a CTA and the clock of its SM. The last counter is for Keep.
const (
	CounterCycles = iota
	CounterNanoseconds
	CounterCTAs
	counterKept
	Counters
)

// Stopwatch times the part of a kernel between Start and Stop.
type Stopwatch struct {
	b                   Builder
	counters            ptx.Operand // address
	cycles, nanoseconds ptx.Operand
}

// Start waits for all threads of the CTA and reads the clocks. counters is the kernel's parameter with the address of
// the counters.
func (b Builder) Start(counters string) Stopwatch {
	at := b.Param64(counters)
	b.CvtaToGlobalU64(at, at)
	b.BarSync(ptx.Int(0))
	return Stopwatch{b, at, b.MovU64(b.B64(), ptx.Clock64), b.MovU64(b.B64(), ptx.GlobalTimer)}
}

// Stop waits for all threads of the CTA, reads the clocks again and counts the difference.
func (s Stopwatch) Stop() {
	s.b.BarSync(ptx.Int(0))
	s.StopThread(s.b.Special(ptx.TidX))
}

// StopThread is Stop for one thread of the CTA. It counts where id is 0.
func (s Stopwatch) StopThread(id ptx.Operand) {
	b := s.b
	cycles := b.MovU64(b.B64(), ptx.Clock64)
	nanoseconds := b.MovU64(b.B64(), ptx.GlobalTimer)
	b.SubS64(cycles, cycles, s.cycles)
	b.SubS64(nanoseconds, nanoseconds, s.nanoseconds)
	one := b.MovB64(b.B64(), ptx.Int(1))
	first := b.SetpEqS32(b.Pred(), id, ptx.Int(0))
	for i, v := range []ptx.Operand{CounterCycles: cycles, CounterNanoseconds: nanoseconds, CounterCTAs: one} {
		b.If(first).RedGlobalAddU64(ptx.Global(s.counters, 8*i), v)
	}
}

// Keep makes the assembler compute a 32-bit value: it is stored if it has one value of 2^32.
func (s Stopwatch) Keep(v ptx.Operand) {
	s.b.If(s.b.SetpEqS32(s.b.Pred(), v, ptx.Int(0x5eed1e55))).StGlobalB32(ptx.Global(s.counters, 8*counterKept), v)
}
