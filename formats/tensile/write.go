package tensile

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/printable"
)

// Classic returns the logic as Tensile's list. Kernels that are not Tensile's have the parameters that it has names
// for, and their configuration as text. Such a list is for programs that map sizes to kernels: Tensile cannot build
// them. A comment says what the logic was built from.
func (l *Logic) Classic() ([]byte, error) {
	t := l.Parts
	if t == nil {
		t = l.asTensile()
	}
	parts := []any{t.Version, t.Schedule, t.Arch, t.Devices, t.Problem, l.solutionMaps(), l.order(), l.exactPairs(),
		l.rangePairs()}
	return l.text(append(parts, t.Tail...))
}

// Map returns the logic as hipBLASLt's mapping.
func (l *Logic) Map() ([]byte, error) {
	t := l.Parts
	if t == nil {
		t = l.asTensile()
	}
	m := map[string]any{"MinimumRequiredVersion": t.Version, "ScheduleName": t.Schedule, "ArchitectureName": t.Arch,
		"DeviceNames": t.Devices, "ProblemType": t.Problem, "IndexOrder": l.order(), "ExactLogic": l.exactPairs(),
		"RangeLogic": l.rangePairs(), "LibraryType": t.Library, "PerfMetric": t.Metric}
	solutions := l.solutionMaps()
	base := shared(solutions)
	for _, s := range solutions {
		for key := range base {
			delete(s, key)
		}
	}
	m["DefaultSolution"], m["Solutions"] = base, solutions
	return l.text(m)
}

func (l *Logic) text(v any) ([]byte, error) {
	text, err := yaml.Marshal(forPython(v))
	if l.Parts == nil {
		text = append([]byte("# "+printable.Line(l.Source)+"\n"), text...)
	}
	return text, err
}

// forPython returns a value whose numbers PyYAML reads as numbers: by YAML 1.1, which it follows, 1e-06 is a text and
// 1.0e-06 a number. Keys that are numbers are such in files too, as in AssertStrideAEqual: {0: 1}.
func forPython(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = forPython(v[i])
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = forPython(v[i])
		}
		return out
	case map[string]any:
		out := make(map[any]any, len(v))
		for key := range v {
			name := any(strings.Trim(key, "'")) // see yamlnode
			if number, err := strconv.Atoi(key); err == nil {
				name = number
			}
			out[name] = forPython(v[key])
		}
		return out
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		mantissa, exponent, ok := strings.Cut(text, "e")
		if !ok || strings.Contains(mantissa, ".") {
			return v
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: mantissa + ".0e" + exponent}
	default:
		return v
	}
}

// shared returns the scalar parameters that all solutions have in common.
func shared(solutions []map[string]any) map[string]any {
	out := map[string]any{}
	if len(solutions) == 0 {
		return out
	}
	for key, v := range solutions[0] {
		switch v.(type) {
		case string, int, bool, float64:
			if !slices.ContainsFunc(solutions, func(s map[string]any) bool { return s[key] != v }) {
				out[key] = v
			}
		}
	}
	return out
}

func (l *Logic) order() any {
	if l.Exact == nil && l.Ranges == nil && l.Parts != nil {
		return nil // as FreeSize files have it
	}
	if len(l.Type.C) == 2 {
		order := slices.DeleteFunc(slices.Clone(l.Order), func(x int) bool { return x == logic.B })
		for i, x := range order {
			if x == logic.L {
				order[i] = 2
			}
		}
		return order
	}
	return l.Order
}

func (l *Logic) exactPairs() any {
	if l.Exact == nil && l.Ranges == nil && l.Parts != nil {
		return nil
	}
	out := make([]any, len(l.Exact))
	for i := range l.Exact {
		e := &l.Exact[i]
		sizes := slices.Concat(e.Size[:], e.LD)
		if len(l.Type.C) == 2 {
			sizes = slices.Delete(sizes, logic.B, logic.B+1)
		}
		out[i] = flow([]any{sizes, []any{e.Kernel, e.Speed}})
	}
	return out
}

func (l *Logic) rangePairs() any {
	if l.Ranges == nil {
		return nil
	}
	return pairs(l.Ranges)
}

// pairs are rules as Tensile writes them.
func pairs(rules []logic.Rule) []any {
	out := make([]any, len(rules))
	for i := range rules {
		r := &rules[i]
		if r.Rules == nil {
			out[i] = flow([]any{r.Most, r.Kernel})
		} else {
			out[i] = []any{r.Most, pairs(r.Rules)}
		}
	}
	return out
}

// flow returns numbers that are written in one line.
func flow(numbers []any) *yaml.Node {
	n := &yaml.Node{}
	_ = n.Encode(forPython(numbers)) // numbers can be written
	n.Style = yaml.FlowStyle
	return n
}

// The keys of kernels that are not Tensile's.
const (
	familyKey = "KernelFamily"
	configKey = "Configuration"
)

func (l *Logic) solutionMaps() []map[string]any {
	out := make([]map[string]any, len(l.Kernels))
	for i, k := range l.Kernels {
		m := map[string]any{}
		for key, v := range k.Parameters {
			m[key] = v
		}
		if k.Parameters == nil {
			c := k.Config
			m["SolutionIndex"], m["SolutionNameMin"] = i, k.Name
			m[familyKey], m[configKey] = l.Family, c.String()
			m["MacroTile0"], m["MacroTile1"], m["DepthU"] = c.BlockN, c.BlockM, c.BlockK // C is transposed
			m["GlobalSplitU"], m["WorkGroupMapping"], m["PrefetchGlobalRead"] = c.SplitK, c.GroupM, c.NumStages-1
			m["NumWaves"] = c.NumWarps
		}
		out[i] = m
	}
	return out
}

// asTensile returns the parts of a file for a logic that does not come from one.
func (l *Logic) asTensile() *Parts {
	lists := l.Type.Lists()
	p := map[string]any{"OperationType": "GEMM", "IndexAssignmentsA": lists.A, "IndexAssignmentsB": lists.B,
		"NumIndicesC": lists.C, "IndicesFree": []int{0, 1}, "IndicesBatch": []int{2}, "IndicesSummation": []int{3},
		"TotalIndices": 4, "Batched": true, "TransposeA": strings.HasPrefix(l.Type.A, "l"),
		"TransposeB":              !strings.HasPrefix(l.Type.B, "l"),
		"UseBeta":                 strings.Contains(l.Type.Flags, "B"),
		"HighPrecisionAccumulate": strings.Contains(l.Type.Flags, "H")}
	names := slices.Concat(dataTypes, classicTypes)
	for i, key := range []string{"DataType", "DestDataType", "ComputeDataType"} {
		if i < len(l.Type.Types) {
			p[key] = slices.Index(names, l.Type.Types[i])
		}
	}
	library := "Equality"
	if l.Fallback == logic.Nearest {
		library = gridBased
	}
	return &Parts{Version: map[string]any{"MinimumRequiredVersion": "4.33.0"}, Schedule: l.Device, Arch: l.Arch,
		Devices: []string{l.Device}, Problem: p, Library: library, Metric: "DeviceEfficiency",
		Tail: []any{nil, "DeviceEfficiency", library}}
}
