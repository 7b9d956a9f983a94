package tune

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
)

// table returns the times of the kernels of a problem type at its sizes that have a pick. Where a kernel was not
// measured, its time is the expected one.
func (t *Tuner) table(kind int) *logic.Table {
	table, places := &logic.Table{}, map[gemm.Config]int{}
	for _, m := range t.Log {
		c := t.Sizes[m.Size].Candidates[m.Candidate].Config
		if _, there := places[c]; there || m.Time <= 0 || t.Sizes[m.Size].Type != kind {
			continue
		}
		places[c] = len(table.Kernels)
		table.Kernels = append(table.Kernels, logic.Kernel{Name: c.String(), Config: c})
	}
	rows := map[int][]float64{}
	for s := range t.Sizes {
		size := &t.Sizes[s]
		if size.Type != kind || t.Picks[s].Time <= 0 {
			continue
		}
		row := make([]float64, len(table.Kernels))
		for i := range row {
			row[i] = math.Inf(1)
		}
		b := t.process.at(s)
		for i := range size.Candidates {
			c := &size.Candidates[i]
			if k, there := places[c.Config]; there && !t.done[s][i] {
				row[k] = float64(c.Predicted) * math.Exp(b.mean(&c.Config))
			}
		}
		rows[s] = row
		table.Sizes, table.Times = append(table.Sizes, logic.SizeOf(&size.Problem)), append(table.Times, row)
	}
	for _, m := range t.Log {
		if row := rows[m.Size]; row != nil && m.Time > 0 {
			row[places[t.Sizes[m.Size].Candidates[m.Candidate].Config]] = float64(m.Time)
		}
	}
	return table
}

// Cap leaves a problem type the kernels that save the most, at most so many, and measures on with these alone.
func (t *Tuner) Cap(ctx context.Context, kind, most int) error {
	table := t.table(kind)
	if len(table.Sizes) == 0 {
		return nil
	}
	l, err := logic.Build(table, logic.Options{Most: most, Fallback: logic.Model})
	if err != nil {
		return err
	}
	before := slices.Clone(t.Picks)
	var kept []gemm.Config
	for _, k := range l.Kernels {
		kept = append(kept, k.Config)
	}
	var sizes []int
	for s := range t.Sizes {
		if t.Sizes[s].Type == kind {
			t.exclude(s, kept)
			sizes = append(sizes, s)
		}
	}
	t.learn(t.Log)
	err = t.optimise(ctx, sizes)
	t.finish()
	for _, s := range sizes {
		// What is expected now is among the kernels that are left. All others count too.
		if old, p := before[s], &t.Picks[s]; old.Time > 0 && p.Time > 0 {
			p.Expected = float64(p.Time/old.Time)*(1+old.Expected) - 1
		}
	}
	return err
}

// exclude leaves a size the candidates that are among some kernels. A kernel has one launch order.
func (t *Tuner) exclude(s int, kept []gemm.Config) {
	size := &t.Sizes[s]
	all, missing := size.Candidates, slices.Clone(kept)
	for i := range all {
		if !slices.Contains(kept, all[i].Config) {
			t.excluded[Task{s, i}] = true
		}
		missing = slices.DeleteFunc(missing, func(k gemm.Config) bool { return k == all[i].Config })
	}
	for _, k := range missing {
		for _, like := range all {
			if like.Config.GroupM = k.GroupM; like.Config == k {
				size.Candidates = append(size.Candidates, like)
				break
			}
		}
	}
}

// Logic returns the logic of the picks of a problem type: its exact sizes, and a model for all others. A size without
// a measurement has its expected best, without a speed, if that kernel was measured at another size.
func (t *Tuner) Logic(kind int) (*logic.Logic, error) {
	l := &logic.Logic{Fallback: logic.Model, Unit: logic.BuildUnit}
	places := map[gemm.Config]int{}
	for s := range t.Sizes {
		size, p := &t.Sizes[s], &t.Picks[s]
		if size.Type != kind || p.Candidate < 0 {
			continue
		}
		c := size.Candidates[p.Candidate].Config
		if p.Time <= 0 && !t.ran(c) {
			continue
		}
		k, there := places[c]
		if !there {
			k = len(l.Kernels)
			places[c] = k
			l.Kernels = append(l.Kernels, logic.Kernel{Name: c.String(), Config: c})
		}
		e := logic.Entry{Size: logic.SizeOf(&size.Problem), Kernel: k}
		if p.Time > 0 {
			e.Speed = size.Problem.Flops() / float64(p.Time) / 1e9
		}
		l.Exact = append(l.Exact, e)
	}
	if len(l.Exact) == 0 {
		return nil, diag.Inputf("no size has a measured kernel").Do("measure more")
	}
	return l, l.Prepare()
}

// ran reports whether a kernel was measured at some size, in any launch order.
func (t *Tuner) ran(c gemm.Config) bool {
	c.GroupM = 0
	return t.failures[c] < 0
}
