package catalog_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/catalog"
)

func file(head, vendor string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(head + "\nname: A GPU\nvendor: " + vendor +
		"\nderived:\n  units: {value: 4, unit: \"1\", source: data sheet, method: datasheet, date: 2026-01-02}\n")}
}

func definition(files fstest.MapFS, opened *catalog.Selection) catalog.Definition {
	open := opens(opened)
	return catalog.Definition{
		Name: "test", Version: "1.2.3", Files: files, Vendor: "Ours",
		Models: []catalog.Model{
			{Name: "refined", Kernels: []string{"triton"}, Open: open},
			{Name: "reference", Kernels: []string{"triton"}, Options: []arch.Option{{Key: "occ"}}, Open: open},
		},
		Specs: []hw.Spec{{Name: "units", Unit: "1", Integer: true, Doc: "units"},
			{Name: "speed", Unit: "1", Optional: true,
				Calibrates: true}},
	}
}

// opens keeps what is opened.
func opens(opened *catalog.Selection) func(catalog.Selection) (arch.Architecture, error) {
	return func(s catalog.Selection) (arch.Architecture, error) {
		*opened = s
		return &described{}, nil
	}
}

// described is an architecture with nothing but a description.
type described struct {
	arch.Architecture
	description arch.Description
}

func (d *described) Describe() *arch.Description { return &d.description }

// A parameter that the model itself does not use is used where it is the source of one that the model does use. An
// override in the place of the derived number takes the sources out.
func TestSourcesOfUsedParametersAreUsed(t *testing.T) {
	var opened catalog.Selection
	def := definition(fstest.MapFS{"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours")}, &opened)
	def.Specs = []hw.Spec{
		{Name: "units", Unit: "1"}, {Name: "lanes", Unit: "1"}, {Name: "rate", Unit: "1"}, {Name: "spare", Unit: "1"},
	}
	def.Derive = func(name string, known hw.Set) (hw.Number, bool) {
		n := hw.Number{Unit: "1", Source: "a formula", Method: hw.Formula}
		switch name {
		case "lanes":
			n.Value = 2 * known.Get("units")
		case "rate", "spare":
			n.Value = 3 * known.Get("lanes")
		}
		return n, n.Value > 0
	}
	for _, test := range []struct {
		override string
		byModel  []string // what the model does not use
		want     []string // what does not count
	}{
		{"", []string{"units", "lanes", "spare"}, []string{"spare"}},
		{"", []string{"units", "lanes", "rate", "spare"}, []string{"units", "lanes", "rate", "spare"}},
		{"", []string{"rate"}, []string{"rate"}},
		{"", nil, nil},
		{"rate", []string{"units", "lanes", "spare"}, []string{"units", "lanes", "spare"}},
		{"lanes", []string{"units", "lanes", "spare"}, []string{"units", "spare"}},
	} {
		def.Models[0].Open = func(catalog.Selection) (arch.Architecture, error) {
			return &described{description: arch.Description{Unused: test.byModel}}, nil
		}
		c := must.Get(catalog.New(def))(t)
		r := arch.OpenRequest{Arch: "x1"}
		if test.override != "" {
			r.Overrides = map[string]hw.OverrideValue{test.override: {Value: 5}}
		}
		a := must.Get(c.Open(t.Context(), r))(t)
		got := a.Describe().Unused
		must.That(t, slices.Equal(got, test.want),
			"override %q, a model without %v: %v are unused, want %v", test.override, test.byModel, got, test.want)
	}
}

// An override to the value that the device has changes nothing: the number keeps its source.
func TestOverrideToTheSameValue(t *testing.T) {
	var opened catalog.Selection
	c, err := catalog.New(definition(fstest.MapFS{"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours")}, &opened))
	must.Do(t, err)
	for value, changed := range map[float64]bool{4: false, 5: true} {
		r := arch.OpenRequest{Arch: "x1", Overrides: map[string]hw.OverrideValue{"units": {Value: value}}}
		must.Get(c.Open(t.Context(), r))(t)
		p, _ := opened.Params.Lookup("units")
		must.That(t, (p.Tier == hw.Override) == changed && slices.Contains(opened.Changed, "units") == changed,
			"units = %v: %+v, %v changed", value, p, opened.Changed)
	}
}

func TestCatalog(t *testing.T) {
	ctx := context.Background()
	var opened catalog.Selection
	c := must.Get(catalog.New(definition(fstest.MapFS{
		"a.yaml": file("arch: x1\ndevice: small\naliases: [little]", "Ours"),
		"b.yaml": file("arch: x1\ndevice: big\ndefault: true", "Ours"),
		"c.yaml": file("arch: y1\ndevice: other\ndefault: true", "Theirs"),
	}, &opened)))(t)
	m := c.Manifest()
	if len(m.Archs) != 1 || m.Archs[0].ID != "x1" || len(m.Archs[0].Devices) != 2 || m.Archs[0].Devices[0].ID != "big" {
		t.Fatalf("manifest %+v", m)
	}
	for _, r := range []struct {
		request arch.OpenRequest
		device  string
		model   string
	}{
		{arch.OpenRequest{Arch: "x1"}, "big", "refined"},
		{arch.OpenRequest{Arch: "x1", Device: "little", Model: "reference", Options: map[string]string{"occ": "2"}},
			"small",
			"reference"},
	} {
		_, err := c.Open(ctx, r.request)
		must.That(t, err == nil && opened.Sheet.Device == r.device &&
			opened.Params.Int("units") == 4 && opened.Model == r.model, "%+v opens %+v (%v)", r.request, opened, err)
	}
	for want, request := range map[string]arch.OpenRequest{
		"its devices: big, small":       {Arch: "x1", Device: "huge"},
		`unknown architecture "y1"`:     {Arch: "y1"},
		"use one of refined, reference": {Arch: "x1", Model: "oracle"},
		"its options: occ":              {Arch: "x1", Options: map[string]string{"grid": "1"}},
	} {
		if _, err := c.Open(ctx, request); diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a hint %q", request, err, want)
		}
	}
}

// Each architecture can have its models and families, and they are listed in the order of their numbers. A device of an
// architecture that has none is refused.
func TestModelsOfArchitectures(t *testing.T) {
	var opened catalog.Selection
	files := fstest.MapFS{
		"b.yaml": file("arch: x9\ndevice: a\ndefault: true", "Ours"),
		"a.yaml": file("arch: x10\ndevice: b\ndefault: true", "Ours"),
	}
	d := definition(files, &opened)
	d.Archs = map[string][]catalog.Model{
		"x9":  d.Models,
		"x10": {{Name: "reference", Kernels: []string{"mma"}, Open: opens(&opened)}},
	}
	c, err := catalog.New(d)
	must.Do(t, err)
	archs := c.Manifest().Archs
	must.That(t, archs[0].Models[0] == "refined" && archs[1].Models[0] == "reference" &&
		archs[1].Kernels[0] == "mma", "manifest %+v", archs)
	_, err = c.Open(context.Background(), arch.OpenRequest{Arch: "x10"})
	must.That(t, err == nil &&
		opened.Model == "reference", "x10 opens %s, %v", opened.Model, err)
	_, err = c.Open(context.Background(), arch.OpenRequest{Arch: "x10", Model: "refined"})
	must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "use one of reference"),
		"the refined model of x10: %v", err)
	delete(d.Archs, "x10")
	_, err = catalog.New(d)
	must.That(t, err != nil && strings.Contains(err.Error(),
		"a.yaml: plugin test has no model for the architecture x10"), "x10 is not listed: %v", err)
}

// A model can be several, each for some kernel families. The request says which by the family, and the best model is
// opened that has it. Options are those of the model that is opened.
func TestModelsByKernelFamily(t *testing.T) {
	var opened catalog.Selection
	var which int
	d := definition(fstest.MapFS{"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours")}, &opened)
	d.Models = []catalog.Model{
		{Name: "refined", Kernels: []string{"triton", "mma"}},
		{Name: "refined", Kernels: []string{"library"}, Options: []arch.Option{{Key: "l2"}}},
		{Name: "reference", Kernels: []string{"triton"}, Options: []arch.Option{{Key: "occ"}, {Key: "l2"}}},
	}
	for i := range d.Models {
		d.Models[i].Open = func(s catalog.Selection) (arch.Architecture, error) {
			which = i
			return opens(&opened)(s)
		}
	}
	c := must.Get(catalog.New(d))(t)
	m := c.Manifest()
	if a := m.Archs[0]; !slices.Equal(a.Models, []string{"refined", "reference"}) ||
		!slices.Equal(a.Kernels, []string{"triton", "mma", "library"}) || len(m.Options) != 2 {
		t.Errorf("manifest %+v", m)
	}
	l2 := map[string]string{"l2": "cold"}
	for i, test := range []struct {
		request arch.OpenRequest
		which   int
		kernel  string
	}{
		{arch.OpenRequest{}, 0, "triton"},
		{arch.OpenRequest{Kernel: "mma"}, 0, "mma"},
		{arch.OpenRequest{Kernel: "library", Options: l2}, 1, "library"},
		{arch.OpenRequest{Model: "refined", Kernel: "library"}, 1, "library"},
		{arch.OpenRequest{Model: "reference", Options: l2}, 2, "triton"},
		{arch.OpenRequest{Options: l2}, 1, "library"}, // the first that reads the option
	} {
		test.request.Arch = "x1"
		a, err := c.Open(t.Context(), test.request)
		must.That(t, err == nil && which == test.which && opened.Kernel == test.kernel && len(a.Describe().Models) == 2,
			"%d: opens %d for %s, %v", i, which, opened.Kernel, err)
	}
	for want, request := range map[string]arch.OpenRequest{
		"the reference model of x1 does not predict the kernel family library; use the model refined, " +
			"or a kernel family of the model: triton": {Model: "reference", Kernel: "library"},
		`no model of x1 predicts the kernel family "cute"; use one of triton, mma, library`: {Kernel: "cute"},
		`the refined model has no option "l2"; leave it out: it is an option of the model refined ` +
			`and reference`: {Kernel: "mma", Options: l2},
		`plugin test has no option "grid"; its options: l2, occ`: {Options: map[string]string{"grid": "1"}},
	} {
		request.Arch = "x1"
		if _, err := c.Open(t.Context(), request); diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", request, err, want)
		}
	}
}

// A device file may lack what no model of its architecture needs.
func TestNeeds(t *testing.T) {
	var opened catalog.Selection
	d := definition(fstest.MapFS{"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours")}, &opened)
	d.Specs = append(d.Specs, hw.Spec{Name: "latency", Unit: "cycles"})
	d.Models[1].Needs = []string{"units"}
	c, err := catalog.New(d)
	must.Do(t, err)
	_, err = c.Open(t.Context(), arch.OpenRequest{Arch: "x1"})
	must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "no value for latency"),
		"the model that needs the latency: %v", err)
	_, err = c.Open(t.Context(), arch.OpenRequest{Arch: "x1", Model: "reference"})
	must.That(t, err == nil, "the model that does not need it: %v", err)
	d.Models[1].Needs = []string{"units", "speed"}
	_, err = c.Open(t.Context(), arch.OpenRequest{Arch: "x1", Model: "reference"})
	must.That(t, err == nil, "a parameter that is optional: %v", err)
}

func TestAmbiguousDevices(t *testing.T) {
	var opened catalog.Selection
	for want, files := range map[string]fstest.MapFS{
		"no default device": {"a.yaml": file("arch: x1\ndevice: small", "Ours")},
		"second default device": {"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours"),
			"b.yaml": file("arch: x1\ndevice: b\ndefault: true", "Ours")},
		"name same is taken": {"a.yaml": file("arch: x1\ndevice: same\ndefault: true", "Ours"),
			"b.yaml": file("arch: x2\ndevice: b\ndefault: true\naliases: [same]", "Ours")},
		"device is missing": {"a.yaml": file("arch: x1", "Ours")},
		"plugin test has no device file of the vendor Ours, but a.yaml of Zed; write the same vendor in both": {
			"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Zed")},
		"plugin test has no device file; embed *.yaml": {},
	} {
		_, err := catalog.New(definition(files, &opened))
		must.That(t, err != nil && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
}

// A plugin that names no vendor takes the files of every one.
func TestNoVendor(t *testing.T) {
	var opened catalog.Selection
	def := definition(fstest.MapFS{"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Zed")}, &opened)
	def.Vendor = ""
	c, err := catalog.New(def)
	must.Need(t, err == nil && c.Manifest().Archs[0].Vendor == "Zed", "%v", err)
}

// An option and a parameter of one name could not be told apart behind the name of a device.
func TestOptionNamedAsAParameter(t *testing.T) {
	var opened catalog.Selection
	def := definition(fstest.MapFS{"a.yaml": file("arch: x1\ndevice: a\ndefault: true", "Ours")}, &opened)
	def.Models = []catalog.Model{{Name: "best", Kernels: []string{"k"}, Options: []arch.Option{{Key: def.Specs[0].Name}}}}
	_, err := catalog.New(def)
	must.That(t, err != nil && strings.Contains(err.Error(), "rename the option"), "%v", err)
}

// scaleSpeed scales the parameter speed by the number of units.
func scaleSpeed(name string, known, like hw.Set) (hw.Number, bool) {
	if name != "speed" {
		return hw.Number{}, false
	}
	return hw.Number{Value: like.Get("speed") * known.Get("units") / like.Get("units"), Unit: "1",
		Source: "speed * units", Method: hw.Formula}, true
}

// A GPU of this machine is opened as the device with its product name, with the driver's values in the lowest tier,
// or as a separate device.
func TestLiveDevices(t *testing.T) {
	ctx := context.Background()
	calibrated := "calibrated:\n  speed: {value: 8, unit: \"1\", source: a benchmark, method: microbenchmark, date: " +
		"2026-01-03}\n"
	files := fstest.MapFS{"b.yaml": file("arch: x1\ndevice: big\ndefault: true", "Ours")}
	files["b.yaml"].Data = append(files["b.yaml"].Data, calibrated...)
	var opened catalog.Selection
	def := definition(files, &opened)
	live := func(name string, attributes map[string]float64) arch.OpenRequest {
		return arch.OpenRequest{Arch: "x1", Live: &arch.LiveDevice{Name: name, Attributes: attributes}}
	}
	open := func(r arch.OpenRequest) error {
		c, err := catalog.New(def)
		must.Do(t, err)
		_, err = c.Open(ctx, r)
		return err
	}
	param := func(name string) hw.Param {
		p, _ := opened.Params.Lookup(name)
		return p
	}

	// A known product: equal values keep their source, different ones come from the driver, measured ones stay.
	// Attributes that the plugin does not know are ignored.
	must.Do(t, open(live("A GPU", map[string]float64{"units": 4, "speed": 5, "colour": 1})))
	if p := param("units"); opened.Sheet.Device != "big" || p.Value != 4 || p.Source != "data sheet" || p.Live() {
		t.Errorf("%+v of %s", p, opened.Sheet.Device)
	}
	if p := param("speed"); p.Value != 8 || p.Tier != hw.Calibrated {
		t.Errorf("%+v", p)
	}
	must.Do(t, open(live("A GPU", map[string]float64{"units": 3})))
	if p := param("units"); p.Value != 3 || p.Tier != hw.Derived || p.Source != hw.LiveSource ||
		p.Method != hw.Driver ||
		!p.Live() {
		t.Errorf("%+v", p)
	}

	// Another product of the architecture. This plugin cannot scale to it.
	if err := open(live("Another GPU", map[string]float64{"units": 2})); diag.KindOf(err) != diag.Input ||
		!strings.Contains(err.Error(), "Another GPU has no device file") {
		t.Errorf("no Scale: %v", err)
	}
	def.Scale = scaleSpeed
	must.Do(t, open(live("Another GPU", map[string]float64{"units": 2})))
	h := opened.Sheet.Header
	must.That(t, h.Device == arch.LiveID && h.Arch == "x1" && h.Name == "Another GPU" &&
		h.Vendor == "Ours", "header %+v", h)
	p := param("speed")
	must.That(t, p.Value == 4 && p.Tier == hw.Derived && p.Source == "scaled from x1@big: speed * units" &&
		p.ScaledFrom() == "x1@big" && p.Date == "2026-01-03" && !opened.Params.Calibrated(def.Specs), "%+v", p)
	// An override wins, and scaled parameters use it.
	r := live("Another GPU", map[string]float64{"units": 2})
	r.Overrides = map[string]hw.OverrideValue{"units": {Value: 8}}
	if err := open(r); err != nil || param("speed").Value != 16 || param("units").Tier != hw.Override {
		t.Errorf("%v: %+v", err, opened.Params)
	}

	for want, r := range map[string]arch.OpenRequest{
		"Another GPU: x1@auto has no value for units (units); give it as an override": live("Another GPU", nil),
		"units of x1: value is zero": live("Another GPU", map[string]float64{"units": 0}),
		"the architectures are x1":   {Arch: "z9", Live: &arch.LiveDevice{Name: "A GPU"}},
	} {
		err := open(r)
		must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
}
