// Package dataset holds measurements: what ran on which device and under which conditions, how long it took, and
// what could not be measured and why. It reads and writes them as JSON Lines, reads the CSV layout of older sweeps,
// and finds them by problem and configuration. It opens no files itself and has no clock.
package dataset

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
)

// Conditions are what all measurements of a data set have in common. Two measurements are comparable only if their
// conditions are equal.
type Conditions struct {
	// Arch and Device are the ids in the catalogue. DeviceName is the catalogue's name of the device, DriverName the
	// driver's, which can differ.
	Arch, Device, DeviceName, DriverName string
	// Kernel is the kernel family.
	Kernel string
	// WarmL2 means that the L2 was not flushed between runs. Input is the distribution of the operands.
	WarmL2 bool
	Input  string
	// Executor and ExecutorVersion identify what ran the kernels, and so the generator that built them.
	Executor, ExecutorVersion string
}

// Difference says what differs between two sets of conditions, "" if nothing does.
func (c Conditions) Difference(from Conditions) string {
	for _, f := range []struct{ name, mine, other string }{
		{"architecture", c.Arch, from.Arch}, {"device", c.Device, from.Device},
		{"device's name", c.DeviceName, from.DeviceName},
		{"device's name in the driver", c.DriverName, from.DriverName},
		{"kernel family", c.Kernel, from.Kernel}, {"L2", temperature(c.WarmL2), temperature(from.WarmL2)},
		{"input distribution", c.Input, from.Input}, {"executor", c.Executor, from.Executor},
		{"executor's version", c.ExecutorVersion, from.ExecutorVersion},
	} {
		if f.mine != f.other {
			return fmt.Sprintf("the %s is %q and was %q", f.name, f.mine, f.other)
		}
	}
	return ""
}

func temperature(warm bool) string {
	if warm {
		return "warm"
	}
	return "cold"
}

// Dataset is a set of measurements of one kernel family on one device under one set of conditions.
type Dataset struct {
	Conditions
	// Name is where the data set comes from, as errors show it.
	Name string
	// GroupM is the launch-order group of the sweep, which may have measured a few configurations at other groups
	// too. It is 0 if each configuration was measured at the group that phase two of a model's selection chose for
	// it.
	GroupM int
	// Software names the versions of the software that was measured and that measured. Source says how.
	Software, Source string

	measurements []Measurement
	sweep        map[key]int
	// launches are the sweep's measurements of a configuration at any group, in the order of the files.
	launches map[key][]int
	finals   map[gemm.Problem][][]int // by block
	// candidates are the sweep's measurements of a problem without the libraries, problems those that have any.
	candidates   map[gemm.Problem][]int
	problems     []gemm.Problem
	libraryCount map[gemm.Problem]int
	libraries    []string
	compiled     map[compiledKey]exec.Resources
}

// key identifies a configuration or a library on a problem.
type key struct {
	problem gemm.Problem
	config  gemm.Config
	library string
}

// compiledKey identifies a compiled kernel of the CSV layout. The launch-order group is part of it because some kernel
// families compile it in, although most pass it at run time.
type compiledKey struct {
	config gemm.Config
	// evenK means that block_k divides K, so that the kernel needs no mask along K.
	evenK bool
}

// New returns an empty data set.
func New(name string, c Conditions) *Dataset {
	return &Dataset{
		Name: name, Conditions: c,
		sweep: map[key]int{}, launches: map[key][]int{}, finals: map[gemm.Problem][][]int{},
		candidates: map[gemm.Problem][]int{}, libraryCount: map[gemm.Problem]int{},
		compiled: map[compiledKey]exec.Resources{},
	}
}

// Add enters a measurement. One that failed in the sweep is replaced by a later one of the same, in its place. It is an
// error if the same measurement is already there otherwise.
func (d *Dataset) Add(m Measurement) error {
	m.Problem = m.Problem.Canonical()
	if old, there := d.sweep[key{m.Problem, m.Config, m.Library}]; there && m.Phase == Sweep &&
		d.measurements[old].Status.Retriable() {
		d.measurements[old] = m
		return nil
	}
	i := len(d.measurements)
	if m.Phase == Final {
		if !d.addFinal(&m, i) {
			return twice(&m)
		}
	} else if !d.addSweep(&m, i) {
		return twice(&m)
	}
	d.measurements = append(d.measurements, m)
	if m.Library != "" && !slices.Contains(d.libraries, m.Library) {
		d.libraries = append(d.libraries, m.Library)
	}
	return nil
}

func twice(m *Measurement) error {
	return diag.Inputf("%s of %s is recorded twice", m.Label(), m.Problem).Do("remove one of them")
}

// addFinal enters the i-th measurement into its block and returns false if it is there.
func (d *Dataset) addFinal(m *Measurement, i int) bool {
	blocks := d.finals[m.Problem]
	for len(blocks) < m.Block {
		blocks = append(blocks, nil)
	}
	for _, other := range blocks[m.Block-1] {
		if o := &d.measurements[other]; o.Config == m.Config && o.Library == m.Library && o.Null == m.Null {
			return false
		}
	}
	blocks[m.Block-1] = append(blocks[m.Block-1], i)
	d.finals[m.Problem] = blocks
	return true
}

// addSweep enters the i-th measurement into the sweep and returns false if it is there.
func (d *Dataset) addSweep(m *Measurement, i int) bool {
	k := key{m.Problem, m.Config, m.Library}
	if _, there := d.sweep[k]; there {
		return false
	}
	d.sweep[k] = i
	if m.Library != "" {
		d.libraryCount[m.Problem]++
		return true
	}
	k.config.GroupM = 0
	d.launches[k] = append(d.launches[k], i)
	if d.candidates[m.Problem] == nil {
		d.problems = append(d.problems, m.Problem)
	}
	d.candidates[m.Problem] = append(d.candidates[m.Problem], i)
	return true
}

// commonGroup returns the launch-order group of more than half of the sweep's configurations, 0 if there is none.
func (d *Dataset) commonGroup() int {
	count := map[int]int{}
	total := 0
	for k := range d.sweep {
		if k.library == "" {
			count[k.config.GroupM]++
			total++
		}
	}
	for group, n := range count {
		if 2*n > total {
			return group
		}
	}
	return 0
}

// Sweep lists the sweep's measurements of a problem in the order of the files, without the libraries.
func (d *Dataset) Sweep(p gemm.Problem) []Measurement {
	at := d.candidates[p]
	found := make([]Measurement, len(at))
	for i := range at {
		found[i] = d.at(at[i])
	}
	return found
}

// SweepLen returns the number of the sweep's measurements of a problem, libraries included.
func (d *Dataset) SweepLen(p gemm.Problem) int { return len(d.candidates[p]) + d.libraryCount[p] }

// Count returns how many measurements are like that, those of the finals included.
func (d *Dataset) Count(like func(*Measurement) bool) int {
	n := 0
	for i := range d.measurements {
		if like(&d.measurements[i]) {
			n++
		}
	}
	return n
}

// Len returns the number of measurements.
func (d *Dataset) Len() int { return len(d.measurements) }

// Problems lists the problems that have measurements of the kernel family, in the order of the files.
func (d *Dataset) Problems() []gemm.Problem { return d.problems }

// Libraries lists the vendor libraries that were measured, the default one first.
func (d *Dataset) Libraries() []string { return d.libraries }

// Find returns the sweep's measurement of a configuration on a problem.
func (d *Dataset) Find(p gemm.Problem, c gemm.Config) (Measurement, bool) {
	return d.find(key{problem: p, config: c})
}

// FindLibrary returns the sweep's measurement of a vendor library on a problem.
func (d *Dataset) FindLibrary(p gemm.Problem, library string) (Measurement, bool) {
	return d.find(key{problem: p, library: library})
}

func (d *Dataset) find(k key) (Measurement, bool) {
	i, ok := d.sweep[k]
	if !ok {
		return Measurement{}, false
	}
	return d.at(i), true
}

// Candidate returns the sweep's measurement that counts for a candidate: at the launch-order group of the data set,
// or, if that has no common group, at the group of the candidate, or else at the group that was measured first.
func (d *Dataset) Candidate(p gemm.Problem, c gemm.Config) (Measurement, bool) {
	if d.GroupM > 0 {
		c.GroupM = d.GroupM
		return d.Find(p, c)
	}
	if m, ok := d.Find(p, c); ok {
		return m, true
	}
	c.GroupM = 0
	if at := d.launches[key{problem: p, config: c}]; len(at) > 0 {
		return d.at(at[0]), true
	}
	return Measurement{}, false
}

// Finals returns the complete blocks of final measurements of a problem, oldest first, each in the order it was
// written. A block whose end was cut off is left out: its arms are to be compared with each other, and some are
// missing.
func (d *Dataset) Finals(p gemm.Problem) [][]Measurement {
	var complete [][]Measurement
	for _, at := range d.finals[p] {
		if len(at) == 0 || len(at) != d.measurements[at[0]].Arms {
			continue
		}
		block := make([]Measurement, len(at))
		for i := range at {
			block[i] = d.at(at[i])
		}
		complete = append(complete, block)
	}
	return complete
}

// NextBlock returns the number of the next block of final measurements of a problem.
func (d *Dataset) NextBlock(p gemm.Problem) int { return len(d.finals[p]) + 1 }

// at returns the i-th measurement. In the CSV layout the compiler's report is kept per compiled kernel; a kernel
// that is listed at the group of the data set only stands for its other groups too.
func (d *Dataset) at(i int) Measurement {
	m := d.measurements[i]
	if len(d.compiled) == 0 || m.Library != "" {
		return m
	}
	k := compiledKey{m.Config, m.Problem.K%m.Config.BlockK == 0}
	r, ok := d.compiled[k]
	if !ok {
		k.config.GroupM = d.GroupM
		r = d.compiled[k]
	}
	m.Resources = r
	return m
}
