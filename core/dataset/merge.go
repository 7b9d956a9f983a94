package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Merged is what several data sets have together.
type Merged struct {
	// Dataset has what belongs together, in an order that follows from the measurements alone.
	*Dataset
	// Several counts the measurements that more than one data set has. One of them is kept.
	Several int
	// Apart are the data sets, or parts of them, that do not belong to the others.
	Apart []Apart
}

// Apart is what does not belong to the other data sets, and why.
type Apart struct {
	Name         string `json:"name"`         // the data set
	Measurements int    `json:"measurements"` // how many it has
	Why          string `json:"why"`          // why they are not merged
}

// How much data sets that belong together may differ: in the times of the kernels that several of them have (the median
// of the ratios), and in the highest clock. GPUs of a kind differ by 1 to 3 %.
const (
	mergedTimes, mergedClocks = 0.04, 0.04
	// leastClocks is how many measurements with a clock say what the highest is.
	leastClocks = 20
)

// part is what of a data set was measured under one driver.
type part struct {
	name       string
	conditions Conditions
	driver     string
	fixed      bool
	all        []Measurement
	kernels    []int32 // the number of the kernel of each
}

// Merge puts data sets together. The result depends on what they have, not on their order, and merging it again with
// any of them changes nothing.
//
// Measurements are merged if they have the reference's conditions and driver. The reference is into, which earlier
// merges made, or without it whatever most measurements have. Kernels that several data sets timed then show whether
// the GPUs are equally fast. What differs is set apart. It is an error if nothing says which of two is right, or if
// kernels of one name are not the same.
func Merge(name string, into *Dataset, others []*Dataset) (*Merged, error) {
	var parts []part
	if into != nil && into.Len() > 0 {
		parts = split(into, true)
	}
	for _, d := range others {
		parts = append(parts, split(d, false)...)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	numbers := map[kernelKey]int32{}
	for i := range parts {
		p := &parts[i]
		p.kernels = make([]int32, len(p.all))
		for j := range p.all {
			m := &p.all[j]
			p.kernels[j] = numberOf(numbers, kernelKey{m.Problem, m.Config, m.Library})
		}
	}
	out := &Merged{}
	parts = out.alike(parts)
	parts, err := out.equallyFast(parts)
	if err != nil {
		return nil, err
	}
	if err := sameKernels(parts); err != nil {
		return nil, err
	}
	conditions := Conditions{}
	switch {
	case len(parts) > 0:
		conditions = parts[0].conditions
	case into != nil:
		conditions = into.Conditions
	case len(others) > 0:
		conditions = others[0].Conditions
	}
	out.Dataset = New(name, conditions)
	return out, out.combine(parts)
}

// split splits a data set by the driver under which it was measured. What has no environment, because nothing ran, goes
// with what was measured before it.
func split(d *Dataset, fixed bool) []part {
	byDriver := map[string][]Measurement{}
	all := append(d.All(), d.Checks()...)
	last := ""
	for i := 0; i < len(all) && last == ""; i++ {
		last = driverOf(&all[i])
	}
	for begin, end := 0, 0; begin < len(all); begin = end {
		next := ""
		for ; end < len(all); end++ {
			if next = driverOf(&all[end]); next != "" && next != last {
				break
			}
		}
		if byDriver[last] == nil {
			byDriver[last] = all[begin:end:end] // mostly all of them, which are not copied
		} else {
			byDriver[last] = append(byDriver[last], all[begin:end]...)
		}
		last = cmp.Or(next, last)
	}
	var parts []part
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		parts = append(parts, part{d.Name, d.Conditions, driver, fixed, byDriver[driver], nil})
	}
	return parts
}

// most returns the key with the largest number, the first of several in their order.
func most(numbers map[string]int) (key string) {
	for _, k := range slices.Sorted(maps.Keys(numbers)) {
		if key == "" || numbers[k] > numbers[key] {
			key = k
		}
	}
	return key
}

func driverOf(m *Measurement) string {
	e := m.Environment
	switch {
	case e == nil || e.Driver == "":
		return ""
	case e.Runtime == "":
		return e.Driver
	}
	return e.Driver + ", " + e.Runtime
}

// alike leaves the parts with the conditions and the driver of most.
func (out *Merged) alike(parts []part) []part {
	like := func(p *part) string { return fmt.Sprintf("%+v\x00%s", p.conditions, p.driver) }
	groups, fixed := map[string]int{}, map[string]int{}
	for i := range parts {
		p := &parts[i]
		groups[like(p)] += len(p.all)
		if p.fixed {
			fixed[like(p)] += len(p.all)
		}
	}
	if len(fixed) > 0 {
		groups = fixed
	}
	key := most(groups)
	reference := slices.IndexFunc(parts, func(p part) bool { return like(&p) == key })
	return slices.DeleteFunc(parts, func(p part) bool {
		if like(&p) == key {
			return false
		}
		r := &parts[reference]
		why := p.conditions.Difference(r.conditions)
		if why == "" {
			why = fmt.Sprintf("the driver is %q and was %q", p.driver, r.driver)
		}
		out.setApart(&p, strings.Replace(why, " and was ", ", and in what is merged it is ", 1))
		return true
	})
}

func (out *Merged) setApart(p *part, why string) {
	out.Apart = append(out.Apart, Apart{p.name, len(p.all), why})
}

// kernelKey is a kernel on a problem.
type kernelKey struct {
	problem gemm.Problem
	config  gemm.Config
	library string
}

// times returns the median of the medians of each kernel of a part.
func (p *part) times() map[int32]unit.Seconds {
	var order []int
	for i := range p.all {
		if p.all[i].Status == OK {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.kernels[a], p.kernels[b]) })
	out := make(map[int32]unit.Seconds, len(order))
	var list []unit.Seconds
	for i, at := range order {
		list = append(list, p.all[at].Median)
		if k := p.kernels[at]; i+1 == len(order) || p.kernels[order[i+1]] != k {
			out[k] = stats.Median(list)
			list = list[:0]
		}
	}
	return out
}

// highestClock returns the highest clock of a part, 0 if too few measurements have one.
func (p *part) highestClock() (highest unit.Hertz) {
	n := 0
	for i := range p.all {
		if c := p.all[i].ClockMax; c > 0 {
			n++
			highest = max(highest, c)
		}
	}
	if n < leastClocks {
		return 0
	}
	return highest
}

// confirming is how many kernels at least, per kernel that speaks against a part, have to speak for it.
const confirming = 0.1

// equallyFast leaves the parts whose GPUs are equally fast. Two parts are judged by the kernels that both have. Of two
// that differ, the one stays that was merged before, or else the one that a third part agrees with. Both stay if the
// same part agrees with both of them, which then lies between. It is an error if others agree with both, or with none.
func (out *Merged) equallyFast(parts []part) ([]part, error) {
	apart := slower(parts)
	times := make([]map[int32]unit.Seconds, len(parts))
	having := map[int32][]int{} // the parts with a time of a kernel
	ratios := map[[2]int][]float64{}
	for i := range parts {
		if apart[i] != "" {
			continue
		}
		times[i] = parts[i].times()
		for k, t := range times[i] {
			for _, j := range having[k] {
				ratios[[2]int{j, i}] = append(ratios[[2]int{j, i}], float64(t/times[j][k]))
			}
			having[k] = append(having[k], i)
		}
	}
	alike := map[[2]int]bool{}
	kernels := make([]int, len(parts)) // those that speak for a part
	for pair, list := range ratios {
		if r := stats.Median(list); max(r, 1/r) <= 1+mergedTimes {
			alike[pair], alike[[2]int{pair[1], pair[0]}] = true, true
			kernels[pair[0]], kernels[pair[1]] = kernels[pair[0]]+len(list), kernels[pair[1]]+len(list)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(ratios), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, pair := range pairs {
		list := ratios[pair]
		between := false
		for third := range parts {
			between = between || alike[[2]int{pair[0], third}] && alike[[2]int{pair[1], third}]
		}
		if alike[pair] || between {
			continue
		}
		standing := func(i int) int {
			switch {
			case parts[i].fixed:
				return 2
			case float64(kernels[i]) >= confirming*float64(len(list)):
				return 1
			}
			return 0
		}
		ratio := stats.Median(list)
		switch first, second := standing(pair[0]), standing(pair[1]); {
		case first == second:
			return nil, diag.Inputf("the times of the %d kernels that both have differ by %.1f %%, and nothing says which of "+
				"them is right", len(list), 100*(max(ratio, 1/ratio)-1)).
				At("%s and %s", parts[pair[0]].name, parts[pair[1]].name).Do("merge a third data set too, or leave one out")
		case first > second:
			apart[pair[1]] = differing(len(list), ratio)
		default:
			apart[pair[0]] = differing(len(list), 1/ratio)
		}
	}
	var left []part
	for i := range parts {
		if apart[i] == "" {
			left = append(left, parts[i])
		} else {
			out.setApart(&parts[i], apart[i])
		}
	}
	return left, nil
}

func differing(kernels int, ratio float64) string {
	return fmt.Sprintf("the times of the %d kernels that others have too are %.3g times theirs", kernels, ratio)
}

// slower says of the parts with a lower clock than the others, or than what was merged before, that they have it.
func slower(parts []part) []string {
	clocks, clock := make([]unit.Hertz, len(parts)), unit.Hertz(0)
	for i := range parts {
		clocks[i] = parts[i].highestClock()
		clock = max(clock, clocks[i]) // what only slows a GPU down is looked for
	}
	for i := range parts {
		if parts[i].fixed && clocks[i] > 0 {
			clock = clocks[i]
		}
	}
	apart := make([]string, len(parts))
	for i := range parts {
		if !parts[i].fixed && clocks[i] > 0 && clocks[i] < clock*(1-mergedClocks) {
			apart[i] = fmt.Sprintf("its clock was at most %.4g GHz, and that of the others %.4g GHz", float64(clocks[i])/1e9,
				float64(clock)/1e9)
		}
	}
	return apart
}

// sameKernels reports kernels of one name that were compiled to something else: their generator has changed without its
// version.
func sameKernels(parts []part) error {
	type compiled struct {
		uses exec.Resources
		by   string
	}
	first := map[int32]compiled{}
	for i := range parts {
		for j := range parts[i].all {
			m := &parts[i].all[j]
			if m.Status != OK || m.Library != "" || m.Resources == (exec.Resources{}) {
				continue
			}
			k := parts[i].kernels[j]
			old, there := first[k]
			switch {
			case !there:
				first[k] = compiled{m.Resources, parts[i].name}
			case old.uses != m.Resources:
				return diag.Inputf("%s of %s has %d registers and %v bytes of shared memory, and in %s it has %d and %v: they "+
					"are not the same kernel", m.Label(), m.Problem, m.Resources.Registers, m.Resources.SharedMemory, old.by,
					old.uses.Registers, old.uses.SharedMemory).At("%s", parts[i].name).Do("leave one of the two out")
			}
		}
	}
	return nil
}

// combine adds what the parts have, each measurement once, in an order that follows from the measurements.
func (out *Merged) combine(parts []part) error {
	var libraries []string
	var sweeps []place
	blocks := map[gemm.Problem]map[string][]Measurement{}
	checks := map[string]Measurement{}
	for i := range parts {
		one := New("", parts[i].conditions)
		for j := range parts[i].all {
			m := &parts[i].all[j]
			switch m.Phase {
			case Check:
				checks[lineText(m)] = *m
			case Sweep:
				sweeps = append(sweeps, place{int32(i), int32(j)})
			case Final:
				if err := one.Add(*m); err != nil {
					return diag.Within(parts[i].name, err)
				}
			}
			if m.Phase != Check && m.Library != "" && !slices.Contains(libraries, m.Library) {
				libraries = append(libraries, m.Library)
			}
		}
		for p := range one.problemIDs {
			for _, block := range one.Finals(p) {
				if blocks[p] == nil {
					blocks[p] = map[string][]Measurement{}
				}
				blocks[p][blockText(block)] = block
			}
		}
	}
	chosen := out.choose(parts, sweeps)
	for p := range blocks {
		if chosen[p] == nil {
			chosen[p] = []place{} // nothing but finals
		}
	}
	// Problem by problem, since lines take much more memory than measurements.
	problems := slices.SortedFunc(maps.Keys(chosen), func(a, b gemm.Problem) int { return compareProblems(&a, &b) })
	for _, p := range problems {
		var all []texted
		for _, at := range chosen[p] {
			m := &parts[at.part].all[at.at]
			all = append(all, texted{*m, lineText(m)})
		}
		for i, key := range slices.Sorted(maps.Keys(blocks[p])) {
			for _, m := range blocks[p][key] {
				m.Block = i + 1
				all = append(all, texted{m, lineText(&m)})
			}
		}
		library := func(m *texted) int { return slices.Index(libraries, m.Library) } // −1 for our kernels
		slices.SortFunc(all, func(a, b texted) int {
			return cmp.Or(cmp.Compare(b.Phase, a.Phase), cmp.Compare(a.Block, b.Block),
				cmp.Compare(library(&a), library(&b)), cmp.Compare(a.text, b.text))
		})
		for i := range all {
			if err := out.Add(all[i].Measurement); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(checks)) {
		if err := out.Add(checks[key]); err != nil {
			return err
		}
	}
	return nil
}

// place is where a measurement is: in which part, and where there.
type place struct{ part, at int32 }

// choose returns where the measurements of sweeps are that are kept, by problem: of each kernel one.
func (out *Merged) choose(parts []part, sweeps []place) map[gemm.Problem][]place {
	number := func(p place) int32 { return parts[p.part].kernels[p.at] }
	slices.SortFunc(sweeps, func(a, b place) int { return cmp.Compare(number(a), number(b)) })
	chosen := map[gemm.Problem][]place{}
	for len(sweeps) > 0 {
		n := 1
		for n < len(sweeps) && number(sweeps[n]) == number(sweeps[0]) {
			n++
		}
		best := sweeps[0]
		if n > 1 {
			out.Several++
			line := func(p place) texted {
				m := &parts[p.part].all[p.at]
				return texted{*m, lineText(m)}
			}
			best = slices.MinFunc(sweeps[:n], func(a, b place) int { return better(line(a), line(b)) })
		}
		p := parts[best.part].all[best.at].Problem
		chosen[p] = append(chosen[p], best)
		sweeps = sweeps[n:]
	}
	return chosen
}

// texted is a measurement with its line.
type texted struct {
	Measurement
	text string
}

// lineText is a measurement as a line.
func lineText(m *Measurement) string {
	text, err := lineOf(Conditions{}, m)
	if err != nil {
		return err.Error() // it cannot be written either, and the writer says so
	}
	return string(text)
}

// blockText is a block without its number.
func blockText(block []Measurement) string {
	var all strings.Builder
	for _, m := range block {
		m.Block = 1
		all.WriteString(lineText(&m))
	}
	return all.String()
}

// better compares two measurements of the same kernel: one with a time goes first, then one that is known not to have a
// time, then more runs. Which of two equal ones is kept does not matter, only that it is always the same.
func better(a, b texted) int {
	rank := func(m *Measurement) int {
		switch {
		case m.Status == OK:
			return 0
		case m.Status.Retriable():
			return 2
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(&a.Measurement), rank(&b.Measurement)), cmp.Compare(b.Runs, a.Runs),
		cmp.Compare(a.text, b.text))
}

func compareProblems(a, b *gemm.Problem) int {
	c := cmp.Or(cmp.Compare(a.M, b.M), cmp.Compare(a.N, b.N), cmp.Compare(a.K, b.K), cmp.Compare(a.Batch, b.Batch))
	if c != 0 || *a == *b {
		return c
	}
	return cmp.Compare(a.String()+a.Groups.String(), b.String()+b.Groups.String())
}
