package tune

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// sized returns a file with these sizes.
func sized(sizes string) string {
	return "problems:\n  - dtype: fp16\n    sets:\n      - sizes: " + sizes + "\n"
}

func sizesOf(t *testing.T, text string) [][4]int {
	t.Helper()
	f := must.Get(Read("a.yaml", []byte(text), tensile.Layout))(t)
	var out [][4]int
	for _, p := range f.Types[0].Sets[0].Sizes {
		out = append(out, [4]int{p.M, p.N, p.Batch, p.K})
	}
	return out
}

// The axis of the slides on Tensile: 27 values, each step 16 longer than the one before.
func TestRangeOfTheSlides(t *testing.T) {
	want := []int{16, 32, 64, 112, 176, 256, 352, 464, 592, 736, 896, 1072, 1264, 1472, 1696, 1936, 2192, 2464, 2752, 3056,
		3376, 3712, 4064, 4432, 4816, 5216, 5632}
	got := sizesOf(t, sized("[{range: [[16, 16, 16, 5632], [16, 16, 16, 5632], [3104]]}]"))
	must.Need(t, len(got) == 27*27, "%d sizes", len(got))
	for i, s := range got {
		must.Need(t, s == [4]int{want[i/27], want[i%27], 1, 3104}, "size %d is %v", i, s)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string][][4]int{
		"[{exact: [1, 2, 3]}]":                     {{1, 2, 1, 3}},
		"[{exact: [1, 2, 8, 3]}]":                  {{1, 2, 8, 3}},
		"[{exact: [1, 2, 3]}, {exact: [1, 2, 3]}]": {{1, 2, 1, 3}},
		"[{range: [[2, 5], [7], [1]]}]":            {{2, 7, 1, 1}, {4, 7, 1, 1}},
		"[{range: [[2, 3, 8], 0, 1]}]":             {{2, 2, 1, 2}, {5, 5, 1, 5}, {8, 8, 1, 8}},
		"[{range: [[1, 1, 2, 9], [5], [2, 4], 1]}]": {{1, 5, 2, 5}, {1, 5, 4, 5},
			{2, 5, 2, 5}, {2, 5, 4, 5}, {5, 5, 2, 5}, {5, 5, 4, 5}},
	} {
		must.Equal(t, cmp.Diff(want, sizesOf(t, sized(text))), "", text)
	}
}

// What is wrong in a file is said with its line.
func TestBadFiles(t *testing.T) {
	const set = "problems:\n- dtype: fp16\n  sets:\n  - sizes: [{exact: [1, 2, 3]}]\n"
	for _, c := range [][2]string{
		{"", "a.yaml: the file is empty; "},
		{"[]", "a.yaml:1: the file is a list and no mapping"},
		{"kernel: triton", "a.yaml:1: the key problems is missing; "},
		{"problems: []", "a.yaml:1: problems is empty; "},
		{"problems: []\nproblems: 1", "a.yaml:2: the file has the key problems twice"},
		{"problems: [{sets: []}]", "a.yaml:1: a problem type has neither type nor dtype; "},
		{"problems:\n- dtype: fp17", "a.yaml:2: "},
		{"problems:\n- type: Cijk_Ailk_Bljk_SB\n  trans_a: true", "a.yaml:3: type says what trans_a does; "},
		{"problems:\n- type: Cij_Aikl_Bjkl_SB\n  sets: []", "a.yaml:2: "},
		{"problems:\n- dtype: fp16\n  trans_a: maybe", `a.yaml:3: trans_a is "maybe"; `},
		{"problems:\n- dtype: fp16\n  most: 0", `a.yaml:3: most is "0"; `},
		{"problems:\n- dtype: fp16\n  sets: [{}]", "a.yaml:3: a set has no sizes; "},
		{sized("[]"), "a.yaml:4: a set has no sizes; "},
		{sized("[{exact: [1, 2]}]"), "a.yaml:4: a size has 2 numbers; "},
		{sized("[{exact: [1, 2, 0]}]"), `a.yaml:4: a size is "0"; `},
		{sized("[{exact: [1, 2, 3], range: []}]"), "a.yaml:4: a size has 2 keys; "},
		{sized("[{range: [0, [1], [1]]}]"), "a.yaml:4: index 0 cannot follow index 0; "},
		{sized("[{range: [[5, 1], [1], [1]]}]"), "a.yaml:4: a range ends at 1, below its start 5; "},
		{sized("[{range: [[1, 1, 99999], [1, 1, 99999], 0]}]"), "a.yaml:4: a range has more than 16384 values; "},
		{sized("[{range: [[1, 1, 999], [1, 1, 999], 0]}]"), "a.yaml:4: there are more than 16384 sizes; "},
		{sized("[{range: [[99999999999], [1], 0]}]"), `a.yaml:4: an index of a range is "99999999999"; `},
		{set + "    fixed: {group_m: 8}", "a.yaml:5: group_m is not searched: "},
		{set + "    fixed: {block_m: [8]}", "a.yaml:5: block_m is a list; give one value"},
		{set + "    steps: [{fork: {block_m: [8, 8]}}]", "a.yaml:5: block_m has the value 8 twice; "},
		{set + "    steps: [{fork: {block_m: []}}]", "a.yaml:5: block_m is empty; "},
		{set + "    steps: [{join: [block_m]}]", "a.yaml:5: branches are joined by block_m, which no step before has; "},
		{set + "    steps: [{fork: {warps: [4]}, each: {}}]", "a.yaml:5: a step has each and fork; "},
		{set + "    steps: [{}]", "a.yaml:5: a step has no parameters; "},
		{set + "    fixed: {warps: 4}\n    steps: [{each: {num_warps: [4]}}]",
			"a.yaml:6: num_warps has its values already; "},
		{set + "    configs: [64x64x64]\n    steps: []", "a.yaml:6: a set with configs has steps too; "},
		{set + "  - sizes: [{exact: [1, 2, 3]}]", `a.yaml:5: two sets of the problem type are called ""; `},
	} {
		f, err := Read("a.yaml", []byte(c[0]), tensile.Layout)
		must.That(t, f == nil && err != nil && strings.HasPrefix(err.Error(), c[1]), "%q: %v, want %s", c[0], err, c[1])
	}
}

// Whatever the bytes are, a file is read whole or refused with a line, and its sizes are bounded.
func FuzzRead(f *testing.F) {
	f.Add([]byte(sized("[{range: [[16, 16, 16, 632], 0, [3104]]}, {exact: [1, 2, 3, 4]}]")))
	f.Add([]byte("kernel: triton\nproblems:\n- type: Cijk_Ailk_Bjlk_SB\n  most: 3\n  sets:\n  - name: x\n    fixed: " +
		"{split: 1}\n    initial: {warps: 4}\n    steps: [{each: {stages: [2, 3]}}, {fork: {block_m: [64]}}, " +
		"{join: [block_m]}]\n    sizes: &s [{exact: [1, 2, 3]}]\n  - name: y\n    configs: [64x64x64]\n    sizes: *s\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Read("f", text, tensile.Layout)
		if err != nil {
			must.Need(t, file == nil && strings.HasPrefix(err.Error(), "f:"), "%v", err)
			return
		}
		sizes := 0
		for _, typ := range file.Types {
			for _, s := range typ.Sets {
				sizes += len(s.Sizes)
				for _, p := range s.Sizes {
					must.Do(t, p.Validate())
				}
			}
		}
		must.Need(t, len(file.Types) != 0 && sizes != 0 && sizes <= mostSizes, "%d types, %d sizes", len(file.Types), sizes)
	})
}
