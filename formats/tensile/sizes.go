package tensile

import (
	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// sizes reads index order, exact sizes and range logic.
func (f *file) sizes(l *Logic, fields map[string]*yaml.Node) error {
	batched := len(l.Type.C) == 3
	indices := 4
	if !batched {
		indices = 3
	}
	if n := fields["ExactLogic"]; !yamlnode.Null(n) {
		nodes, err := f.List(n, "the exact logic")
		if err != nil {
			return err
		}
		if !yamlnode.Null(fields["IndexOrder"]) {
			l.Exact = []logic.Entry{} // an empty list, and not none as in FreeSize files
		}
		for _, x := range nodes {
			e, err := f.entry(x, indices, len(l.Kernels))
			if err != nil {
				return err
			}
			l.Exact = append(l.Exact, e)
		}
	}
	if n := fields["IndexOrder"]; !yamlnode.Null(n) {
		order, err := f.Integers(n, "the index order", 0)
		if err != nil {
			return err
		}
		seen := [4]bool{}
		for i, x := range order {
			if x >= indices || seen[x] || len(order) != indices {
				return f.At(n, "the index order is %v", order).Do("it lists the %d indices once each", indices)
			}
			seen[x] = true
			if !batched && x == 2 {
				order[i] = logic.L
			}
		}
		l.Order = order
	}
	if n := fields["RangeLogic"]; !yamlnode.Null(n) {
		if len(l.Order) == 0 {
			return f.At(n, "there is range logic and no index order").Do(advice)
		}
		var err error
		l.Ranges, err = f.rules(n, len(l.Order), len(l.Kernels))
		return err
	}
	return nil
}

// entry reads "[[m, n, batch, k, …], [kernel, speed]]". The kernel is a place in the list of solutions.
func (f *file) entry(n *yaml.Node, indices, kernels int) (e logic.Entry, err error) {
	pair, err := f.List(n, "an exact size")
	if err != nil {
		return e, err
	}
	if len(pair) != 2 {
		return e, f.At(n, "an exact size has %d parts", len(pair)).Do("write [[m, n, batch, k], [kernel, speed]]")
	}
	sizes, err := f.Integers(pair[0], "a size", 1)
	if err != nil {
		return e, err
	}
	if len(sizes) != indices && len(sizes) != indices+4 {
		return e, f.At(n, "an exact size has %d numbers", len(sizes)).
			Do("it has %d, or %d with leading dimensions", indices, indices+4)
	}
	e.Size = logic.Size{sizes[0], sizes[1], 1, sizes[indices-1]}
	if indices == 4 {
		e.Size[logic.B] = sizes[logic.B]
	}
	if len(sizes) > indices {
		e.LD = sizes[indices:]
	}
	answer, err := f.List(pair[1], "an answer")
	if err != nil {
		return e, err
	}
	if len(answer) != 2 {
		return e, f.At(pair[1], "an answer has %d parts", len(answer)).Do("write [kernel, speed]")
	}
	if e.Kernel, err = f.kernel(answer[0], kernels); err != nil {
		return e, err
	}
	e.Speed, err = f.Number(answer[1], "a speed")
	return e, err
}

func (f *file) kernel(n *yaml.Node, kernels int) (int, error) {
	k, err := f.Whole(n, "a kernel", 0)
	if err == nil && k >= kernels {
		err = f.At(n, "there is no kernel %d", k).Do("the file has %s, numbered from 0", digits.Plural(kernels, "kernel", "kernels"))
	}
	return k, err
}

// rules reads nested lists of [threshold, rules or kernel].
func (f *file) rules(n *yaml.Node, depth, kernels int) ([]logic.Rule, error) {
	nodes, err := f.List(n, "the range logic")
	if err != nil {
		return nil, err
	}
	rules := make([]logic.Rule, len(nodes))
	for i, x := range nodes {
		pair, err := f.List(x, "a range")
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, f.At(x, "a range has %d parts", len(pair)).Do("write [threshold, kernel or ranges]")
		}
		r := &rules[i]
		if r.Most, err = f.Whole(pair[0], "a threshold", -1); err != nil {
			return nil, err
		}
		if i > 0 && (rules[i-1].Most < 0 || r.Most >= 0 && r.Most <= rules[i-1].Most) {
			return nil, f.At(x, "the threshold %d follows %d", r.Most, rules[i-1].Most).Do("thresholds grow, and −1 is the last")
		}
		if depth > 1 {
			r.Rules, err = f.rules(pair[1], depth-1, kernels)
		} else {
			r.Kernel, err = f.kernel(pair[1], kernels)
		}
		if err != nil {
			return nil, err
		}
	}
	return rules, nil
}
