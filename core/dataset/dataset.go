// Package record holds measurements: what ran, on what, under which conditions, how long it took, and what could not be
// measured and why. It writes and reads them as JSON Lines, reads the CSV layout of older sweeps, and finds them by
// problem and configuration. It knows no files and no clock.
package dataset

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
)

// Conditions are what all measurements of a dataset have in common, and what must be equal for two to be compared.
type Conditions struct {
	// Arch and Device say what was measured, by the ids of the catalogue; DeviceName is the catalogue's name for it and
	// DriverName the driver's, which can be another.
	Arch, Device, DeviceName, DriverName string
	// Kernel is the kernel family.
	Kernel string
	// WarmL2 says that the L2 was not flushed between runs. Input is the distribution of the operands.
	WarmL2 bool
	Input  string
	// Executor and ExecutorVersion say what ran the kernels, and thereby which generator built them.
	Executor, ExecutorVersion string
}

// Difference says what differs between two sets of conditions, "" if nothing does.
func (c Conditions) Difference(from Conditions) string {
	for _, f := range []struct{ name, mine, other string }{
		{"architecture", c.Arch, from.Arch}, {"device", c.Device, from.Device}, {"device's name", c.DeviceName, from.DeviceName},
		{"device's name in the driver", c.DriverName, from.DriverName}, {"kernel family", c.Kernel, from.Kernel},
		{"L2", temperature(c.WarmL2), temperature(from.WarmL2)}, {"input distribution", c.Input, from.Input},
		{"executor", c.Executor, from.Executor}, {"executor's version", c.ExecutorVersion, from.ExecutorVersion},
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

// Dataset is a sweep of one kernel family on one device, under one set of conditions.
type Dataset struct {
	Conditions
	// Name is where the dataset comes from; errors point at it.
	Name string
	// GroupM is the launch-order group of every configuration; a few are recorded with others as well. 0 means that each
	// was measured at the one that phase two of a model's selection gave it.
	GroupM int
	// Software names the versions of what was measured and measured with, Source how.
	Software, Source string

	measurements []Measurement
	sweep        map[key]int
	// launches are the sweep's measurements of a configuration at any launch-order group, first recorded first.
	launches map[key][]int
	finals   map[gemm.Problem][][]int // by block
	// candidates are the sweep's measurements of a problem, libraries left out, and problems the ones that have any.
	candidates  map[gemm.Problem][]int
	problems    []gemm.Problem
	libraryRuns map[gemm.Problem]int
	libraries   []string
	kernels     map[kernel]exec.Resources
}

// key identifies a configuration on a problem.
type key struct {
	problem gemm.Problem
	config  gemm.Config
}

// kernel identifies a compiled kernel of the CSV layout: the launch-order group is a run-time argument in most families,
// but not in all.
type kernel struct {
	config gemm.Config
	// evenK says that block_k divides K, which spares the kernel its mask.
	evenK bool
}

// New returns an empty dataset.
func New(name string, c Conditions) *Dataset {
	return &Dataset{
		Name: name, Conditions: c,
		sweep: map[key]int{}, launches: map[key][]int{}, finals: map[gemm.Problem][][]int{},
		candidates: map[gemm.Problem][]int{}, libraryRuns: map[gemm.Problem]int{},
		kernels: map[kernel]exec.Resources{},
	}
}

// Add enters a measurement. It says no to one that is there already.
func (d *Dataset) Add(m Measurement) error {
	i, k := len(d.measurements), key{m.Problem, m.Config}
	twice := diag.Inputf("%s of %s is recorded twice", Label(m.Config), m.Problem).Do("remove one of them")
	switch m.Phase {
	case Final:
		blocks := d.finals[m.Problem]
		for len(blocks) < m.Block {
			blocks = append(blocks, nil)
		}
		for _, other := range blocks[m.Block-1] {
			if o := &d.measurements[other]; o.Config == m.Config && o.Null == m.Null {
				return twice
			}
		}
		blocks[m.Block-1] = append(blocks[m.Block-1], i)
		d.finals[m.Problem] = blocks
	default:
		if _, there := d.sweep[k]; there {
			return twice
		}
		d.sweep[k] = i
		k.config.GroupM = 0
		d.launches[k] = append(d.launches[k], i)
		if m.IsLibrary() {
			d.libraryRuns[m.Problem]++
			break
		}
		if d.candidates[m.Problem] == nil {
			d.problems = append(d.problems, m.Problem)
		}
		d.candidates[m.Problem] = append(d.candidates[m.Problem], i)
	}
	d.measurements = append(d.measurements, m)
	if m.IsLibrary() && !slices.Contains(d.libraries, m.Config.Kernel) {
		d.libraries = append(d.libraries, m.Config.Kernel)
	}
	return nil
}

// Label names a configuration, or a library.
func Label(c gemm.Config) string {
	if IsLibrary(c) {
		return c.Kernel
	}
	return c.String()
}

// commonGroup returns the launch-order group that more than half of the sweep's configurations were measured at, or 0.
func (d *Dataset) commonGroup() int {
	count := map[int]int{}
	total := 0
	for k := range d.sweep {
		if !IsLibrary(k.config) {
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

// Sweep lists what the sweep found for a problem, in the order of the files, libraries left out.
func (d *Dataset) Sweep(p gemm.Problem) []Measurement {
	at := d.candidates[p]
	found := make([]Measurement, len(at))
	for i := range at {
		found[i] = d.at(at[i])
	}
	return found
}

// Len returns how many measurements there are.
func (d *Dataset) Len() int { return len(d.measurements) }

// Problems lists the problems that have measurements of the kernel family, in the order of the files.
func (d *Dataset) Problems() []gemm.Problem { return d.problems }

// Recorded returns how many configurations of a problem, libraries included, the sweep has been through.
func (d *Dataset) Recorded(p gemm.Problem) int {
	return len(d.candidates[p]) + d.libraryRuns[p]
}

// Libraries lists the vendor's libraries that were measured beside, the default one first.
func (d *Dataset) Libraries() []string { return d.libraries }

// Find returns what the sweep found for a configuration on a problem. A library is the configuration that has nothing
// but its Kernel.
func (d *Dataset) Find(p gemm.Problem, c gemm.Config) (Measurement, bool) {
	i, ok := d.sweep[key{p, c}]
	if !ok {
		return Measurement{}, false
	}
	return d.at(i), true
}

// Candidate returns what the sweep found for a configuration on a problem at the launch-order group of the dataset, or,
// where there is none for all, at the configuration's own, or else at the one that it was first recorded with.
func (d *Dataset) Candidate(p gemm.Problem, c gemm.Config) (Measurement, bool) {
	if d.GroupM > 0 {
		c.GroupM = d.GroupM
		return d.Find(p, c)
	}
	if m, ok := d.Find(p, c); ok {
		return m, true
	}
	c.GroupM = 0
	if at := d.launches[key{p, c}]; len(at) > 0 {
		return d.at(at[0]), true
	}
	return Measurement{}, false
}

// Finals returns the blocks of final measurements of a problem, oldest first: those that are whole, each in the order it
// was written. A block that was cut off is not comparable with itself, and is left out.
func (d *Dataset) Finals(p gemm.Problem) [][]Measurement {
	var whole [][]Measurement
	for _, block := range d.finals[p] {
		if len(block) == 0 || len(block) != d.measurements[block[0]].Arms {
			continue
		}
		own := make([]Measurement, len(block))
		for i, at := range block {
			own[i] = d.at(at)
		}
		whole = append(whole, own)
	}
	return whole
}

// NextBlock returns the number for a new block of final measurements of a problem.
func (d *Dataset) NextBlock(p gemm.Problem) int { return len(d.finals[p]) + 1 }

// at returns a measurement with what the compiler reported of its kernel. In the CSV layout that is known per kernel, and
// one that is recorded for one launch-order group only stands for all of them.
func (d *Dataset) at(i int) Measurement {
	m := d.measurements[i]
	if len(d.kernels) == 0 || m.IsLibrary() {
		return m
	}
	k := kernel{m.Config, m.Problem.K%m.Config.BlockK == 0}
	r, ok := d.kernels[k]
	if !ok {
		k.config.GroupM = d.GroupM
		r = d.kernels[k]
	}
	m.Resources = r
	return m
}
