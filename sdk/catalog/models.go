package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// models returns the models of an architecture.
func (c *Catalog) models(arch string) []Model {
	if c.def.Archs == nil {
		return c.def.Models
	}
	return c.def.Archs[arch]
}

// entryOf lists an architecture with the names of its models and of their kernel families, each once.
func entryOf(d hw.Header, models []Model) arch.ArchEntry {
	e := arch.ArchEntry{ID: d.Arch, Vendor: d.Vendor}
	for i := range models {
		if m := &models[i]; !slices.Contains(e.Models, m.Name) {
			e.Models = append(e.Models, m.Name)
			if m.Class != "" || e.Classes != nil {
				e.Classes = append(e.Classes, make([]arch.ModelClass, len(e.Models)-1-len(e.Classes))...)
				e.Classes = append(e.Classes, m.Class)
			}
		}
		e.Kernels = with(e.Kernels, models[i].Kernels...)
		if models[i].Fitted {
			e.Fitted = with(e.Fitted, models[i].Name)
		}
	}
	return e
}

func with(list []string, names ...string) []string {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// withOptions adds the options of models to a list that has each key once.
func withOptions(list []arch.Option, models []Model) []arch.Option {
	for i := range models {
		for _, o := range models[i].Options {
			if !slices.ContainsFunc(list, func(other arch.Option) bool { return other.Key == o.Key }) {
				list = append(list, o)
			}
		}
	}
	return list
}

// specs declares every parameter that the model does not need optional.
func (m *Model) specs(all []hw.Spec) []hw.Spec {
	if m.Needs == nil {
		return all
	}
	specs := slices.Clone(all)
	for i := range specs {
		specs[i].Optional = specs[i].Optional || !slices.Contains(m.Needs, specs[i].Name)
	}
	return specs
}

// choose returns the first model that has what a request names: a model, a kernel family, both or neither. A model that
// reads the request's options goes before one that does not.
func (c *Catalog) choose(a *arch.ArchEntry, r *arch.OpenRequest) (*Model, error) {
	if r.Model != "" && !a.Has(r.Model) {
		return nil, diag.Inputf("%s has no model %q", a.ID, r.Model).Do("use one of %s", list(a.Models))
	}
	if r.Kernel != "" && !slices.Contains(a.Kernels, r.Kernel) {
		return nil, diag.Inputf("no model of %s predicts the kernel family %q", a.ID, r.Kernel).
			Do("use one of %s", list(a.Kernels))
	}
	var of, over []string // the families of the model, and the models over the family
	var first *Model
	models := c.models(a.ID)
	for i := range models {
		m := &models[i]
		named, has := r.Model == "" || m.is(r.Model), r.Kernel == "" || slices.Contains(m.Kernels, r.Kernel)
		switch {
		case named && has && m.readsAll(r.Options):
			return m, nil
		case named && has && first == nil:
			first = m
		case named && has:
		case named:
			of = with(of, m.Kernels...)
		case has:
			over = with(over, m.Name)
		}
	}
	if first != nil {
		return nil, c.checkOptions(first, models, r.Options)
	}
	return nil, diag.Inputf("the %s model of %s does not predict the kernel family %s", r.Model, a.ID, r.Kernel).
		Do("use the model %s, or a kernel family of the model: %s", strings.Join(over, " or "), list(of))
}

// checkOptions refuses options that the model does not read, of the models of its architecture.
func (c *Catalog) checkOptions(m *Model, models []Model, options map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if m.reads(key) {
			continue
		}
		var others, all []string
		for i := range models {
			if models[i].reads(key) {
				others = append(others, models[i].Name)
			}
		}
		for _, o := range c.manifest.Options {
			all = append(all, o.Key)
		}
		if len(others) == 0 {
			return diag.Inputf("plugin %s has no option %q", c.def.Name, key).Do("its options: %s", list(all))
		}
		return diag.Inputf("the %s model has no option %q", m.Name, key).
			Do("leave it out: it is an option of the model %s", strings.Join(others, " and "))
	}
	return nil
}

// is reports whether a request may name the model so.
func (m *Model) is(name string) bool { return name == m.Name || name == string(m.Class) }

func (m *Model) readsAll(options map[string]string) bool {
	for key := range options {
		if !m.reads(key) {
			return false
		}
	}
	return true
}

// checkValues refuses values that an option does not list. The model had its say before.
func (m *Model) checkValues(options map[string]string) error {
	for i := range m.Options {
		o := &m.Options[i]
		if v, given := options[o.Key]; given {
			if err := o.Check(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Model) reads(option string) bool {
	return slices.ContainsFunc(m.Options, func(o arch.Option) bool { return o.Key == option })
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
