// Package tensile reads and writes library logic in the files of AMD's libraries: the list of Tensile and rocBLAS, and
// the mapping of hipBLASLt. Kernels of origami have their configuration in these files as a text beside Tensile's
// parameters. Problem types have Tensile's names.
package tensile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// Logic is a library logic with the problem type that it is for.
type Logic struct {
	*logic.Logic
	Type Name
	// Parts are what a file of Tensile or hipBLASLt says besides. It is nil if the kernels are not theirs.
	Parts *Parts
}

// Parts are the parts of a file that are passed through.
type Parts struct {
	Version, Schedule, Arch, Devices any
	Problem                          map[string]any
	// Library is the library's type, as Equality, Metric its measure.
	Library, Metric string
	// Tail are the parts behind the range logic.
	Tail []any
}

// The library's types that say what answers for a size that the file does not have: the row of the nearest size, or a
// model that ranks the file's kernels.
const (
	gridBased  = "GridBased"
	Prediction = "Prediction"
)

// advice is what to do about a file that is refused.
const advice = "give a library logic as Tensile, hipBLASLt or origami write it"

// mostNodes bounds the values of a file. AMD's files of 4 MB have up to 350,000.
const mostNodes = 1_000_000

// file reads the nodes of a logic.
type file struct{ *yamlnode.File }

// Read reads a logic: Tensile's list, or hipBLASLt's mapping. Nothing of a bad file is returned.
func Read(name string, text []byte) (*Logic, error) {
	l, err := yamlnode.Read(name, text, mostNodes, advice, func(nodes *yamlnode.File, root *yaml.Node) *Logic {
		f := &file{nodes}
		if root.Kind == yaml.SequenceNode {
			return f.classic(root)
		}
		fields := map[string]*yaml.Node{}
		if root.Kind == yaml.MappingNode {
			fields = f.Fields(root, "the file")
		}
		if fields["ProblemType"] == nil || fields["Solutions"] == nil {
			yamlnode.Check(f.At(root, "the file is no library logic").Do(advice))
		}
		return f.tensile(root, fields)
	})
	if err != nil {
		return nil, err
	}
	switch {
	case len(l.Kernels) > 0 && l.Kernels[0].Config.BlockM > 0: // they were written by origami
		l.Device, _ = l.Parts.Schedule.(string)
		l.Parts, l.Unit = nil, logic.BuildUnit
	case l.Parts.Library == Prediction:
		for i := range l.Kernels {
			l.Kernels[i].Config = configOf(l.Kernels[i].Parameters)
		}
	}
	if err := l.Prepare(); err != nil {
		return nil, diag.Within(name, err)
	}
	return l, nil
}

// classicKeys are the names that the mapping has for the parts of the list. Parts behind the range logic differ between
// versions.
var classicKeys = []string{"MinimumRequiredVersion", "ScheduleName", "ArchitectureName", "DeviceNames", "ProblemType",
	"Solutions", "IndexOrder", "ExactLogic", "RangeLogic"}

// classic reads the list. Files of 2017 have no devices.
func (f *file) classic(root *yaml.Node) *Logic {
	parts := f.List(root, "the file")
	keys := classicKeys
	if len(parts) == 8 && parts[3].Kind == yaml.MappingNode {
		keys = append(append([]string{}, classicKeys[:3]...), classicKeys[4:]...)
	}
	if len(parts) < len(keys) || parts[len(keys)-5].Kind != yaml.MappingNode {
		yamlnode.Check(f.At(root, "the list has %d parts, or not a problem type in its place", len(parts)).Do(advice))
	}
	fields := map[string]*yaml.Node{}
	for i, key := range keys {
		fields[key] = parts[i]
	}
	l := f.tensile(root, fields)
	for _, n := range parts[len(keys):] {
		l.Parts.Tail = append(l.Parts.Tail, f.Value(n))
	}
	l.Parts.tail()
	l.judge()
	return l
}

// tail finds the metric and the library's type behind the range logic: texts, the metric first.
func (t *Parts) tail() {
	for _, v := range t.Tail {
		switch s, ok := v.(string); {
		case !ok:
		case t.Metric == "" && (strings.HasSuffix(s, "Efficiency") || strings.HasPrefix(s, "Experimental")):
			t.Metric = s
		case s == "Equality" || s == gridBased || s == "Range" || s == "FreeSize" || s == Prediction:
			t.Library = s
		}
	}
}

// judge says what the metric and the library's type mean for speeds and other sizes.
func (l *Logic) judge() {
	l.Unit, l.Fallback = l.Parts.unit(l.Arch), logic.Model
	if l.Parts.Library == gridBased {
		l.Fallback = logic.Nearest // its rows serve their neighbours too
	}
}

// unit returns the unit of speeds where it is known. The word DeviceEfficiency says nothing: files have it with GFLOPS
// and with per cent. Vega files have GFLOPS alone.
func (t *Parts) unit(arch string) string {
	switch {
	case t.Metric == "CUEfficiency":
		return "% of the peak of the CUs in use"
	case t.Metric == "ExperimentalStreamK":
		return "% of the peak of 304 CUs at 2.1 GHz"
	case arch == "gfx900" || arch == "gfx906":
		return "GFLOPS"
	}
	return ""
}

// tensile reads the parts of a file of Tensile by their names.
func (f *file) tensile(root *yaml.Node, fields map[string]*yaml.Node) *Logic {
	value := func(key string) any {
		if n := fields[key]; n != nil {
			return f.Value(n)
		}
		return nil
	}
	t := &Parts{Version: value("MinimumRequiredVersion"), Schedule: value("ScheduleName"),
		Arch: value("ArchitectureName"), Devices: value("DeviceNames")}
	l := &Logic{Logic: &logic.Logic{Family: "tensile", Fallback: logic.Model, Source: f.Name()}, Parts: t}
	l.Arch, l.Device = f.architecture(t.Arch)
	if l.Arch == "" {
		yamlnode.Check(f.At(root, "the file names no architecture").Do(advice))
	}
	t.Problem = f.Mapping(fields["ProblemType"])
	l.Type = f.problemType(fields["ProblemType"], t.Problem)
	for key, to := range map[string]*string{"LibraryType": &t.Library, "PerfMetric": &t.Metric} {
		if n := fields[key]; n != nil {
			*to = n.Value
		}
	}
	l.Kernels = f.solutions(fields["Solutions"], fields["DefaultSolution"])
	f.configured(l, fields["Solutions"])
	f.sizes(l, fields)
	l.judge()
	return l
}

// architecture reads "gfx942", {Architecture: gfx942, CUCount: 38}, and the latter quoted as a text. The second result
// is what it says besides.
func (f *file) architecture(v any) (arch, besides string) {
	if s, ok := v.(string); ok {
		if !strings.HasPrefix(s, "{") {
			return s, ""
		}
		if yaml.Unmarshal([]byte(s), &v) != nil {
			return "", ""
		}
	}
	m, _ := v.(map[string]any)
	arch, _ = m["Architecture"].(string)
	for _, key := range []string{"CUCount", "IsAPU"} {
		if x, ok := m[key]; ok {
			besides += fmt.Sprintf("%s %v", key, x)
		}
	}
	return arch, besides
}

// dataTypes are the letters of Tensile's numbered data types. From 9 on, the numbers of hipBLASLt are others, and its
// files are known by their activation.
var dataTypes = []string{"S", "D", "C", "Z", "H", "4xi8", "I", "B", "I8"}

var (
	classicTypes = []string{"X", "F8", "B8", "F8B8", "B8F8"}
	liteTypes    = append([]string{"I64"}, classicTypes...)
)

func (f *file) problemType(n *yaml.Node, p map[string]any) Name {
	fields := f.Fields(n, "ProblemType")
	if operation, _ := p["OperationType"].(string); operation != "GEMM" {
		yamlnode.Check(f.At(cmp.Or(fields["OperationType"], n), "the file is for the operation %q, and not for GEMM",
			operation).Do("give a logic for GEMM"))
	}
	indices := func(key string) []int {
		if fields[key] == nil {
			yamlnode.Check(f.At(n, "ProblemType has no %s", key).Do(advice))
		}
		return f.Integers(fields[key], key, 0)
	}
	lists := contract.Lists{A: indices("IndexAssignmentsA"), B: indices("IndexAssignmentsB"), C: 2}
	if fields["NumIndicesC"] != nil {
		lists.C = f.Whole(fields["NumIndicesC"], "NumIndicesC", 2)
	}
	c, err := contract.FromLists(lists)
	yamlnode.Check(diag.Within(fmt.Sprintf("%s:%d", f.Name(), n.Line), err))
	if len(c.Letters()) != lists.C+1 || lists.C > 3 || len(c.Of(contract.Sum)) != 1 ||
		len(c.Of(contract.FreeA)) != 1 || len(c.Of(contract.FreeB)) != 1 {
		yamlnode.Check(f.At(n, "the file is for the contraction %s, which is no GEMM",
			Name{Contraction: c}).Do("give a logic for GEMM"))
	}
	return f.named(c, fields, p)
}

// named adds types and flags to a contraction.
func (f *file) named(c contract.Contraction, fields map[string]*yaml.Node, p map[string]any) Name {
	name := Name{Contraction: c}
	names := append(append([]string{}, dataTypes...), classicTypes...)
	if _, lite := p["Activation"]; lite {
		names = append(append([]string{}, dataTypes...), liteTypes...)
	}
	for _, key := range []string{"DataType", "DestDataType", "ComputeDataType"} {
		n := fields[key]
		if n == nil && key != "DataType" {
			break // older files have one type
		}
		if n == nil {
			yamlnode.Check(f.At(fields["OperationType"], "ProblemType has no DataType").Do(advice))
		}
		i := f.Whole(n, key, 0)
		if i >= len(names) {
			yamlnode.Check(f.At(n, "%s is %d, and no type has that number", key, i).Do(advice))
		}
		name.Types, name.Apart = append(name.Types, names[i]), key == "ComputeDataType"
	}
	if x, _ := p["UseBeta"].(bool); x {
		name.Flags = "B"
	}
	if x, _ := p["HighPrecisionAccumulate"].(bool); x {
		name.Flags += "H"
	}
	return name
}

// solutions reads the kernels. In the mapping a solution has what differs from the default.
func (f *file) solutions(n, base *yaml.Node) []logic.Kernel {
	nodes := f.List(n, "Solutions")
	common := map[string]any{}
	if !yamlnode.Null(base) {
		common = f.Mapping(base)
	}
	kernels := make([]logic.Kernel, len(nodes))
	for i, x := range nodes {
		own := f.Mapping(x)
		for key, v := range common {
			if _, ok := own[key]; !ok {
				own[key] = v
			}
		}
		kernels[i] = logic.Kernel{Name: solutionName(own, i), Parameters: own}
	}
	return kernels
}

// configured turns solutions into the configurations that they were written from.
func (f *file) configured(l *Logic, n *yaml.Node) {
	for i := range l.Kernels {
		k := &l.Kernels[i]
		text, ok := k.Parameters[configKey].(string)
		if !ok {
			continue
		}
		family, _ := k.Parameters[familyKey].(string)
		if i > 0 && family != l.Family {
			yamlnode.Check(f.At(n.Content[i], "the kernel's family is %q, and that of the one before %q", family,
				l.Family).Do("use kernels of one family"))
		}
		c, err := parseConfig(text, family)
		if err != nil {
			yamlnode.Check(f.At(n.Content[i], "%v", err))
		}
		l.Family, k.Config, k.Parameters = family, c, nil
	}
}

// parseConfig reads a configuration. Values on named axes are taken as they are: the family checks them when it is
// asked.
func parseConfig(text, family string) (gemm.Config, error) {
	var axes []gemm.Axis
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, value, named := strings.Cut(word, "=")
		if named && !slices.ContainsFunc(gemm.Fields(), func(x gemm.Field) bool { return x.Key == name }) {
			axes = append(axes, gemm.Axis{Name: name, Type: gemm.Enumeration, Values: []string{value}})
		}
	}
	return gemm.ParseConfig(text, gemm.Config{Kernel: family}, axes...)
}

// configOf is the configuration of family tensile that a solution of a Prediction library is. Its tile is empty if the
// solution does not say it. Rows of C here are the columns of Tensile's.
func configOf(s map[string]any) gemm.Config {
	number := func(key string) int { v, _ := s[key].(int); return v }
	c := gemm.Config{Kernel: "tensile", BlockM: number("MacroTile1"), BlockN: number("MacroTile0"),
		BlockK: number("DepthU"), SplitK: max(1, number("GlobalSplitU")), GroupM: max(0, number("WorkGroupMapping")),
		NumStages: 1} // matrix instructions take their operands from one buffer in LDS
	threads := 1
	group, _ := s["WorkGroup"].([]any)
	for _, side := range group {
		n, _ := side.(int)
		threads *= n
	}
	c.NumWarps = max(1, threads/max(1, cmp.Or(number("WavefrontSize"), 64)))
	if number("StreamK") > 0 {
		streamK := gemm.Axis{Name: "stream_k", Type: gemm.Enumeration, Values: []string{"0", "1"}, Default: "0"}
		c.SplitK = 1
		_ = c.SetAxis([]gemm.Axis{streamK}, streamK.Name, "1") // the axis has the value
	}
	if c.ValidateNumbers() != nil {
		return gemm.Config{}
	}
	return c
}

// solutionName returns the name of a solution, or its macro tile with its place.
func solutionName(s map[string]any, i int) string {
	for _, key := range []string{"SolutionNameMin", "SolutionName", "KernelNameMin"} {
		if name, _ := s[key].(string); name != "" {
			return name
		}
	}
	return fmt.Sprintf("MT%vx%vx%v #%d", s["MacroTile0"], s["MacroTile1"], s["DepthU"], i)
}

// sizes reads index order, exact sizes and range logic.
func (f *file) sizes(l *Logic, fields map[string]*yaml.Node) {
	batched := len(l.Type.C) == 3
	indices := 4
	if !batched {
		indices = 3
	}
	if n := fields["ExactLogic"]; !yamlnode.Null(n) {
		nodes := f.List(n, "the exact logic")
		if !yamlnode.Null(fields["IndexOrder"]) {
			l.Exact = []logic.Entry{} // an empty list, and not none as in FreeSize files
		}
		for _, x := range nodes {
			l.Exact = append(l.Exact, f.entry(x, indices, len(l.Kernels)))
		}
	}
	if n := fields["IndexOrder"]; !yamlnode.Null(n) {
		order := f.Integers(n, "the index order", 0)
		seen := [4]bool{}
		for i, x := range order {
			if x >= indices || seen[x] || len(order) != indices {
				yamlnode.Check(f.At(n, "the index order is %v", order).
					Do("it lists the %d indices once each", indices))
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
			yamlnode.Check(f.At(n, "there is range logic and no index order").Do(advice))
		}
		l.Ranges = f.rules(n, len(l.Order), len(l.Kernels))
	}
}

// pair reads a list of two values.
func (f *file) pair(n *yaml.Node, what, form string) (a, b *yaml.Node) {
	pair := f.List(n, what)
	if len(pair) != 2 {
		yamlnode.Check(f.At(n, "%s has %d parts", what, len(pair)).Do("write %s", form))
	}
	return pair[0], pair[1]
}

// entry reads "[[m, n, batch, k, …], [kernel, speed]]". The kernel is a place in the list of solutions.
func (f *file) entry(n *yaml.Node, indices, kernels int) (e logic.Entry) {
	size, answer := f.pair(n, "an exact size", "[[m, n, batch, k], [kernel, speed]]")
	sizes := f.Integers(size, "a size", 1)
	if len(sizes) != indices && len(sizes) != indices+4 {
		yamlnode.Check(f.At(n, "an exact size has %d numbers", len(sizes)).
			Do("it has %d, or %d with leading dimensions", indices, indices+4))
	}
	e.Size = logic.Size{sizes[0], sizes[1], 1, sizes[indices-1]}
	if indices == 4 {
		e.Size[logic.B] = sizes[logic.B]
	}
	if len(sizes) > indices {
		e.LD = sizes[indices:]
	}
	kernel, speed := f.pair(answer, "an answer", "[kernel, speed]")
	e.Kernel = f.kernel(kernel, kernels)
	e.Speed = f.Number(speed, "a speed")
	return e
}

func (f *file) kernel(n *yaml.Node, kernels int) int {
	k := f.Whole(n, "a kernel", 0)
	if k >= kernels {
		yamlnode.Check(f.At(n, "there is no kernel %d", k).
			Do("the file has %s, numbered from 0", digits.Plural(kernels, "kernel", "kernels")))
	}
	return k
}

// rules reads nested lists of [threshold, rules or kernel].
func (f *file) rules(n *yaml.Node, depth, kernels int) []logic.Rule {
	nodes := f.List(n, "the range logic")
	rules := make([]logic.Rule, len(nodes))
	for i, x := range nodes {
		threshold, answer := f.pair(x, "a range", "[threshold, kernel or ranges]")
		r := &rules[i]
		r.Most = f.Whole(threshold, "a threshold", -1)
		if i > 0 && (rules[i-1].Most < 0 || r.Most >= 0 && r.Most <= rules[i-1].Most) {
			yamlnode.Check(f.At(x, "the threshold %d follows %d", r.Most, rules[i-1].Most).
				Do("thresholds grow, and −1 is the last"))
		}
		if depth > 1 {
			r.Rules = f.rules(answer, depth-1, kernels)
		} else {
			r.Kernel = f.kernel(answer, kernels)
		}
	}
	return rules
}
