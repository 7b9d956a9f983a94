package tune

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Everything measures every candidate of every size: brute force.
func (t *Tuner) Everything(ctx context.Context) error {
	t.unlearning = true
	t.reset(t.Earlier)
	defer t.finish()
	return t.measure(ctx, t.everything(t.all()), func() int {
		if len(t.Log) == 0 {
			return len(t.Sizes)
		}
		return len(t.Sizes) - t.Log[len(t.Log)-1].Size - 1
	})
}

// stretch is the number of candidates that are measured in a row at one size. It is large, so that the operands and
// expected results of a size are used often, and small enough that a budget is not overrun for long.
const stretch = 128

// together is how many sizes are begun at once: two for each GPU, which keeps to a size.
func (t *Tuner) together() int {
	if !t.Unordered {
		return 1
	}
	return max(2, t.Batch/4)
}

// everything lists all candidates of sizes, in stretches of several sizes in turns, so that each GPU has a size.
func (t *Tuner) everything(sizes []int) (list []Measured) {
	for some := range slices.Chunk(sizes, t.together()) {
		for from, more := 0, true; more; from += stretch {
			more = false
			for _, s := range some {
				n := len(t.Sizes[s].Candidates)
				for i := from; i < min(n, from+stretch); i++ {
					list = append(list, Measured{Task: Task{s, i}})
				}
				more = more || n-from > stretch
			}
		}
	}
	return list
}

// measure makes the measurements of a list that were not made yet. They do not depend on each other.
func (t *Tuner) measure(ctx context.Context, list []Measured, open func() int) error {
	asked := map[Task]bool{}
	list = slices.DeleteFunc(list, func(m Measured) bool {
		again := t.done[m.Size][m.Candidate] || asked[m.Task]
		asked[m.Task] = true
		return again
	})
	return t.run(ctx, func(most int) (batch []Measured) {
		most = min(max(most, 0), len(list))
		batch, list = list[:most], list[most:]
		return batch
	}, open, t.together()*stretch)
}

// InSteps tunes as Tensile does: each set goes through its steps, and what is left of its candidates is measured at all
// its sizes. The sizes must have all their candidates. A parameter that is nowhere in a set has the value of the best
// prediction at the set's median size. axes are those that the kernel family declares.
func (t *Tuner) InSteps(ctx context.Context, f *File, axes []gemm.Axis) error {
	t.unlearning = true
	t.reset(t.Earlier)
	defer t.finish()
	w := &walk{t: t, axes: axes, sizeOf: map[gemm.Problem]int{}, at: map[int]map[gemm.Config]int{}}
	for s := range t.Sizes {
		w.sizeOf[t.Sizes[s].Problem] = s
	}
	for i := range f.Types {
		for j := range f.Types[i].Sets {
			if err := w.set(ctx, &f.Types[i].Sets[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk goes through the steps of a set.
type walk struct {
	t    *Tuner
	axes []gemm.Axis
	// sizeOf are the places of sizes, and at the places of a size's candidates, from 1 and without
	// launch orders.
	sizeOf map[gemm.Problem]int
	at     map[int]map[gemm.Config]int
	// branches are the configurations that go on.
	branches []gemm.Config
}

// set goes through the steps of a set, and measures what is left at all its sizes.
func (w *walk) set(ctx context.Context, s *Set) error {
	sizes := w.sizes(s.Sizes)
	if len(sizes) == 0 {
		return nil
	}
	if len(s.Steps) == 0 || len(s.Configs) > 0 {
		return w.t.measure(ctx, w.t.everything(sizes), nil)
	}
	if err := w.begin(s, sizes); err != nil {
		return err
	}
	for i := range s.Steps {
		at := w.sizes(s.Steps[i].Sizes)
		if len(at) == 0 {
			at = sizes[len(sizes)/2:][:1]
		}
		if err := w.step(ctx, &s.Steps[i], at); err != nil {
			return err
		}
	}
	_, err := w.times(ctx, w.branches, sizes)
	return err
}

// sizes returns the places of problems that are tuned, by their work.
func (w *walk) sizes(problems []gemm.Problem) (out []int) {
	for _, p := range problems {
		if s, there := w.sizeOf[p]; there {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Compare(w.t.Sizes[a].Problem.Flops(), w.t.Sizes[b].Problem.Flops())
	})
	return out
}

// begin makes the first branch.
func (w *walk) begin(s *Set, sizes []int) error {
	c := w.t.Sizes[sizes[len(sizes)/2]].Candidates[0].Config
	c.GroupM = 0
	var axes []Axis
	for i := range s.Steps {
		if s.Steps[i].Action != Join {
			axes = append(axes, s.Steps[i].Axes...)
		}
	}
	for _, x := range slices.Concat(axes, s.Fixed, s.Initial) {
		if err := w.assign(&c, x, x.Values[0]); err != nil {
			return err
		}
	}
	w.branches = []gemm.Config{c}
	return nil
}

// number is the place of a parameter among the numbers of a configuration, −1 for a named axis.
func number(name string) int {
	return slices.IndexFunc(gemm.Fields(), func(f gemm.Field) bool { return f.Name == name })
}

// assign gives a configuration a value.
func (w *walk) assign(c *gemm.Config, x Axis, value string) error {
	i := number(x.Name)
	if i < 0 {
		return diag.Within(x.Where, c.SetAxis(w.axes, x.Name, value))
	}
	n, err := strconv.Atoi(value)
	v := c.Numbers()
	v[i] = n
	c.SetNumbers(v)
	return diag.Within(x.Where, err)
}

// step does a step at some sizes.
func (w *walk) step(ctx context.Context, step *Step, sizes []int) error {
	if step.Action == Join {
		return w.keepFastest(ctx, w.branches, sizes, func(i int) (key string) {
			for _, x := range step.Axes {
				key += w.branches[i].On(x.Name, w.axes) + ","
			}
			return key
		})
	}
	for _, x := range step.Axes {
		var all []gemm.Config
		for _, b := range w.branches {
			for _, v := range x.Values {
				if err := w.assign(&b, x, v); err != nil {
					return err
				}
				all = append(all, b)
			}
		}
		if step.Action == Fork {
			w.branches = all
			continue
		}
		branch := func(i int) string { return strconv.Itoa(i / len(x.Values)) }
		if err := w.keepFastest(ctx, all, sizes, branch); err != nil {
			return err
		}
	}
	return nil
}

// keepFastest leaves the fastest of the configurations with equal keys, in the order of the keys.
func (w *walk) keepFastest(ctx context.Context, all []gemm.Config, sizes []int, key func(i int) string) error {
	scores, err := w.times(ctx, all, sizes)
	if err != nil {
		return err
	}
	best := map[string]int{}
	var order []string
	for i := range all {
		k := key(i)
		old, there := best[k]
		if !there {
			order = append(order, k)
		}
		if !there || scores[i] < scores[old] {
			best[k] = i
		}
	}
	left := make([]gemm.Config, len(order))
	for i, k := range order {
		left[i] = all[best[k]]
	}
	w.branches = left
	return nil
}

// times measures configurations at some sizes, and returns the sums of the logarithms of their times: +Inf for a
// configuration that has no time at some size.
func (w *walk) times(ctx context.Context, configs []gemm.Config, sizes []int) ([]float64, error) {
	for _, s := range sizes {
		if w.at[s] == nil {
			w.at[s] = map[gemm.Config]int{}
			for i, c := range w.t.Sizes[s].Candidates {
				c.Config.GroupM = 0
				w.at[s][c.Config] = i + 1
			}
		}
	}
	var list []Measured
	for _, c := range configs {
		for _, s := range sizes {
			list = append(list, Measured{Task: Task{s, w.at[s][c] - 1}})
		}
	}
	there := slices.DeleteFunc(slices.Clone(list), func(m Measured) bool { return m.Candidate < 0 })
	if err := w.t.measure(ctx, there, nil); err != nil {
		return nil, err
	}
	times := map[Task]unit.Seconds{}
	for _, m := range w.t.Log {
		times[m.Task] = m.Time
	}
	scores := make([]float64, len(configs))
	for i := range list {
		log := math.Inf(1)
		if time := times[list[i].Task]; time > 0 {
			log = math.Log(float64(time))
		}
		scores[i/len(sizes)] += log
	}
	return scores, nil
}
