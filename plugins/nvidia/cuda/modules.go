//go:build cuda

package cuda

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

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
		_ = c.device.do(func() error { oldest.unload(); return nil })
	}
}

func (c *modules) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.byKey {
		m.unload()
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
	if m.loaded, err = loadImage(image, m.kernel.Text, m.kernel.Name); err != nil {
		return err
	}
	if first := m.kernel.Before; first != nil {
		if m.before, err = loadFunction(first.Text, first.Name); err != nil {
			return err
		}
	}
	m.uses, err = functionResources(m.function, m.kernel.Threads, m.kernel.SharedMemory)
	return err
}

func (m *module) unload() {
	m.before.unload()
	m.loaded.unload()
}
