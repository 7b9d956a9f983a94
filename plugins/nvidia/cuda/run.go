//go:build cuda

package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// textsKept is the number of programs that stay loaded.
const textsKept = 256

// launchesPerDelay is how many launches the host can enqueue during a delay, with a margin of 2.
const launchesPerDelay = 4

// run runs a program. The caller holds d.running and has the context.
func (d *device) run(ctx context.Context, p *exec.Program, runs int) ([]exec.Reading, error) {
	d.quiet.Lock()
	defer d.quiet.Unlock()
	f, err := d.loadText(p)
	if err != nil {
		return nil, err
	}
	if err := d.reserveScratch(p); err != nil {
		return nil, err
	}
	launch := gemmgen.Launch{GridX: p.Grid, GridY: 1, GridZ: 1, Threads: p.Threads, SharedMemory: p.SharedMemory,
		Params: d.scratch.parameters(p)}
	once := func() error {
		for range p.Launches {
			if err := start(d.stream, f, launch); err != nil {
				return err
			}
		}
		return nil
	}
	// The device must not be done before everything is enqueued: that takes longer, the more launches there are.
	ahead := func() error {
		for range 1 + p.Launches/launchesPerDelay {
			if err := d.delay(); err != nil {
				return err
			}
		}
		return nil
	}
	readings := make([]exec.Reading, 0, runs)
	for i := range p.Warmup + runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.Counters > 0 {
			if err := cu.MemsetD8Async(d.scratch.counters.at, 0, int64(8*p.Counters), d.stream); err != nil {
				return nil, err
			}
		}
		s, err := d.between(ahead, once)
		if err != nil {
			return nil, err
		}
		if i < p.Warmup {
			continue
		}
		counters, err := d.scratch.read(p.Counters)
		if err != nil {
			return nil, err
		}
		readings = append(readings, exec.Reading{Sample: s, Counters: counters})
	}
	return readings, nil
}

// loadText returns the kernel of a program, loaded, with its shared memory allowed.
func (d *device) loadText(p *exec.Program) (cu.Function, error) {
	key := p.Entry + "\n" + p.Text
	l, ok := d.scratch.texts[key]
	if !ok {
		if len(d.scratch.texts) >= textsKept {
			d.scratch.unload()
		}
		var err error
		if l, err = loadFunction(p.Text, p.Entry); err != nil {
			return l.function, err
		}
		if d.scratch.texts == nil {
			d.scratch.texts = map[string]loaded{}
		}
		d.scratch.texts[key] = l
	}
	return l.function, allowShared(l.function, p.SharedMemory)
}

// reserveScratch makes the buffers of a program and fills them.
func (d *device) reserveScratch(p *exec.Program) error {
	n := 0
	for _, a := range p.Arguments {
		if a.Kind != exec.BufferArgument {
			continue
		}
		if n == len(d.scratch.buffers) {
			d.scratch.buffers = append(d.scratch.buffers, region{})
		}
		to := &d.scratch.buffers[n]
		n++
		if err := to.reserve(a.Bytes); err != nil {
			return doesNotFit(err, fmt.Sprintf("a buffer of %.1f GB", float64(a.Bytes)/1e9))
		}
		if err := d.fill(to.at, a.Bytes, a.DType); err != nil {
			return err
		}
	}
	return d.scratch.counters.reserve(unit.Bytes(8 * p.Counters))
}

// scratchNumbers is the period of the random numbers in a buffer. Programs follow each other with other types, and
// generating more for each would take longer than they do.
const scratchNumbers = 1<<20 - 3

// fill writes normal numbers of a type, or zeros without one.
func (d *device) fill(to cu.DevicePtr, bytes unit.Bytes, t gemm.DType) error {
	if t == 0 {
		return cu.MemsetD8Async(to, 0, int64(bytes), d.stream)
	}
	host := d.scratch.numbers[t]
	if host == nil {
		if d.scratch.numbers == nil {
			d.scratch.numbers = map[gemm.DType][]byte{}
		}
		host = normals(seedOperands, t, scratchNumbers)
		d.scratch.numbers[t] = host
	}
	done := min(int(bytes), len(host))
	if err := upload(to, host[:done]); err != nil {
		return err
	}
	return repeat(to, int64(done), int64(bytes), d.stream)
}

// parameters packs the arguments of a program, each aligned to its size.
func (s *scratch) parameters(p *exec.Program) []byte {
	var packed []byte
	buffer := 0
	for _, a := range p.Arguments {
		value := a.Value
		switch a.Kind {
		case exec.Word32:
			packed = binary.LittleEndian.AppendUint32(packed, uint32(value))
			continue
		case exec.BufferArgument:
			value = s.buffers[buffer].address(0)
			buffer++
		case exec.CountersArgument:
			value = s.counters.address(0)
		case exec.Word64:
		}
		if len(packed)%8 != 0 {
			packed = append(packed, 0, 0, 0, 0)
		}
		packed = binary.LittleEndian.AppendUint64(packed, value)
	}
	return packed
}

// read returns the counters.
func (s *scratch) read(n int) ([]uint64, error) {
	if n == 0 {
		return nil, nil
	}
	counters := make([]uint64, n)
	if err := cu.MemcpyDtoH(unsafe.Pointer(&counters[0]), s.counters.at, int64(8*n)); err != nil {
		return nil, fmt.Errorf("reading the counters: %w", err)
	}
	return counters, nil
}

func (s *scratch) unload() {
	for _, t := range s.texts {
		t.unload()
	}
	s.texts = nil
}

func (s *scratch) free() {
	s.unload()
	for i := range s.buffers {
		s.buffers[i].free()
	}
	s.counters.free()
	*s = scratch{}
}
