// Package emulated runs generated kernels on the CPU. The emulator executes the PTX text of a kernel CTA by CTA, with
// the meaning that the PTX ISA gives each instruction.
//
// It is stricter than a GPU. Every access to memory must be aligned and inside a region of Memory or the shared memory.
// Asynchronous copies poison their destination when they are issued and arrive when they are waited for, so that a
// missing wait or barrier shows. Each warp runs as far ahead of the others as barriers let it.
package emulated

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// poison fills shared memory, and the destination of a copy that is under way. It is not a number in any float type.
const poison = 0xFF

// Memory is the global memory: regions by address.
type Memory map[uint64][]byte

// at returns n bytes at an address, which must be inside a region.
func (m Memory) at(address uint64, n int) ([]byte, error) {
	if n > 0 && address%uint64(n) != 0 {
		return nil, fmt.Errorf("%d bytes at %#x are not aligned", n, address)
	}
	for base, bytes := range m {
		if address >= base && address-base+uint64(n) <= uint64(len(bytes)) {
			return bytes[address-base : address-base+uint64(n)], nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %#x are outside the global memory", n, address)
}

// Launch starts a kernel.
type Launch struct {
	// Text is the PTX, Params the parameter buffer.
	Text   string
	Params []byte
	// Grid is the grid, Threads the CTA size, Shared the bytes of dynamic shared memory.
	Grid            [3]int
	Threads, Shared int
	// Backwards runs the last CTA and the last warp first.
	Backwards bool
	// Trace sees every access of a thread to global and shared memory, if it is not nil.
	Trace Trace
}

// Trace is called for the access of a thread of a CTA by an instruction, which is its place in the text: n bytes at an
// address in a space, "global" or "shared". An asynchronous copy is both.
type Trace func(cta [3]int, thread, instruction int, opcode, space string, address uint64, n int)

// Run executes a launch.
func Run(l Launch, global Memory) error {
	p, err := parse(l.Text)
	if err != nil {
		return err
	}
	n := l.Grid[0] * l.Grid[1] * l.Grid[2]
	for i := range n {
		if l.Backwards {
			i = n - 1 - i
		}
		c := &cta{
			program: p, launch: &l, global: global, shared: slices.Repeat([]byte{poison}, l.Shared+p.staticShared),
			id: [3]int{i % l.Grid[0], i / l.Grid[0] % l.Grid[1], i / l.Grid[0] / l.Grid[1]},
		}
		if err := c.run(); err != nil {
			return fmt.Errorf("CTA %v: %w", c.id, err)
		}
	}
	return nil
}

// cta is a CTA that runs.
type cta struct {
	*program
	launch  *Launch
	global  Memory
	shared  []byte
	id      [3]int
	threads []*thread
}

// thread is a thread that runs.
type thread struct {
	*cta
	id   int
	pc   int
	regs []uint64
	done bool
	// open are the copies since the last commit, groups the committed ones that have not arrived.
	open   []copied
	groups [][]copied
	err    error
}

// copied is an asynchronous copy.
type copied struct {
	to, from uint64
	n, size  int
}

const warpSize = 32

func (c *cta) run() error {
	for i := range c.launch.Threads {
		c.threads = append(c.threads, &thread{cta: c, id: i, regs: make([]uint64, c.registers)})
	}
	warps := slices.Collect(slices.Chunk(c.threads, warpSize))
	if c.launch.Backwards {
		slices.Reverse(warps)
	}
	for {
		waiting := map[int]bool{}
		for _, w := range warps {
			if err := c.runWarp(w, waiting); err != nil {
				return err
			}
		}
		switch at := slices.Collect(maps.Keys(waiting)); len(at) {
		case 0:
			return nil
		case 1:
			for _, t := range c.threads {
				t.pc++
			}
		default:
			return fmt.Errorf("warps wait at different barriers")
		}
	}
}

// runWarp runs a warp until it waits at a barrier, whose place it adds to waiting, or ends.
func (c *cta) runWarp(w []*thread, waiting map[int]bool) error {
	for {
		var live []*thread
		for _, t := range w {
			t.run()
			if t.err != nil {
				return fmt.Errorf("thread %d, %q: %w", t.id, c.code[t.pc].text, t.err)
			}
			if !t.done {
				live = append(live, t)
			}
		}
		if len(live) == 0 {
			return nil
		}
		in := &c.code[live[0].pc]
		for _, t := range live {
			if t.pc != live[0].pc {
				return fmt.Errorf("lanes part at %q and %q", in.text, c.code[t.pc].text)
			}
		}
		if in.barrier {
			if len(live) != len(w) {
				return fmt.Errorf("%q is not reached by all lanes", in.text)
			}
			waiting[live[0].pc] = true
			return nil
		}
		if len(live) != warpSize && in.opcode != "bar.warp.sync" {
			return fmt.Errorf("%q with %d lanes", in.text, len(live))
		}
		if err := in.together(live, in); err != nil {
			return fmt.Errorf("%q: %w", in.text, err)
		}
		for _, t := range live {
			t.pc++
		}
	}
}

// run executes instructions until one that the warp executes together, or the end.
func (t *thread) run() {
	for !t.done && t.err == nil {
		in := &t.code[t.pc]
		if in.barrier || in.together != nil {
			return
		}
		if in.guard >= 0 && (t.regs[in.guard] != 0) == in.negate {
			t.pc++
			continue
		}
		if in.jump >= 0 {
			t.pc = in.jump
			continue
		}
		if in.opcode == "ret" {
			t.done = true
			return
		}
		in.do(t, in)
		if t.err == nil {
			t.pc++
		}
	}
}

// get returns an operand's value.
func (t *thread) get(o operand) uint64 {
	switch o.kind {
	case register:
		return t.regs[o.index]
	case immediate:
		return o.value
	case special:
		return uint64(t.special(o.index))
	default:
		t.err = fmt.Errorf("%v has no value", o)
		return 0
	}
}

func (t *thread) special(index int) int {
	cta, grid := &t.cta.id, &t.launch.Grid
	return [...]int{t.id, cta[0], cta[1], cta[2], grid[0], grid[1], t.id % warpSize}[index]
}

func (t *thread) set(o operand, v uint64) { t.regs[o.index] = v & o.mask }

// memory returns n bytes at an address operand.
func (t *thread) memory(space string, o operand, n int) []byte {
	address := t.regs[o.index] + o.value
	t.traced(space, address, n)
	var b []byte
	var err error
	if space == "global" {
		b, err = t.global.at(address, n)
	} else {
		b, err = t.sharedAt(uint32(address), n)
	}
	if err != nil {
		t.err = err
		return make([]byte, n)
	}
	return b
}

func (t *thread) traced(space string, address uint64, n int) {
	if t.launch.Trace != nil {
		t.launch.Trace(t.cta.id, t.id, t.pc, t.code[t.pc].opcode, space, address, n)
	}
}

func (c *cta) sharedAt(address uint32, n int) ([]byte, error) {
	if int(address)+n > len(c.shared) || int(address)%max(n, 1) != 0 {
		return nil, fmt.Errorf("%d bytes at %d of the %d of shared memory", n, address, len(c.shared))
	}
	return c.shared[address : int(address)+n], nil
}

// arrive lets the oldest groups of copies arrive until at most n are left.
func (t *thread) arrive(n int) {
	for len(t.groups) > n {
		for _, c := range t.groups[0] {
			to, err := t.sharedAt(uint32(c.to), c.n)
			if err != nil {
				t.err = err
				return
			}
			clear(to)
			if c.size == 0 {
				continue
			}
			if c.from%uint64(c.n) != 0 {
				t.err = fmt.Errorf("a copy of %d bytes from %#x is not aligned", c.n, c.from)
				return
			}
			for i := range c.size {
				from, err := t.global.at(c.from+uint64(i), 1)
				if err != nil {
					t.err = err
					return
				}
				to[i] = from[0]
			}
		}
		t.groups = t.groups[1:]
	}
}

func uintOf(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

func putUint(b []byte, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b, w[:])
}
