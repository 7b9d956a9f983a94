package tune

import (
	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// mostSizes bounds the sizes of a file: what is found out about each is held in memory.
const mostSizes = 1 << 14

// sizeForm says how sizes are written.
const sizeForm = "write `exact: [m, n, k]`, or `range: [[16, 16, 16, 5632], [64, 64, 4096], [3104]]`; with a batch, " +
	"it stands before k"

// sizes reads a list of exact sizes and ranges.
func (f *file) sizes(n *yaml.Node, base gemm.Problem) ([]gemm.Problem, error) {
	entries, err := f.List(n, "sizes")
	if err != nil {
		return nil, err
	}
	var out []gemm.Problem
	seen := map[gemm.Problem]bool{}
	for _, e := range entries {
		fields, err := f.fields(e, "a size", "exact", "range")
		if err != nil {
			return nil, err
		}
		if len(fields) != 1 {
			return nil, f.At(e, "a size has %d keys", len(fields)).Do(sizeForm)
		}
		var indices [][]int
		if exact := fields["exact"]; exact != nil {
			indices, err = f.exact(exact)
		} else {
			indices, err = f.ranges(fields["range"])
		}
		if err != nil {
			return nil, err
		}
		for _, v := range indices {
			p := base
			p.M, p.N, p.K, p.Batch = v[0], v[1], v[len(v)-1], 1
			if len(v) == 4 {
				p.Batch = v[2]
			}
			if err := p.Validate(); err != nil {
				return nil, f.At(e, "%v", err)
			}
			if p = p.Canonical(); seen[p] {
				continue
			}
			seen[p] = true
			if f.left--; f.left < 0 {
				return nil, f.tooMany(e)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func (f *file) tooMany(n *yaml.Node) error {
	return f.At(n, "there are more than %d sizes", mostSizes).Do("take longer steps, or several files")
}

// exact reads one size.
func (f *file) exact(n *yaml.Node) ([][]int, error) {
	v, err := f.Integers(n, "a size", 1)
	if err != nil {
		return nil, err
	}
	if len(v) != 3 && len(v) != 4 {
		return nil, f.At(n, "a size has %d numbers", len(v)).Do(sizeForm)
	}
	return [][]int{v}, nil
}

// ranges reads the values of each index and returns all combinations, the last index fastest.
func (f *file) ranges(n *yaml.Node) ([][]int, error) {
	nodes, err := f.List(n, "a range")
	if err != nil {
		return nil, err
	}
	if len(nodes) != 3 && len(nodes) != 4 {
		return nil, f.At(n, "a range has %d indices", len(nodes)).Do(sizeForm)
	}
	out := [][]int{nil}
	for i, x := range nodes {
		var values []int
		same := -1
		if x.Kind == yaml.ScalarNode {
			if same, err = f.Whole(x, "the index to follow", 0); err == nil && same >= i {
				err = f.At(x, "index %d cannot follow index %d", i, same).Do("a bare number is the place of an earlier index")
			}
		} else {
			values, err = f.interval(x)
		}
		if err != nil {
			return nil, err
		}
		var longer [][]int
		for _, before := range out {
			v := values
			if same >= 0 {
				v = []int{before[same]}
			}
			for _, value := range v {
				longer = append(longer, append(before[:i:i], value))
			}
			if len(longer) > mostSizes {
				return nil, f.tooMany(n)
			}
		}
		out = longer
	}
	return out, nil
}

// interval reads the values of an index.
func (f *file) interval(n *yaml.Node) ([]int, error) {
	v, err := f.Integers(n, "an index of a range", 0)
	if err != nil {
		return nil, err
	}
	values, err := gemm.Steps(v...)
	if err != nil {
		return nil, diag.Within(f.where(n), err)
	}
	return values, nil
}
