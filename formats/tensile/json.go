package tensile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// schemaKey is the first key of origami's own files, schema its value.
const (
	schemaKey = "origami_logic"
	schema    = 1
)

// JSON returns the logic as JSON. Each kernel and size has a line of its own, so that errors name it.
func (l *Logic) JSON() ([]byte, error) {
	var b bytes.Buffer
	put := func(key string, v any) error {
		text, err := json.Marshal(v)
		fmt.Fprintf(&b, ",\n%q: %s", key, text)
		return err
	}
	fmt.Fprintf(&b, "{%q: %d", schemaKey, schema)
	for _, x := range []struct {
		key string
		v   any
	}{{"arch", l.Arch}, {"device", l.Device}, {"kernel", l.Family}, {"type", l.Type.String()}, {"source", l.Source},
		{"unit", l.Unit}, {"fallback", l.Fallback}, {"order", l.order()}, {"ranges", l.rangePairs()}} {
		if err := put(x.key, x.v); err != nil {
			return nil, err
		}
	}
	if l.Parts != nil {
		if err := put("tensile", l.Parts); err != nil {
			return nil, err
		}
	}
	kernels := make([]any, len(l.Kernels))
	for i, k := range l.Kernels {
		one := kernelJSON{Name: k.Name, Parameters: k.Parameters}
		if k.Config.BlockM > 0 {
			one.Config = k.Config.String()
		}
		kernels[i] = one
	}
	exact := make([]any, len(l.Exact))
	for i := range l.Exact {
		exact[i] = l.pair(&l.Exact[i], ".inf")
	}
	for _, x := range []struct {
		key  string
		list []any
	}{{"kernels", kernels}, {"exact", exact}} {
		fmt.Fprintf(&b, ",\n%q: [", x.key)
		for i, v := range x.list {
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			b.WriteString([]string{",\n ", "\n "}[min(1, max(0, 1-i))])
			b.Write(text)
		}
		b.WriteString("]")
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

type kernelJSON struct {
	Name       string         `json:"name"`
	Config     string         `json:"config,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// pair is an exact size as Tensile writes it, with what stands for an infinite speed: JSON has no such number.
func (l *Logic) pair(e *logic.Entry, infinite any) any {
	sizes := slices.Concat(e.Size[:], e.LD)
	if len(l.Type.C) == 2 {
		sizes = slices.Delete(sizes, logic.B, logic.B+1)
	}
	var speed any = e.Speed
	switch whole := int(e.Speed); {
	case math.IsInf(e.Speed, 0):
		speed = infinite
	case math.Abs(e.Speed) < 1<<53 && float64(whole) == e.Speed:
		speed = whole // equal in every language, and shorter
	}
	return []any{sizes, []any{e.Kernel, speed}}
}

// pairs are rules as Tensile writes them.
func pairs(rules []logic.Rule) []any {
	out := make([]any, len(rules))
	for i := range rules {
		r := &rules[i]
		if r.Rules == nil {
			out[i] = []any{r.Most, r.Kernel}
		} else {
			out[i] = []any{r.Most, pairs(r.Rules)}
		}
	}
	return out
}

// own reads origami's own file.
func (f *file) own(fields map[string]*yaml.Node) (*Logic, error) {
	if n := fields[schemaKey]; n.Value != "1" {
		return nil, f.At(n, "the file has the form %s of a logic", yamlnode.Kind(n)).
			Do("use a version of origami that knows it")
	}
	known := []string{schemaKey, "arch", "device", "kernel", "type", "source", "unit", "fallback", "order", "ranges",
		"tensile", "kernels", "exact"}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, key) {
			return nil, f.At(fields[key], "unknown key %q", key).Do("remove it")
		}
	}
	l := &Logic{Logic: &logic.Logic{}}
	var fallback, kind string
	for _, x := range []struct {
		key string
		to  *string
	}{{"arch", &l.Arch}, {"device", &l.Device}, {"kernel", &l.Family}, {"type", &kind}, {"source", &l.Source},
		{"unit", &l.Unit}, {"fallback", &fallback}} {
		n := fields[x.key]
		if n == nil || n.Kind != yaml.ScalarNode {
			return nil, f.At(fields[schemaKey], "the key %s is missing, or is no text", x.key).Do("build the logic again")
		}
		*x.to = n.Value
	}
	var err error
	if l.Type, err = ParseName(kind); err != nil {
		return nil, f.At(fields["type"], "%v", err)
	}
	if l.Fallback = logic.Fallback(fallback); l.Fallback != logic.Nearest && l.Fallback != logic.Model {
		return nil, f.At(fields["fallback"], "the fallback is %q", fallback).Do("use %s or %s", logic.Nearest, logic.Model)
	}
	if n := fields["tensile"]; n != nil {
		if l.Parts, err = f.passedThrough(n); err != nil {
			return nil, err
		}
	}
	if fields["kernels"] == nil {
		return nil, f.At(fields[schemaKey], "the key kernels is missing").Do("build the logic again")
	}
	if err := f.kernels(l, fields["kernels"]); err != nil {
		return nil, err
	}
	return l, f.sizes(l, map[string]*yaml.Node{"ExactLogic": fields["exact"], "IndexOrder": fields["order"],
		"RangeLogic": fields["ranges"]})
}

func (f *file) kernels(l *Logic, n *yaml.Node) error {
	nodes, err := f.List(n, "kernels")
	if err != nil {
		return err
	}
	for _, x := range nodes {
		fields, err := f.Fields(x, "a kernel")
		if err != nil {
			return err
		}
		var k logic.Kernel
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			v := fields[key]
			switch {
			case key == "name" && v.Kind == yaml.ScalarNode:
				k.Name = v.Value
			case key == "config" && v.Kind == yaml.ScalarNode:
				k.Config, err = parseConfig(v.Value, l.Family)
			case key == "parameters":
				k.Parameters, err = f.Mapping(v)
			default:
				return f.At(v, "the key %q of a kernel is unknown, or is no text", key).Do("build the logic again")
			}
			if err != nil {
				return f.At(v, "%v", err)
			}
		}
		l.Kernels = append(l.Kernels, k)
	}
	return nil
}

// parseConfig reads a configuration. Values on named axes are taken as they are: the family checks them when it is
// asked.
func parseConfig(text, family string) (gemm.Config, error) {
	var axes []gemm.Axis
	for _, name := range namedAxes(text) {
		axes = append(axes, gemm.Axis{Name: name.Name, Type: gemm.Enumeration, Values: []string{name.Value}})
	}
	return gemm.ParseConfig(text, gemm.Config{Kernel: family}, axes...)
}

func (f *file) passedThrough(n *yaml.Node) (*Parts, error) {
	v, err := f.Mapping(n)
	if err != nil {
		return nil, err
	}
	t := &Parts{Version: v["version"], Schedule: v["schedule"], Arch: v["arch"], Devices: v["devices"]}
	t.Problem, _ = v["problem"].(map[string]any)
	t.Library, _ = v["library"].(string)
	t.Metric, _ = v["metric"].(string)
	t.Tail, _ = v["tail"].([]any)
	return t, nil
}
