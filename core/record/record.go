// Package record holds measurements: what ran, on what, under which conditions, and how long it took. It reads the CSV
// layout of an exhaustive sweep and finds records by problem and configuration.
package record

import (
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Record is the measurement of one configuration on one problem.
type Record struct {
	Problem gemm.Problem
	// Config is the configuration, Config.Kernel the family. A vendor library's kernel has no numbers.
	Config gemm.Config
	// Time is the median of Repeats runs.
	Time    unit.Seconds
	Repeats int
}

// Dataset is a sweep of one kernel family on one device, under one set of conditions.
type Dataset struct {
	// Name is where the dataset comes from; errors point at it.
	Name string
	// Arch and Device say what it was measured on, Kernel which family, Library which vendor library beside it.
	Arch, Device, Kernel, Library string
	// GroupM is the launch-order group of every configuration; a few are recorded with others as well.
	GroupM int
	// WarmL2 says that the L2 was not flushed between runs. Input is the distribution of the operands.
	WarmL2          bool
	Input, Software string

	records   map[key]Record
	problems  []gemm.Problem
	resources map[kernel]exec.Resources
}

// key identifies a measurement.
type key struct {
	problem gemm.Problem
	config  gemm.Config
}

// kernel identifies a compiled kernel: the launch-order group is a run-time argument in most families, but not in all.
type kernel struct {
	config gemm.Config
	// evenK says that block_k divides K, which spares the kernel its mask.
	evenK bool
}

// Problems lists the problems that have records, in the order of the files.
func (d *Dataset) Problems() []gemm.Problem { return d.problems }

// Find returns the record of a configuration on a problem.
func (d *Dataset) Find(p gemm.Problem, c gemm.Config) (Record, bool) {
	r, ok := d.records[key{p, c}]
	return r, ok
}

// Resources returns what the compiler reported for the kernel of a configuration on a problem. A kernel that is recorded
// for one launch-order group only stands for all of them.
func (d *Dataset) Resources(p gemm.Problem, c gemm.Config) (exec.Resources, bool) {
	k := kernel{c, p.K%c.BlockK == 0}
	r, ok := d.resources[k]
	if !ok {
		k.config.GroupM = d.GroupM
		r, ok = d.resources[k]
	}
	return r, ok
}

func (d *Dataset) add(r Record) bool {
	k := key{r.Problem, r.Config}
	if _, twice := d.records[k]; twice {
		return false
	}
	d.records[k] = r
	return true
}
