//go:build cuda

package cuda

import (
	"errors"
	"sync"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// program is what runs for a configuration of a problem.
type program interface {
	resources() exec.Resources
	// bind prepares launches on operands. Each call of the function that it returns enqueues one run.
	bind(o *operands) (func() error, error)
	close()
}

// generated is a kernel of a generated family.
type generated struct {
	*module
	device  *device
	program gemmgen.Program
	config  gemm.Config
}

// generated returns the program of a configuration. It compiles the kernel unless the device has it.
func (d *device) generated(f gemmgen.Family, p gemm.Problem, c gemm.Config) (program, error) {
	if err := c.Validate(f.Axes()...); err != nil {
		return nil, err
	}
	spec, reason, detail := f.Program(gemmgen.NewCall(p), p.Output(), c, d.limits())
	if reason != "" {
		return nil, diag.Inputf("%s cannot be built: %s: %s", c, reason, detail)
	}
	m, err := d.modules.get(spec)
	if err != nil {
		return nil, err
	}
	return &generated{m, d, spec, c}, nil
}

func (g *generated) resources() exec.Resources { return g.uses }

func (g *generated) bind(o *operands) (func() error, error) {
	call := o.call()
	partials, counters := gemmgen.WorkspaceOf(g.program, o.problem, g.config)
	if counters > 0 {
		if err := o.reserve(counters + partials); err != nil {
			return nil, err
		}
		// Counters first: a region starts aligned, and partial sums need 16 bytes.
		call.Counters, call.Partials = o.workspace.address(0), o.workspace.address(roundUp(counters))
		if err := cu.MemsetD8Async(o.workspace.at, 0, int64(counters), g.device.stream); err != nil {
			return nil, err
		}
	}
	if s, ok := g.program.(gemmgen.Scratcher); ok {
		if bytes := s.Scratch(o.problem); bytes > 0 {
			if err := o.reserve(bytes); err != nil {
				return nil, err
			}
			call.Scratch = o.workspace.address(0) // a program has no workspace beside it
		}
	}
	at, err := g.program.Launch(g.kernel, call)
	if err != nil {
		return nil, err
	}
	if err := encodeMaps(&at); err != nil {
		return nil, err
	}
	if at.Before == nil {
		return func() error { return g.device.start(g.function, at) }, nil
	}
	return func() error {
		if err := g.device.start(g.before, *at.Before); err != nil {
			return err
		}
		return g.device.start(g.function, at)
	}, nil
}

func (g *generated) close() { g.device.modules.release(g.module) }

// module is a compiled kernel. It serves all programs with its key.
type module struct {
	key      any
	kernel   *gemmgen.Kernel
	module   cu.Module
	function cu.Function
	// beforeModule and before are those of kernel.Before, if there is one.
	beforeModule cu.Module
	before       cu.Function
	uses         exec.Resources
	err          error
	once         sync.Once
	users        int
	idle         uint64 // the clock of modules when the last user released it
}

// modules keeps kernels loaded, so that a sweep over problems compiles each of them once.
type modules struct {
	device *device
	mu     sync.Mutex
	byKey  map[any]*module
	clock  uint64
}

// modulesKept is the number of kernels that stay loaded without users. The largest takes about 100 KB on the device.
const modulesKept = 4096

// get returns the kernel of a program, compiled. Several may be compiled at once.
func (c *modules) get(p gemmgen.Program) (*module, error) {
	key := p.Key()
	c.mu.Lock()
	m := c.byKey[key]
	if m == nil {
		if c.byKey == nil {
			c.byKey = map[any]*module{}
		}
		c.evict()
		m = &module{key: key}
		c.byKey[key] = m
	}
	m.users++
	c.mu.Unlock()
	m.once.Do(func() { m.err = c.device.do(func() error { return m.load(c.device, p) }) })
	if m.err != nil {
		c.release(m)
		return nil, m.err
	}
	return m, nil
}

func (c *modules) release(m *module) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	m.users, m.idle = m.users-1, c.clock
}

// evict makes room for one more kernel by unloading the one that has been idle longest.
func (c *modules) evict() {
	if len(c.byKey) < modulesKept {
		return
	}
	var oldest *module
	for _, m := range c.byKey {
		if m.users == 0 && (oldest == nil || m.idle < oldest.idle) {
			oldest = m
		}
	}
	if oldest != nil {
		delete(c.byKey, oldest.key)
		_ = c.device.do(oldest.unload)
	}
}

func (c *modules) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.byKey {
		_ = m.unload()
	}
	c.byKey = nil
}

// load generates and compiles the kernel, and asks the driver what it uses.
func (m *module) load(d *device, p gemmgen.Program) (err error) {
	if m.kernel, err = p.Emit(d.target); err != nil {
		return err
	}
	image := d.assembler.assemble(m.kernel.Text, d.target)
	d.quiet.Lock()
	defer d.quiet.Unlock()
	if m.module, m.function, err = loadImage(image, m.kernel.Name); err != nil {
		if m.module, m.function, err = loadFunction(m.kernel.Text, m.kernel.Name); err != nil {
			return err
		}
	}
	if first := m.kernel.Before; first != nil {
		if m.beforeModule, m.before, err = loadFunction(first.Text, first.Name); err != nil {
			return err
		}
	}
	m.uses, err = functionResources(m.function, m.kernel.Threads, m.kernel.SharedMemory)
	return err
}

func (m *module) unload() error {
	if m.function == (cu.Function{}) {
		return nil
	}
	if m.before != (cu.Function{}) {
		_ = m.beforeModule.Unload()
	}
	return m.module.Unload()
}

// loadFunction compiles PTX text and returns the kernel of that name.
func loadFunction(text, name string) (cu.Module, cu.Function, error) {
	module, err := compile(text)
	if err != nil {
		return module, cu.Function{}, diag.Inputf("the driver does not compile %s: %v", name, err)
	}
	f, err := module.Function(name)
	return module, f, err
}

// loadImage loads machine code and returns the kernel of that name.
func loadImage(image []byte, name string) (cu.Module, cu.Function, error) {
	if image == nil {
		return cu.Module{}, cu.Function{}, errNoImage
	}
	module, err := cu.LoadData(string(image))
	if err != nil {
		return module, cu.Function{}, err
	}
	f, err := module.Function(name)
	return module, f, err
}

var errNoImage = errors.New("not assembled")

// functionResources allows a function its dynamic shared memory and asks the driver what the function uses.
func functionResources(f cu.Function, threads int, shared unit.Bytes) (r exec.Resources, err error) {
	if err := allowShared(f, shared); err != nil {
		return r, err
	}
	if r.Registers, err = f.Attribute(cu.NumRegs); err != nil {
		return r, err
	}
	local, err := f.Attribute(cu.LocalSizeBytes)
	if err != nil {
		return r, err
	}
	static, err := f.Attribute(cu.SharedSizeBytes)
	if err != nil {
		return r, err
	}
	r.SpillBytes, r.SharedMemory = unit.Bytes(local), shared+unit.Bytes(static)
	r.CTAsPerSM, err = f.MaxActiveBlocksPerMultiProcessor(threads, int64(shared))
	return r, err
}
