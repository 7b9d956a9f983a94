// Package dataset holds measurements: what ran on which device and under which conditions, how long it took, and
// what could not be measured and why. It reads and writes them as JSON Lines, reads the CSV layout of older sweeps,
// and finds them by problem and configuration. It opens no files itself and has no clock.
package dataset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/timing"
)

// Conditions are what all measurements of a data set have in common. Two measurements are comparable only if their
// conditions are equal.
type Conditions struct {
	// Arch and Device are the ids in the catalogue. DeviceName is the catalogue's name of the device, DriverName the
	// driver's, which can differ.
	Arch       string `json:"arch"`
	Device     string `json:"device"`
	DeviceName string `json:"device_name,omitempty"`
	DriverName string `json:"driver_device_name,omitempty"`
	// Kernel is the kernel family.
	Kernel string `json:"kernel"`
	// WarmL2 means that the L2 was not flushed between runs. Input is the distribution of the operands.
	WarmL2 bool   `json:"warm_l2"`
	Input  string `json:"input"`
	// Executor and ExecutorVersion identify what ran the kernels, and so the generator that built them.
	Executor        string `json:"executor,omitempty"`
	ExecutorVersion string `json:"executor_version,omitempty"`
}

// Timing is what the measured times are of.
func (c *Conditions) Timing() timing.Timing {
	if c.WarmL2 {
		return timing.Alone
	}
	return timing.Events
}

// Difference says what differs between two sets of conditions, "" if nothing does.
func (c Conditions) Difference(from Conditions) string {
	mine, other := c.texts(), from.texts()
	for i := range mine {
		if *mine[i].text != *other[i].text {
			return fmt.Sprintf("%s is %q and was %q", mine[i].key, *mine[i].text, *other[i].text)
		}
	}
	if c.WarmL2 != from.WarmL2 {
		return fmt.Sprintf("warm_l2 is %v and was %v", c.WarmL2, from.WarmL2)
	}
	return ""
}

// keyed is a text of conditions or of a measurement, with its key.
type keyed struct {
	key  string
	text *string
}

// texts lists the texts of conditions. The first ones must be there.
func (c *Conditions) texts() [8]keyed {
	return [...]keyed{{"arch", &c.Arch}, {"device", &c.Device}, {"kernel", &c.Kernel}, {"input", &c.Input},
		{"device_name", &c.DeviceName}, {"driver_device_name", &c.DriverName}, {"executor", &c.Executor},
		{"executor_version", &c.ExecutorVersion}}
}

// missing is the key of a text that must be there and is not, "" if all are.
func (c *Conditions) missing() string {
	for i, t := range c.texts() {
		if i < 4 && *t.text == "" {
			return t.key
		}
	}
	return ""
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
	// Untried are configurations that run, but that a sweep at one group left out by its own rule. What a model would
	// choose among them cannot be scored.
	Untried []gemm.Config
	// Software names the versions of the software that was measured and that measured. Source says how.
	Software, Source string

	measurements list
	// A measurement names its problem, configuration and library many times over. The maps below have numbers for them.
	problemIDs map[gemm.Problem]int32
	configIDs  map[gemm.Config]int32
	libraryIDs map[string]int32

	places map[key]int32
	// first is the sweep's first measurement of a configuration, at any group.
	first map[key]int32
	// recorded has the records of each problem, by its number. problems lists the problems with candidates.
	recorded  []recorded
	problems  []gemm.Problem
	libraries []string
	notBuilt  map[compiledKey]bool
	checks    []Measurement
	most      int // of measurements, and of checks
}

// list is a list of measurements in pieces: one that grew as a whole would take its memory twice.
type list struct{ pieces [][]Measurement }

const piece = 1 << 12

func (l *list) len() int {
	if n := len(l.pieces); n > 0 {
		return (n-1)*piece + len(l.pieces[n-1])
	}
	return 0
}

func (l *list) at(i int32) *Measurement { return &l.pieces[i/piece][i%piece] }

func (l *list) add(m Measurement) {
	if l.len() == len(l.pieces)*piece {
		l.pieces = append(l.pieces, nil)
	}
	last := &l.pieces[len(l.pieces)-1]
	*last = append(*last, m)
}

// recorded is what a data set has of one problem.
type recorded struct {
	// all are its measurements, candidates the sweep's without the libraries.
	all, candidates []int32
	// blocks are the final measurements by the number of their block.
	blocks map[int][]int32
}

// key identifies a measurement of a configuration or a library on a problem, by numbers. The configuration of a library
// is the zero one, and the library of a configuration is number 0. In the sweep the block is 0.
type key struct {
	problem, config, library, block int32
	null                            bool
}

// compiledKey identifies a compiled kernel of the CSV layout. The launch-order group is part of it because some kernel
// families compile it in, although most pass it at run time.
type compiledKey struct {
	config gemm.Config
	// evenK means that block_k divides K, so that the kernel needs no mask along K.
	evenK bool
}

func compiledKeyOf(p gemm.Problem, c gemm.Config) compiledKey {
	return compiledKey{c, p.K%(c.BlockK*c.SplitK) == 0}
}

// New returns an empty data set.
func New(name string, c Conditions) *Dataset {
	return &Dataset{
		Name: name, Conditions: c,
		problemIDs: map[gemm.Problem]int32{}, configIDs: map[gemm.Config]int32{}, libraryIDs: map[string]int32{"": 0},
		places: map[key]int32{}, first: map[key]int32{},
		notBuilt: map[compiledKey]bool{}, most: limit.Measurements,
	}
}

// Full reports an error if so many more measurements are too many.
func (d *Dataset) Full(more int) error {
	if max(d.measurements.len(), len(d.checks)) > d.most-more {
		return d.tooMany()
	}
	return nil
}

// Add enters a measurement. One that failed in the sweep is replaced by a later one of the same, in its place. It is an
// error if the same measurement is already there otherwise.
func (d *Dataset) Add(m Measurement) error {
	m.Problem = m.Problem.Canonical()
	if m.Phase == Check {
		if len(d.checks) == d.most {
			return d.tooMany()
		}
		d.checks = append(d.checks, m)
		return nil
	}
	k := key{problem: numberOf(d.problemIDs, m.Problem), config: numberOf(d.configIDs, m.Config),
		library: numberOf(d.libraryIDs, m.Library)}
	if int(k.problem) == len(d.recorded) {
		d.recorded = append(d.recorded, recorded{})
	}
	if m.Phase == Final {
		k.block, k.null = int32(m.Block), m.Null
	}
	old, there := d.places[k]
	switch {
	case m.Phase == Sweep && there && d.measurements.at(old).Status.Retriable():
		*d.measurements.at(old) = m
		return nil
	case there:
		return diag.Inputf("%s of %s is recorded twice", m.Label(), m.Problem).Do("remove one of them")
	case d.measurements.len() == d.most:
		return d.tooMany()
	case m.Phase == Final:
		d.addFinal(&m, k)
	default:
		d.addSweep(&m, k)
	}
	d.recorded[k.problem].all = append(d.recorded[k.problem].all, int32(d.measurements.len()))
	d.measurements.add(m)
	if int(k.library) > len(d.libraries) {
		d.libraries = append(d.libraries, m.Library)
	}
	return nil
}

// numberOf returns the number of a value, the next one if it is new.
func numberOf[T comparable](numbers map[T]int32, v T) int32 {
	n, there := numbers[v]
	if !there {
		n = int32(len(numbers))
		numbers[v] = n
	}
	return n
}

func (d *Dataset) tooMany() error {
	return diag.Inputf("there are more than %d measurements, the most of a data set", d.most).
		Do("split it into several folders")
}

// addFinal enters the next measurement into its block.
func (d *Dataset) addFinal(m *Measurement, k key) {
	d.places[k] = int32(d.measurements.len())
	r := &d.recorded[k.problem]
	if r.blocks == nil {
		r.blocks = map[int][]int32{}
	}
	r.blocks[m.Block] = append(r.blocks[m.Block], int32(d.measurements.len()))
}

// addSweep enters the next measurement into the sweep.
func (d *Dataset) addSweep(m *Measurement, k key) {
	i, r := int32(d.measurements.len()), &d.recorded[k.problem]
	d.places[k] = i
	if m.Library != "" {
		return
	}
	c := m.Config
	c.GroupM = 0
	k.config = numberOf(d.configIDs, c)
	if _, there := d.first[k]; !there {
		d.first[k] = i
	}
	if r.candidates == nil {
		d.problems = append(d.problems, m.Problem)
	}
	r.candidates = append(r.candidates, i)
}

// recordedOf returns the records of a problem.
func (d *Dataset) recordedOf(p gemm.Problem) recorded {
	if n, there := d.problemIDs[p]; there {
		return d.recorded[n]
	}
	return recorded{}
}

// keyOf returns the key of a configuration or a library on a problem, and false if there are no measurements of one of
// them.
func (d *Dataset) keyOf(p gemm.Problem, c gemm.Config, library string) (k key, ok bool) {
	var there [3]bool
	k.problem, there[0] = d.problemIDs[p]
	k.config, there[1] = d.configIDs[c]
	k.library, there[2] = d.libraryIDs[library]
	return k, there == [3]bool{true, true, true}
}

// commonGroup returns the launch-order group of more than half of the sweep's configurations, 0 if there is none.
func (d *Dataset) commonGroup() int {
	count := map[int]int{}
	total := 0
	for _, r := range d.recorded {
		for _, i := range r.candidates {
			count[d.measurements.at(i).Config.GroupM]++
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
	return d.list(d.recordedOf(p).candidates)
}

// list lists the measurements with some numbers.
func (d *Dataset) list(numbers []int32) []Measurement {
	list := make([]Measurement, len(numbers))
	for i, n := range numbers {
		list[i] = *d.measurements.at(n)
	}
	return list
}

// Count returns how many measurements match, finals included.
func (d *Dataset) Count(like func(*Measurement) bool) int {
	n := 0
	for i := range d.measurements.len() {
		if like(d.measurements.at(int32(i))) {
			n++
		}
	}
	return n
}

// Len returns the number of measurements.
func (d *Dataset) Len() int { return d.measurements.len() }

// Checks lists the times of known kernels, in the order of the files. No sweep has them.
func (d *Dataset) Checks() []Measurement { return d.checks }

// Of lists the measurements of a problem, finals and libraries included, in the order of the files.
func (d *Dataset) Of(p gemm.Problem) []Measurement {
	return d.list(d.recordedOf(p).all)
}

// All lists the measurements in the order of the files, without the checks.
func (d *Dataset) All() []Measurement {
	return slices.Concat(d.measurements.pieces...)
}

// Problems lists the problems that have measurements of the kernel family, in the order of the files.
func (d *Dataset) Problems() []gemm.Problem { return d.problems }

// Libraries lists the vendor libraries that were measured, the default one first.
func (d *Dataset) Libraries() []string { return d.libraries }

// Find returns the sweep's measurement of a configuration on a problem.
func (d *Dataset) Find(p gemm.Problem, c gemm.Config) (Measurement, bool) {
	return d.find(p, c, "")
}

// FindLibrary returns the sweep's measurement of a vendor library on a problem.
func (d *Dataset) FindLibrary(p gemm.Problem, library string) (Measurement, bool) {
	return d.find(p, gemm.Config{}, library)
}

// Like returns the sweep's measurement of the configuration or the library that another measurement is of.
func (d *Dataset) Like(m *Measurement) (Measurement, bool) {
	return d.find(m.Problem, m.Config, m.Library)
}

func (d *Dataset) find(p gemm.Problem, c gemm.Config, library string) (Measurement, bool) {
	if k, ok := d.keyOf(p, c, library); ok {
		if i, ok := d.places[k]; ok {
			return *d.measurements.at(i), true
		}
	}
	return Measurement{}, false
}

// Candidate returns the sweep's measurement that counts for a candidate: at the launch-order group of the data set,
// or, if that has no common group, at the group of the candidate, or else at the group that was measured first. A
// kernel that the compiler's report lists as not built was tried and failed.
func (d *Dataset) Candidate(p gemm.Problem, c gemm.Config) (Measurement, bool) {
	if d.GroupM > 0 {
		c.GroupM = d.GroupM
		m, ok := d.Find(p, c)
		if _, recorded := d.problemIDs[p]; !ok && recorded && d.notBuilt[compiledKeyOf(p, c)] {
			return Measurement{Problem: p, Config: c, Phase: Sweep, Status: NotBuilt}, true
		}
		return m, ok
	}
	if m, ok := d.Find(p, c); ok {
		return m, true
	}
	c.GroupM = 0
	if k, ok := d.keyOf(p, c, ""); ok {
		if i, ok := d.first[k]; ok {
			return *d.measurements.at(i), true
		}
	}
	return Measurement{}, false
}

// Finals returns the complete blocks of final measurements of a problem, oldest first, each in the order it was
// written. A block whose end was cut off is left out: its arms are to be compared with each other, and some are
// missing.
func (d *Dataset) Finals(p gemm.Problem) [][]Measurement {
	var complete [][]Measurement
	blocks := d.recordedOf(p).blocks
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		if arms := d.list(blocks[block]); len(arms) == arms[0].Arms {
			complete = append(complete, arms)
		}
	}
	return complete
}

// NextBlock returns the number of the next block of final measurements of a problem.
func (d *Dataset) NextBlock(p gemm.Problem) int {
	last := 0
	for block := range d.recordedOf(p).blocks {
		last = max(last, block)
	}
	return last + 1
}

// Times returns the configurations that have a measured time of a problem, and the times in seconds. If the sweep has a
// launch order that all were measured at, the few that were measured at others as well are left out: they have no times
// at most sizes.
func (d *Dataset) Times(p gemm.Problem) (list []gemm.Config, times map[gemm.Config]float64) {
	times = map[gemm.Config]float64{}
	for _, m := range d.Sweep(p) {
		other := d.GroupM != 0 && m.Config.GroupM != d.GroupM
		if m.Status != OK || m.Library != "" || m.Median <= 0 || other {
			continue
		}
		t, again := times[m.Config]
		if !again {
			list = append(list, m.Config)
		}
		if !again || float64(m.Median) < t {
			times[m.Config] = float64(m.Median)
		}
	}
	return list, times
}
