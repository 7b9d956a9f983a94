package tune

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/unit"
)

// Everything measures every candidate of every size: brute force.
func (t *Tuner) Everything(ctx context.Context) error {
	t.prepare()
	t.blind = true
	defer t.finish()
	return t.measureAll(ctx, t.everything(), func() int {
		if len(t.Log) == 0 {
			return len(t.Sizes)
		}
		return len(t.Sizes) - t.Log[len(t.Log)-1].Size - 1
	})
}

// stretch is the number of candidates that are measured in a row at one size. It is large, so that the operands and
// expected results of a size are used often, and small enough that a budget is not overrun for long.
const stretch = 128

// together is how many sizes a team has begun at once: two for each of its members, which keep to a size.
func (t *Tuner) together() int { return max(2, t.Batch/4) }

// everything lists all candidates, one size after the other. A team gets stretches of several sizes in turns, so that
// each member has a size.
func (t *Tuner) everything() (batch []Measured) {
	together, part := 1, math.MaxInt
	if t.Team != nil {
		together, part = t.together(), stretch
	}
	for first := 0; first < len(t.Sizes); first += together {
		for from, more := 0, true; more; from += part {
			more = false
			for s := first; s < min(first+together, len(t.Sizes)); s++ {
				n := len(t.Sizes[s].Candidates)
				for i := from; i < n && i-from < part; i++ {
					batch = append(batch, Measured{Task: Task{s, i}})
				}
				more = more || n-from > part
			}
		}
	}
	return batch
}

// measureAll makes measurements that do not depend on each other. open is how many sizes are still open.
func (t *Tuner) measureAll(ctx context.Context, batch []Measured, open func() int) error {
	for len(batch) > 0 && !t.over {
		n := min(stretch, len(batch))
		if t.Team != nil {
			n = min(t.together()*stretch-len(t.flying), len(batch))
		}
		if err := t.measure(ctx, batch[:n]); err != nil {
			return err
		}
		if batch = batch[n:]; t.Progress != nil {
			t.Progress(open())
		}
	}
	_, err := t.land(ctx)
	return err
}

// Table returns the times of the kernels of a problem type at its sizes that have a pick. Where a kernel was not
// measured, its time is the expected one.
func (t *Tuner) Table(kind int) *logic.Table {
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
		b := t.belief.at(s)
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
	table := t.Table(kind)
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
	var queue []int
	for s := range t.Sizes {
		if t.Sizes[s].Type == kind {
			t.restrict(s, kept)
			queue = append(queue, s)
		}
	}
	err = t.settle(ctx, queue)
	t.finish()
	for _, s := range queue {
		// What is expected now is among the kernels that are left. All others count too.
		if old, p := before[s], &t.Picks[s]; old.Time > 0 && p.Time > 0 {
			p.Expected = float64(p.Time/old.Time)*(1+old.Expected) - 1
		}
	}
	return err
}

// restrict leaves a size the candidates that are among some kernels. A kernel has one launch order.
func (t *Tuner) restrict(s int, kept []gemm.Config) {
	size, p := &t.Sizes[s], &t.Picks[s]
	times := map[int]unit.Seconds{}
	for _, m := range t.Log {
		if m.Size == s {
			times[m.Candidate] = m.Time
		}
	}
	p.Candidate, p.Time = -1, 0
	all := len(size.Candidates)
	missing := slices.Clone(kept)
	for i := range all {
		c := &size.Candidates[i]
		if !slices.Contains(kept, c.Config) {
			t.done[s][i], t.barred[Task{s, i}] = true, true
			continue
		}
		missing = slices.DeleteFunc(missing, func(k gemm.Config) bool { return k == c.Config })
		if time := times[i]; time > 0 && (p.Time == 0 || time < p.Time) {
			p.Candidate, p.Time = i, time
		}
	}
	for _, k := range missing {
		for i := range all {
			like := size.Candidates[i]
			if like.Config.GroupM = k.GroupM; like.Config == k {
				size.Candidates, t.done[s] = append(size.Candidates, like), append(t.done[s], false)
				break
			}
		}
	}
}

// Library returns the logic of the picks of a problem type: its exact sizes, and a model for all others. A size without
// a measurement has its expected best, without a speed, if that kernel was measured at another size.
func (t *Tuner) Library(kind int) (*logic.Logic, error) {
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
	return t.failed[c] < 0
}
