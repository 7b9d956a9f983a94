// Package catalog makes an arch.Provider from device sheets. It finds the architecture and device that a request
// names and checks the model and the options. One function opens the model.
package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/timing"
)

// Definition defines a plugin.
type Definition struct {
	// Name and Version identify the plugin.
	Name, Version string
	// Files holds the device files, *.yaml at its root. With a Vendor, files of other vendors are ignored: plugins of
	// several vendors may share a folder.
	Files  fs.FS
	Vendor string
	// Models are the models of every architecture, best first.
	Models []Model
	// Archs, if set, replaces Models for each architecture, by id. A device file of another architecture is then an
	// error.
	Archs map[string][]Model
	// Specs are the hardware parameters of a device. Derive, which may be nil, computes those that follow from others
	// of the same device (see hw.Resolve).
	Specs  []hw.Spec
	Derive func(name string, known hw.Set) (hw.Number, bool)
	// Scale computes the parameters that no driver reports, for a GPU without a device file. It uses the known
	// parameters of the GPU and those of the default device of its architecture. The source of the number is the
	// formula. Without Scale such a GPU cannot be opened.
	Scale func(name string, known, like hw.Set) (hw.Number, bool)
	// Calibration, if set, returns the microbenchmarks of a device, and Ladder a ladder of kernels: see
	// calibrate.Planner and ladder.Provider.
	Calibration func(exec.Device) (*calibrate.Plan, error)
	Ladder      func() *ladder.Ladder
}

// Model is a model over some kernel families.
type Model struct {
	Name string
	// Class says what the model is for, and requests may name the model by it.
	Class arch.ModelClass
	// Kernels are the kernel families that the opened model predicts, the default first.
	Kernels []string
	// Options are those that the model reads.
	Options []arch.Option
	// Needs are the parameters that the model cannot do without. Nil is all that the specs do not declare optional.
	Needs []string
	// Fitted says that the model takes the numbers of a device file that were fitted for it.
	Fitted bool
	// Near, which may be nil, returns what reads the recorded times of a kernel family on a device, and nil without any.
	// They correct predictions near their problems (package residual).
	Near func(device, kernel string) func() []residual.Measured
	// Open opens the model. The selection has been checked: the sheet exists, the model has every option, and the
	// hardware parameters are resolved.
	Open func(Selection) (arch.Architecture, error)
}

// Selection is a request with resolved names: Model, Kernel and the names of the device are never empty, and every
// option is one of the model. At RungSpec, no parameter comes from a microbenchmark.
type Selection struct {
	arch.OpenRequest
	Sheet  *hw.Sheet
	Params hw.Set
	// Changed are the parameters whose values overrides changed.
	Changed []string
}

// Catalog is a Provider over a Definition.
type Catalog struct {
	def      Definition
	devices  []hw.Header // by architecture, the default device of each first
	manifest arch.Manifest
}

// New reads the names of the devices. It checks that they are unambiguous and that every architecture has exactly one
// default device. The parameters of a device are read when it is opened.
func New(def Definition) (*Catalog, error) {
	c := &Catalog{def: def, manifest: arch.Manifest{Name: def.Name, Version: def.Version,
		Calibrates: def.Calibration != nil, Ladder: def.Ladder != nil}}
	files, err := fs.Glob(def.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var others []string
	for _, file := range files {
		header, err := readHeader(def.Files, file)
		if err != nil {
			return nil, err
		}
		if def.Vendor == "" || header.Vendor == def.Vendor {
			c.devices = append(c.devices, header)
		} else {
			others = append(others, fmt.Sprintf("%s of %s", file, header.Vendor))
		}
	}
	switch {
	case len(c.devices) > 0:
	case len(others) > 0:
		return nil, fmt.Errorf("plugin %s has no device file of the vendor %s, but %s; write the same vendor in both, or"+
			" leave it out in the plugin", def.Name, def.Vendor, strings.Join(others, ", "))
	default:
		return nil, fmt.Errorf("plugin %s has no device file; embed *.yaml", def.Name)
	}
	sort.SliceStable(c.devices, func(i, j int) bool {
		a, b := &c.devices[i], &c.devices[j]
		if len(a.Arch) != len(b.Arch) {
			return len(a.Arch) < len(b.Arch) // sm90 before sm100
		}
		if a.Arch != b.Arch {
			return a.Arch < b.Arch
		}
		return a.Default && !b.Default
	})
	taken := map[string]string{}
	for _, d := range c.devices {
		archs := c.manifest.Archs
		if len(archs) == 0 || archs[len(archs)-1].ID != d.Arch {
			if !d.Default {
				return nil, fmt.Errorf("%s: architecture %s has no default device: set default: true in the file of one",
					d.File, d.Arch)
			}
			models := c.models(d.Arch)
			if len(models) == 0 {
				return nil,
					fmt.Errorf("%s: plugin %s has no model for the architecture %s; add it to the plugin's list",
						d.File, def.Name, d.Arch)
			}
			c.manifest.Archs = append(archs, entryOf(d, models))
			c.manifest.Options = withOptions(c.manifest.Options, models)
		} else if d.Default {
			return nil, fmt.Errorf("%s: architecture %s has a second default device: set default: true in one file only",
				d.File, d.Arch)
		}
		for _, name := range append([]string{d.Device}, d.Aliases...) {
			if other, ok := taken[name]; ok {
				return nil, fmt.Errorf("%s: device name %s is taken by %s", d.File, name, other)
			}
			taken[name] = d.File
		}
		entry := &c.manifest.Archs[len(c.manifest.Archs)-1]
		entry.Devices = append(entry.Devices, arch.DeviceEntry{ID: d.Device, Name: d.Name, Aliases: d.Aliases})
	}
	for _, o := range c.manifest.Options { // behind the name of a device, both are NAME=VALUE
		if slices.ContainsFunc(def.Specs, func(s hw.Spec) bool { return s.Name == o.Key }) {
			return nil, fmt.Errorf("plugin %s has an option %s, and hardware parameters have that name too; rename the option",
				def.Name, o.Key)
		}
	}
	return c, nil
}

// readHeader reads the header of a device file: of most files from their first bytes.
func readHeader(files fs.FS, file string) (hw.Header, error) {
	f, err := files.Open(file)
	if err != nil {
		return hw.Header{}, err
	}
	defer func() { _ = f.Close() }()
	var start [1 << 10]byte
	n, err := io.ReadFull(f, start[:])
	if err == nil {
		if head, _, whole := bytes.Cut(start[:n], []byte("\nderived:")); whole {
			return hw.DecodeHeader(file, head)
		}
	}
	data, err := fs.ReadFile(files, file)
	if err != nil {
		return hw.Header{}, err
	}
	return hw.DecodeHeader(file, data)
}

// Manifest implements arch.Provider.
func (c *Catalog) Manifest() arch.Manifest { return c.manifest }

// Calibration implements calibrate.Planner.
func (c *Catalog) Calibration(_ context.Context, d exec.Device) (*calibrate.Plan, error) {
	if c.def.Calibration == nil {
		return nil, diag.Inputf("the plugin %s has no microbenchmarks", c.def.Name)
	}
	return c.def.Calibration(d)
}

// Ladder implements ladder.Provider.
func (c *Catalog) Ladder(context.Context) (*ladder.Ladder, error) {
	if c.def.Ladder == nil {
		return nil, diag.Inputf("the plugin %s has no ladder of kernels", c.def.Name)
	}
	return c.def.Ladder(), nil
}

// Open implements arch.Provider. The times of the user's own GPU, and those that the plugin ships, correct the model
// near their problems. A model of other hardware is corrected by what they say of the hardware that was measured.
func (c *Catalog) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	opened, s, model, err := c.open(r)
	if err != nil {
		return nil, err
	}
	value := cmp.Or(r.Options[residual.Nearby], residual.Option.Default)
	asked := cmp.Or(r.Options[timing.Option], opened.Describe().Timing)
	without, none := residual.Without(value)
	shipped := map[string]func() []residual.Measured{}
	for _, kernel := range model.Kernels {
		if model.Near != nil {
			if rows := model.Near(s.Device, kernel); rows != nil {
				shipped[kernel] = rows
			}
		}
	}
	var own []residual.Measured
	for i, row := range s.Sheet.Times {
		var one residual.Measured
		text, err := json.Marshal(row)
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			return nil, diag.Inputf("times[%d]: %v", i, err).At(hw.FilePlace).Do("measure the GPU again")
		}
		if slices.Contains(model.Kernels, one.Config.Kernel) {
			own = append(own, one)
		}
	}
	like := opened
	if len(shipped)+len(own) > 0 && len(s.Changed) > 0 {
		r.Overrides = nil
		if like, _, _, err = c.open(r); err != nil {
			return nil, err
		}
	}
	for _, t := range []residual.Times{
		{Of: "recorded times of the device", Term: residual.Nearby, Rows: shipped,
			Asked: timing.Timing(asked)},
		{Of: "times of this GPU", Term: "here", Rows: residual.ByKernel(own), Intervals: true},
	} {
		if none || len(t.Rows) == 0 {
			continue
		}
		t.Like, t.Without = like, without
		corrected := residual.Beside(opened, &t)
		if like != opened {
			like = residual.Beside(like, &t)
		} else {
			like = corrected
		}
		opened = corrected
	}
	if d := opened.Describe(); len(shipped) > 0 { // the host asks again, in the timing that it converts to
		d.Options = append(slices.Clip(d.Options), arch.OptionValue{Key: residual.Nearby, Value: value},
			arch.OptionValue{Key: timing.Option, Value: asked})
	}
	return opened, nil
}

// open opens a model without measured times.
func (c *Catalog) open(r arch.OpenRequest) (arch.Architecture, *Selection, *Model, error) {
	m, err := c.find(r)
	if err != nil {
		return nil, nil, nil, err
	}
	model, err := c.choose(m.Arch, &r)
	if err != nil {
		return nil, nil, nil, err
	}
	s := Selection{OpenRequest: r}
	s.Arch, s.Device, s.Model = m.Arch.ID, m.Device.ID, model.Name
	if s.Kernel == "" {
		s.Kernel = model.Kernels[0]
	}
	derived := sources{}
	specs := model.specs(c.def.Specs)
	if m.Device.ID == arch.LiveID {
		s.Sheet, s.Params, err = c.unknown(specs, m, r, derived)
	} else {
		s.Sheet, s.Params, s.Changed, err = c.known(specs, m, r, derived)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	opened, err := model.Open(s)
	if err == nil {
		err = model.checkValues(r.Options)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	d := opened.Describe() // not shared yet
	d.ModelClass, d.Models = model.Class, m.Arch.Models
	if len(d.Unused) > 0 {
		d.Unused = derived.unused(s.Params, d.Unused)
	}
	return opened, &s, model, nil
}

// sources maps a derived parameter to the parameters that it was computed from.
type sources map[string][]string

// record wraps derive, which may be nil, to record the parameters that it reads.
func (s sources) record(derive func(string, hw.Set) (hw.Number, bool)) func(string, hw.Set) (hw.Number, bool) {
	if derive == nil {
		return nil
	}
	return func(name string, known hw.Set) (n hw.Number, ok bool) {
		reads := known.Reads(func(known hw.Set) { n, ok = derive(name, known) })
		if ok {
			s[name] = append(s[name], reads...)
		}
		return n, ok
	}
}

// unused returns the unused parameters of a model from which no used parameter is derived.
func (s sources) unused(params hw.Set, byModel []string) []string {
	used := map[string]bool{}
	for i := len(params) - 1; i >= 0; i-- { // a derived parameter comes after its sources
		name := params[i].Name
		used[name] = used[name] || !slices.Contains(byModel, name)
		for _, source := range s[name] {
			used[source] = used[source] || used[name]
		}
	}
	return slices.DeleteFunc(slices.Clone(byModel), func(name string) bool { return used[name] })
}

// find returns the device of a request.
func (c *Catalog) find(r arch.OpenRequest) (arch.Match, error) {
	if r.DeviceFile != nil {
		return c.described(r)
	}
	if r.Live != nil && r.Device == "" {
		return arch.FindLive([]arch.Manifest{c.manifest}, r.Arch, r.Live)
	}
	name := r.Arch
	if r.Device != "" {
		name += "@" + r.Device
	}
	m, err := arch.Find([]arch.Manifest{c.manifest}, name)
	m.Live = r.Live
	return m, err
}

// described returns the device of a request's own file. Its name must not be one of the catalogue's, since what the
// plugin knows of that device was not measured on the user's, unless the file says that it is such a device.
func (c *Catalog) described(r arch.OpenRequest) (arch.Match, error) {
	header, err := hw.DecodeHeader(hw.FilePlace, r.DeviceFile)
	if err != nil {
		return arch.Match{}, err
	}
	for _, d := range c.devices {
		taken := append([]string{d.Device}, d.Aliases...)
		if slices.Contains(taken, header.Device) && (!header.Here || d.Device != header.Device) {
			return arch.Match{}, diag.Inputf("the device %s is one of the plugin's own", header.Device).At(hw.FilePlace).
				Do("give it another name")
		}
	}
	m, err := arch.Find([]arch.Manifest{c.manifest}, header.Arch)
	if err != nil {
		return m, err
	}
	if r.Arch != "" && r.Arch != header.Arch {
		return m, diag.Inputf("it describes a device of %s, and %s was asked for", header.Arch, r.Arch).At(hw.FilePlace).
			Do("ask for %s", header.Arch)
	}
	m.Device = &arch.DeviceEntry{ID: header.Device, Name: header.Name, Aliases: header.Aliases}
	m.Live, m.DeviceFile = r.Live, r.DeviceFile
	return m, nil
}

// known reads the file of a device. Values from the driver of this machine replace the lowest tier. Overrides that
// change no value count as none.
func (c *Catalog) known(
	specs []hw.Spec, m arch.Match, r arch.OpenRequest, derived sources,
) (sheet *hw.Sheet, params hw.Set, changed []string, err error) {
	file, data := hw.FilePlace, m.DeviceFile
	i := slices.IndexFunc(c.devices, func(d hw.Header) bool { return d.Device == m.Device.ID }) // names are unambiguous
	var own *hw.Sheet
	if data != nil && i >= 0 {
		if own, err = hw.DecodeSheet(file, data); err != nil {
			return nil, nil, nil, err
		}
		data = nil
	}
	if data == nil {
		file = c.devices[i].File
		if data, err = fs.ReadFile(c.def.Files, file); err != nil {
			return nil, nil, nil, err
		}
	}
	if sheet, err = hw.DecodeSheet(file, data); err != nil {
		return nil, nil, nil, err
	}
	if own != nil {
		maps.Copy(sheet.Calibrated, own.Calibrated)
		sheet.Times = own.Times
	}
	var leftOut map[string]hw.Number
	if r.Rung == arch.RungSpec {
		leftOut, sheet.Calibrated = sheet.Calibrated, nil
	}
	if f := sheet.Fitted; f != nil {
		models := c.models(m.Arch.ID)
		i := slices.IndexFunc(models, func(one Model) bool { return one.is(f.Model) && one.Fitted })
		if i < 0 {
			return nil, nil, nil, diag.Inputf("fitted: no model %q of %s takes fitted numbers", f.Model, m.Arch.ID).
				At("%s", file).Do("leave the section out")
		}
		f.Model = models[i].Name
	}
	if m.Live != nil {
		sheet = sheet.WithLive(specs, m.Live.Attributes)
	}
	params, err = hw.Resolve(specs, sheet, derived.record(c.def.Derive), r.Overrides)
	if err != nil {
		var e *diag.Error
		if len(leftOut) > 0 && errors.As(err, &e) && e.Code == diag.CodeMissingParameter {
			return nil, nil, nil, diag.Inputf("%s but that of a microbenchmark, which rung %s leaves out", e.What, r.Rung).
				At("%s", file).Do("leave the rung out, or give the number as an override")
		}
		return nil, nil, nil, err
	}
	like := params
	if len(r.Overrides) > 0 {
		if like, err = hw.Resolve(specs, sheet, c.def.Derive, nil); err != nil {
			like = nil // the overrides give what the file lacks
		}
	}
	if len(params.Unlike(like)) == 0 {
		params = like
	}
	if c.def.Scale != nil {
		params = params.Rescaled(like, func(name string, known, like hw.Set) (hw.Number, bool) {
			scale := func(name string, known hw.Set) (hw.Number, bool) { return c.def.Scale(name, known, like) }
			return derived.record(scale)(name, known)
		})
	}
	return sheet, params, params.Unlike(like), nil
}

// unknown makes the parameters of a GPU without a file. They come from its driver, or are scaled from the default
// device of the architecture. All are of the lowest tier.
func (c *Catalog) unknown(
	specs []hw.Spec, m arch.Match, r arch.OpenRequest, derived sources,
) (*hw.Sheet, hw.Set, error) {
	if c.def.Scale == nil {
		return nil, nil, diag.Inputf("%s has no device file, and plugin %s cannot derive its numbers", m.Live.Name,
			c.def.Name).
			Do("name the device that comes nearest").Coded(diag.CodeUnknownDevice, "")
	}
	nearest := arch.Match{Manifest: m.Manifest, Arch: m.Arch, Device: &m.Arch.Devices[0]}
	_, like, _, err := c.known(specs, nearest, arch.OpenRequest{Rung: r.Rung}, sources{})
	if err != nil {
		return nil, nil, err
	}
	sheet := &hw.Sheet{Header: hw.Header{File: m.Live.Name, Arch: m.Arch.ID, Device: m.Device.ID, Name: m.Live.Name,
		Vendor: m.Arch.Vendor}}
	sheet = sheet.WithLive(specs, m.Live.Attributes)
	scale := func(name string, known hw.Set) (hw.Number, bool) {
		n, ok := c.def.Scale(name, known, like)
		if from, has := like.Lookup(name); has {
			n.Date = from.Date
		}
		return n.Scaled(nearest.ID()), ok
	}
	params, err := hw.Resolve(specs, sheet, derived.record(scale), r.Overrides)
	return sheet, params, err
}
