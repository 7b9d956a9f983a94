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

// InSteps tunes as Tensile does: each set goes through its steps, and what is left of its candidates is measured at all
// its sizes. The sizes must have all their candidates. A parameter that is nowhere in a set has the value of the best
// prediction at the set's median size. axes are those that the kernel family declares.
func (t *Tuner) InSteps(ctx context.Context, f *File, axes []gemm.Axis) error {
	t.prepare()
	t.blind = true
	defer t.finish()
	for i := range f.Types {
		for j := range f.Types[i].Sets {
			w := &walk{t: t, axes: axes, places: map[gemm.Problem]int{}, at: map[int]map[gemm.Config]int{}}
			for s := range t.Sizes {
				w.places[t.Sizes[s].Problem] = s
			}
			if err := w.set(ctx, &f.Types[i].Sets[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk goes through the steps of a set.
type walk struct {
	t      *Tuner
	axes   []gemm.Axis
	places map[gemm.Problem]int
	// at has the places of the candidates of a size, without launch orders.
	at map[int]map[gemm.Config]int
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
		return w.all(ctx, sizes)
	}
	if err := w.begin(s, sizes); err != nil {
		return err
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		at := w.sizes(step.Sizes)
		if len(at) == 0 {
			at = sizes[len(sizes)/2:][:1]
		}
		var err error
		switch step.Action {
		case Each:
			err = w.each(ctx, step, at)
		case Fork:
			err = w.fork(step)
		case Join:
			err = w.join(ctx, step, at)
		}
		if err != nil {
			return err
		}
	}
	_, err := w.times(ctx, w.branches, sizes)
	return err
}

// sizes returns the places of problems that are tuned, by their work.
func (w *walk) sizes(problems []gemm.Problem) []int {
	var out []int
	for _, p := range problems {
		if s, there := w.places[p]; there {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Compare(w.t.Sizes[a].Problem.Flops(), w.t.Sizes[b].Problem.Flops())
	})
	return out
}

// all measures all candidates of sizes, for a set without steps.
func (w *walk) all(ctx context.Context, sizes []int) error {
	for _, size := range sizes {
		var batch []Measured
		for i := range w.t.Sizes[size].Candidates {
			batch = append(batch, Measured{Task: Task{size, i}})
		}
		if err := w.measure(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the first branch.
func (w *walk) begin(s *Set, sizes []int) error {
	median := &w.t.Sizes[sizes[len(sizes)/2]]
	c := median.Candidates[0].Config
	c.GroupM = 0
	w.branches = []gemm.Config{c}
	for i := range s.Steps {
		if s.Steps[i].Action == Join {
			continue
		}
		for _, x := range s.Steps[i].Axes {
			if err := w.assign(&w.branches[0], x, x.Values[0]); err != nil {
				return err
			}
		}
	}
	for _, x := range append(slices.Clone(s.Fixed), s.Initial...) {
		if err := w.assign(&w.branches[0], x, x.Values[0]); err != nil {
			return err
		}
	}
	return nil
}

// assign gives a configuration a value.
func (w *walk) assign(c *gemm.Config, x Axis, value string) error {
	fields := gemm.Fields()
	i := slices.IndexFunc(fields, func(f gemm.Field) bool { return f.Name == x.Name })
	if i < 0 {
		return diag.Within(x.Where, c.SetAxis(w.axes, x.Name, value))
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return diag.Within(x.Where, err)
	}
	v := c.Numbers()
	v[i] = n
	c.SetNumbers(v)
	return nil
}

// value returns what a configuration has for a parameter.
func (w *walk) value(c *gemm.Config, name string) string {
	for i, f := range gemm.Fields() {
		if f.Name == name {
			return strconv.Itoa(c.Numbers()[i])
		}
	}
	x, err := gemm.FindAxis(w.axes, name)
	if err != nil {
		return ""
	}
	return x.Value(c.Axes)
}

// each chooses the values of the parameters, one after the other, in every branch.
func (w *walk) each(ctx context.Context, step *Step, sizes []int) error {
	for _, x := range step.Axes {
		all, err := w.variants(x)
		if err != nil {
			return err
		}
		scores, err := w.times(ctx, all, sizes)
		if err != nil {
			return err
		}
		n := len(x.Values)
		for i := range w.branches {
			w.branches[i] = all[i*n+fastest(scores[i*n:(i+1)*n])]
		}
	}
	return nil
}

// variants are all branches with each value of a parameter.
func (w *walk) variants(x Axis) (all []gemm.Config, err error) {
	for _, b := range w.branches {
		for _, v := range x.Values {
			if err := w.assign(&b, x, v); err != nil {
				return nil, err
			}
			all = append(all, b)
		}
	}
	return all, nil
}

// fork makes a branch of each combination of values.
func (w *walk) fork(step *Step) (err error) {
	for _, x := range step.Axes {
		if w.branches, err = w.variants(x); err != nil {
			return err
		}
	}
	return nil
}

// join keeps the fastest of the branches that have equal values.
func (w *walk) join(ctx context.Context, step *Step, sizes []int) error {
	scores, err := w.times(ctx, w.branches, sizes)
	if err != nil {
		return err
	}
	best := map[string]int{}
	var order []string
	for i := range w.branches {
		key := ""
		for _, x := range step.Axes {
			key += w.value(&w.branches[i], x.Name) + ","
		}
		old, there := best[key]
		if !there {
			order = append(order, key)
		}
		if !there || scores[i] < scores[old] {
			best[key] = i
		}
	}
	var left []gemm.Config
	for _, key := range order {
		left = append(left, w.branches[best[key]])
	}
	w.branches = left
	return nil
}

func fastest(scores []float64) int { return slices.Index(scores, slices.Min(scores)) }

// times measures configurations at some sizes, and returns the sums of the logarithms of their times: +Inf for a
// configuration that has no time at some size.
func (w *walk) times(ctx context.Context, configs []gemm.Config, sizes []int) ([]float64, error) {
	tasks := make([]Task, 0, len(configs)*len(sizes))
	for _, c := range configs {
		for _, s := range sizes {
			task := Task{s, -1}
			if i, there := w.candidates(s)[c]; there {
				task.Candidate = i
			}
			tasks = append(tasks, task)
		}
	}
	var batch []Measured
	for _, task := range tasks {
		if task.Candidate >= 0 {
			batch = append(batch, Measured{Task: task})
		}
	}
	if err := w.measure(ctx, batch); err != nil {
		return nil, err
	}
	known := map[Task]unit.Seconds{}
	for _, m := range w.t.Log {
		known[m.Task] = m.Time
	}
	scores := make([]float64, len(configs))
	for i := range tasks {
		time := math.Inf(1)
		if v := known[tasks[i]]; v > 0 {
			time = math.Log(float64(v))
		}
		scores[i/len(sizes)] += time
	}
	return scores, nil
}

// candidates returns the places of a size's candidates, without launch orders.
func (w *walk) candidates(s int) map[gemm.Config]int {
	if w.at[s] == nil {
		w.at[s] = map[gemm.Config]int{}
		for i := range w.t.Sizes[s].Candidates {
			c := w.t.Sizes[s].Candidates[i].Config
			c.GroupM = 0
			w.at[s][c] = i
		}
	}
	return w.at[s]
}

// measure measures what was not measured yet.
func (w *walk) measure(ctx context.Context, batch []Measured) error {
	var todo []Measured
	asked := map[Task]bool{}
	for _, m := range batch {
		if !w.t.done[m.Size][m.Candidate] && !asked[m.Task] {
			asked[m.Task] = true
			todo = append(todo, m)
		}
	}
	return w.t.measureAll(ctx, todo, func() int { return 0 })
}
