package tune

import (
	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// mostSizes bounds the sizes of a file: what is found out about each is held in memory, 40 KB with the most candidates.
const mostSizes = 1 << 14

// sizeForm says how sizes are written.
const sizeForm = "write `exact: [m, n, k]`, or `range: [[16, 16, 16, 5632], [64, 64, 4096], [3104]]`; with a batch, " +
	"it stands before k"

// sizes reads a list of exact sizes and ranges.
func (f *file) sizes(n *yaml.Node, base gemm.Problem) (out []gemm.Problem) {
	seen := map[gemm.Problem]bool{}
	for _, e := range must(f.List(n, "sizes")) {
		fields := f.fields(e, "a size", "exact", "range")
		if len(fields) != 1 {
			check(f.At(e, "a size has %d keys", len(fields)).Do(sizeForm))
		}
		var indices [][]int
		if exact := fields["exact"]; exact != nil {
			indices = [][]int{f.exact(exact)}
		} else {
			indices = f.ranges(fields["range"])
		}
		for _, v := range indices {
			p := base
			p.M, p.N, p.K, p.Batch = v[0], v[1], v[len(v)-1], 1
			if len(v) == 4 {
				p.Batch = v[2]
			}
			f.checkAt(e, p.Validate())
			if p = p.Canonical(); seen[p] {
				continue
			}
			seen[p] = true
			if f.left--; f.left < 0 {
				f.tooMany(e)
			}
			out = append(out, p)
		}
	}
	return out
}

func (f *file) tooMany(n *yaml.Node) {
	check(f.At(n, "there are more than %d sizes", mostSizes).Do("take longer steps, or several files"))
}

// exact reads one size.
func (f *file) exact(n *yaml.Node) []int {
	v := must(f.Integers(n, "a size", 1))
	if len(v) != 3 && len(v) != 4 {
		check(f.At(n, "a size has %d numbers", len(v)).Do(sizeForm))
	}
	return v
}

// ranges reads the values of each index and returns all combinations, the last index fastest.
func (f *file) ranges(n *yaml.Node) [][]int {
	nodes := must(f.List(n, "a range"))
	if len(nodes) != 3 && len(nodes) != 4 {
		check(f.At(n, "a range has %d indices", len(nodes)).Do(sizeForm))
	}
	out := [][]int{nil}
	for i, x := range nodes {
		var values []int
		same := -1
		if x.Kind != yaml.ScalarNode {
			values = f.interval(x)
		} else if same = must(f.Whole(x, "the index to follow", 0)); same >= i {
			check(f.At(x, "index %d cannot follow index %d", i, same).Do("a bare number is the place of an earlier index"))
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
				f.tooMany(n)
			}
		}
		out = longer
	}
	return out
}

// interval reads the values of an index.
func (f *file) interval(n *yaml.Node) []int {
	values, err := gemm.Steps(must(f.Integers(n, "an index of a range", 0))...)
	if err != nil {
		check(diag.Within(f.where(n), err))
	}
	return values
}
