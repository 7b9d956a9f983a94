package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// PasteList gathers the configurations of many problems for a program in Python: a list of them, each there once and
// all with the same parameters, and a dict of problems.
type PasteList struct {
	format Format
	top    int
	rows   []pasted
}

// pasted are the configurations of a problem.
type pasted struct {
	arch    string
	problem gemm.Problem
	labels  []string
	time    string
	configs []gemm.Config
	axes    []gemm.Axis // that the family declares
}

// NewPasteList returns an empty list. It is nil for a format that has none.
func NewPasteList(f Format, top int) *PasteList {
	if f != config.Triton && f != config.Inductor {
		return nil
	}
	return &PasteList{format: f, top: top}
}

// Add adds the first configurations of an answer.
func (l *PasteList) Add(a *ask.Ranking) error {
	if err := pastes(l.format, a, l.top); err != nil {
		return err
	}
	one := pasted{arch: a.Arch.ID(), problem: a.Problem, time: Prediction(a, &a.Entries[0]),
		axes: a.Arch.Axes(a.Kernel)}
	one.labels = slices.DeleteFunc(a.Labels.Texts(), func(text string) bool { return text == "" })
	if i := slices.IndexFunc(l.rows, func(r pasted) bool { return r.problem == a.Problem }); i >= 0 {
		l.rows[i].labels = append(l.rows[i].labels, one.labels...)
		return nil
	}
	for i := range a.Entries[:min(l.top, len(a.Entries))] {
		one.configs = append(one.configs, a.Entries[i].Config)
	}
	l.rows = append(l.rows, one)
	return nil
}

// Write writes the list and the dict.
func (l *PasteList) Write(s *iostreams.Streams) error {
	if len(l.rows) == 0 {
		return nil
	}
	columns, err := l.key()
	if err != nil {
		return err
	}
	var configs []string
	at := map[string]int{}
	place := func(c *gemm.Config) string {
		text := l.config(c)
		i, ok := at[text]
		if !ok {
			i = len(configs)
			at[text], configs = i, append(configs, text)
		}
		return fmt.Sprintf("configs[%d]", i)
	}
	var lines []string
	for i := range l.rows {
		row := &l.rows[i]
		var value []string
		for j := range row.configs {
			value = append(value, place(&row.configs[j]))
		}
		text := strings.Join(value, ", ")
		if l.top > 1 {
			text = "[" + text + "]"
		}
		comment := strings.Join(append(slices.Clone(row.labels), row.time), ", ")
		lines = append(lines, fmt.Sprintf("    %s: %s,  # %s", keyOf(&row.problem, columns), text, comment))
	}
	s.Printf("# %s: %s\nconfigs = [\n", l.rows[0].arch, shared(&l.rows[0].problem, columns))
	for i, text := range configs {
		s.Printf("    %s,  # %d\n", text, i)
	}
	s.Printf("]\npicks = {  # %s\n", strings.Join(columns, ", "))
	for _, line := range lines {
		s.Printf("%s\n", line)
	}
	s.Printf("}\n")
	return nil
}

// config is a configuration with the parameters that any of the list has.
func (l *PasteList) config(c *gemm.Config) string {
	if l.format == config.Inductor {
		return inductorConfig(c)
	}
	splits := slices.ContainsFunc(l.rows, func(r pasted) bool {
		return slices.ContainsFunc(r.configs, func(c gemm.Config) bool { return c.SplitK > 1 })
	})
	return tritonConfig(c, splits, func(yield func(string, string) bool) {
		for _, axis := range l.rows[0].axes {
			if !l.uses(axis.Name) {
				continue
			}
			value, ok := c.Axes.Get(axis.Name)
			if !ok {
				value = axis.Default
			}
			if !yield(axis.Name, value) {
				return
			}
		}
	})
}

// uses reports whether a configuration of the list has a value on an axis that is not the default.
func (l *PasteList) uses(axis string) bool {
	return slices.ContainsFunc(l.rows, func(r pasted) bool {
		return slices.ContainsFunc(r.configs, func(c gemm.Config) bool {
			_, ok := c.Axes.Get(axis)
			return ok
		})
	})
}

// more are the columns behind m, n and k that are in the key of a problem if they differ.
var more = []struct {
	name string
	cell func(*gemm.Problem) string
}{
	{"batch", func(p *gemm.Problem) string { return fmt.Sprint(p.Batch) }},
	{"trans_a", func(p *gemm.Problem) string { return truth(p.TransA()) }},
	{"trans_b", func(p *gemm.Problem) string { return truth(p.TransB()) }},
	{"dtype", func(p *gemm.Problem) string { return "'" + p.DType.String() + "'" }},
}

func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// key returns the columns that tell the problems apart.
func (l *PasteList) key() ([]string, error) {
	columns := []string{"m", "n", "k"}
	first := &l.rows[0].problem
	for _, column := range more {
		if slices.ContainsFunc(l.rows, func(r pasted) bool { return column.cell(&r.problem) != column.cell(first) }) {
			columns = append(columns, column.name)
		}
	}
	seen := map[string]gemm.Problem{}
	for i := range l.rows {
		p := l.rows[i].problem
		key := keyOf(&p, columns)
		if other, ok := seen[key]; ok {
			return nil, diag.Inputf("%s and %s differ in more than sizes, layouts and types", other, p).
				At("--format %s", l.format).Do("write them to two lists")
		}
		seen[key] = p
	}
	return columns, nil
}

// keyOf is a problem as a tuple.
func keyOf(p *gemm.Problem, columns []string) string {
	cells := []string{fmt.Sprint(p.M), fmt.Sprint(p.N), fmt.Sprint(p.K)}
	for _, column := range more {
		if slices.Contains(columns, column.name) {
			cells = append(cells, column.cell(p))
		}
	}
	return "(" + strings.Join(cells, ", ") + ")"
}

// shared names what is not in the key.
func shared(p *gemm.Problem, columns []string) string {
	var texts []string
	for _, column := range more {
		if !slices.Contains(columns, column.name) {
			texts = append(texts, column.name+" "+strings.Trim(column.cell(p), "'"))
		}
	}
	return strings.Join(texts, ", ")
}
