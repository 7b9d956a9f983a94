package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// status is how a family gets its value of a parameter.
type status string

const (
	// chosen: the family's candidates have more than one value on an axis.
	chosen status = "chosen"
	// onRequest: the family declares more values than its candidates have, for spaces and lists that name them.
	onRequest status = "on request"
	// derived: the kernel has one value, which follows from the problem, the device or the axes.
	derived status = "derived"
	// fixed: all kernels have the same value.
	fixed status = "fixed"
	// absent: the kernels have no such thing.
	absent status = "–"
	// unknown: the model does not distinguish it.
	unknown status = "not seen"
)

// parameter is a row of the table: a parameter of Tensile's kernels.
type parameter struct {
	// number is that on the slides; 0 is one that came later.
	number int
	name   string
	// axes are the numbers of a configuration and the named axes that carry it.
	axes []string
	// by is the status in each family, in the order of columns.
	by [numColumns]status
}

// columns are the families of the table.
var columns = [numColumns]string{"mma", "wgmma", "triton", "library", "tensile", "tritonblas", "amd-origami"}

const numColumns = 7

const c, r, d, f, no, un = chosen, onRequest, derived, fixed, absent, unknown

// parameters are the rows. consistent holds them to the code.
var parameters = []parameter{
	{1, "WorkGroup", []string{"num_warps"}, [...]status{c, c, c, un, c, c, f}},
	{1, "LocalSplitU", []string{"local_split", "warp_count_k"}, [...]status{r, no, no, un, c, r, no}},
	{2, "ThreadTile, as the tile of a warp", []string{"warp_count_m"}, [...]status{r, d, d, un, d, r, un}},
	{2, "MacroTile: WorkGroup × ThreadTile", []string{"block_m", "block_n"}, [...]status{c, c, c, c, c, c, c}},
	{3, "VectorWidth", nil, [...]status{d, f, d, un, un, d, un}},
	{4, "GlobalSplitU", []string{"split_k"}, [...]status{c, no, c, c, c, no, no}},
	{5, "GlobalSplitUSummationAssignmentRoundRobin", nil, [...]status{f, no, f, un, un, no, no}},
	{5, "GlobalSplitUWorkGroupMappingRoundRobin", nil, [...]status{f, no, f, un, un, no, no}},
	{6, "PrefetchGlobalRead", []string{"num_stages"}, [...]status{c, c, c, un, f, c, f}},
	{7, "PrefetchLocalRead", nil, [...]status{f, no, d, un, un, f, un}},
	{8, "WorkGroupMapping", []string{"group_m"}, [...]status{c, c, c, un, c, c, c}},
	{9, "LoopUnroll, DepthU", []string{"block_k"}, [...]status{c, c, c, f, c, c, c}},
	{10, "NumLoadsCoalesced", nil, [...]status{d, f, d, un, un, d, un}},
	{11, "GlobalReadCoalesceGroup", nil, [...]status{f, f, f, un, un, f, un}},
	{12, "GlobalReadCoalesceVector", nil, [...]status{f, no, f, un, un, f, un}},
	{13, "KernelLanguage", nil, [...]status{f, f, f, un, un, f, un}},
	{14, "NonTemporal", nil, [...]status{f, f, no, un, un, f, un}},
	{0, "EdgeType", nil, [...]status{d, f, f, un, un, d, un}},
	{0, "StaggerU", []string{"skew"}, [...]status{no, r, no, un, un, no, un}},
	{0, "MaxOccupancy", nil, [...]status{no, f, no, un, un, no, un}},
	{0, "PersistentKernel", nil, [...]status{no, f, no, un, un, no, no}},
	{0, "StreamK", []string{"stream_k"}, [...]status{no, c, no, un, c, no, no}},
	{0, "sums of fp8 promoted to fp32, not in Tensile", []string{"promote"},
		[...]status{no, r, un, un, no, un, no}},
	{0, "cluster of CTAs, not in Tensile", []string{"cluster", "cluster_n"}, [...]status{no, c, no, no, no, no, no}},
}

// consistent reports where the rows and the families' axes do not agree: an axis in no row, a family that chooses what
// its row does not call chosen, and the reverse.
func consistent(rows []parameter, all []family) error {
	var wrong []string
	for at, family := range all {
		for _, axis := range family.axes {
			if !slices.ContainsFunc(rows, func(p parameter) bool { return slices.Contains(p.axes, axis.name) }) {
				wrong = append(wrong, fmt.Sprintf("%s has the axis %s, which is in no row", columns[at], axis.name))
			}
		}
		for _, p := range rows {
			choices, offers := len(of(p.axes, family.chooses)) > 0, len(of(p.axes, family.offers)) > 0
			if choices != (p.by[at] == chosen) || !choices && offers != (p.by[at] == onRequest) {
				wrong = append(wrong, fmt.Sprintf("%s is %q for %s, but its candidates differ in it: %t, or if asked to: %t",
					p.name, p.by[at], columns[at], choices, offers))
			}
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the rows are not what the code says:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// of returns those of the names for which something is true, as code.
func of(names []string, is func(name string) bool) (code []string) {
	for _, name := range names {
		if is(name) {
			code = append(code, "`"+name+"`")
		}
	}
	return code
}

// statusTable writes the rows.
func statusTable(rows []parameter, all []family) string {
	var b strings.Builder
	b.WriteString("\n| | parameter |")
	for _, name := range columns {
		b.WriteString(" " + name + " |")
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for _, p := range rows {
		number := ""
		if p.number > 0 {
			number = fmt.Sprint(p.number)
		}
		fmt.Fprintf(&b, "| %s | %s |", number, p.name)
		for at, s := range p.by {
			cell := string(s)
			switch s {
			case chosen:
				cell += ": " + strings.Join(of(p.axes, all[at].chooses), ", ")
			case onRequest:
				cell += ": " + strings.Join(of(p.axes, all[at].offers), ", ")
			default:
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// valueTable writes the values of every family on every axis.
func valueTable(all []family) string {
	var names []string
	for _, family := range all {
		for _, axis := range family.axes {
			if !slices.Contains(names, axis.name) {
				names = append(names, axis.name)
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n| |")
	for _, name := range columns {
		b.WriteString(" " + name + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| `%s` |", name)
		for _, family := range all {
			cell := absent
			if at := slices.IndexFunc(family.axes, func(a axis) bool { return a.name == name }); at >= 0 {
				cell = status(family.axes[at].text())
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// text writes the values, and those on request in brackets. Many at the same distance become a range. None stand for
// what nobody knows of the kernels.
func (a axis) text() string {
	switch {
	case len(a.values) == 0:
		return string(unknown)
	case len(a.offered) > 0:
		return fmt.Sprintf("%s (%s)", strings.Join(a.values, ", "), strings.Join(a.offered, ", "))
	}
	first, err := strconv.Atoi(a.values[0])
	if len(a.values) < 7 || err != nil {
		return strings.Join(a.values, ", ")
	}
	second, _ := strconv.Atoi(a.values[1])
	for i, v := range a.values {
		if strconv.Itoa(first+i*(second-first)) != v {
			return strings.Join(a.values, ", ")
		}
	}
	return fmt.Sprintf("%s to %s by %d", a.values[0], a.values[len(a.values)-1], second-first)
}
