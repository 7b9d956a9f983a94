package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/builtins"
)

// providers are the built-in plugins, in order of precedence.
var providers = sync.OnceValues(func() ([]arch.Provider, error) {
	var all []arch.Provider
	for _, plugin := range builtins.Plugins {
		p, err := plugin.Provider()
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
})

// model is an open architecture with its previous answers. It is safe for concurrent use: callers take turns, for
// less than a microsecond if the answer is known.
type model struct {
	description *arch.Description
	kernel      string

	mu     sync.Mutex
	memo   *selector.Memo
	ranker *selector.Selector
	ranked selector.Result
}

// request is the request of origami_open.
type request struct {
	Arch      string            `json:"arch"`
	Device    string            `json:"device"`
	Model     string            `json:"model"`
	Kernel    string            `json:"kernel"`
	Rung      arch.Rung         `json:"rung"`
	Options   map[string]string `json:"options"`
	Overrides json.RawMessage   `json:"overrides"`
	Space     space             `json:"space"`
	Live      *struct {
		Name       string             `json:"name"`
		Attributes map[string]float64 `json:"attributes"`
	} `json:"live"`
	// The text of files about the kernels, as in arch.OpenRequest.
	Compiled         string `json:"compiled"`
	Characterization string `json:"characterization"`
}

// space is a space in JSON: an object with a list of values per axis. Values of gemm.Fields are numbers. Values of
// the kernel family's axes are strings.
type space arch.Space

// UnmarshalJSON reads the object. newModel checks that the family has the axes.
func (s *space) UnmarshalJSON(text []byte) error {
	var axes map[string]json.RawMessage
	if err := json.Unmarshal(text, &axes); err != nil {
		return err
	}
	numbers := (*arch.Space)(s).Numbers()
	for i, field := range gemm.Fields() {
		values, ok := axes[field.Name]
		if !ok || numbers[i] == nil {
			continue
		}
		if err := json.Unmarshal(values, numbers[i]); err != nil {
			return fmt.Errorf("space.%s: %w", field.Name, err)
		}
		delete(axes, field.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		axis := arch.AxisValues{Name: name}
		if err := json.Unmarshal(axes[name], &axis.Values); err != nil {
			return fmt.Errorf("space.%s: %w", name, err)
		}
		s.Axes = append(s.Axes, axis)
	}
	return nil
}

// open answers origami_open.
func open(text []byte) (*model, error) {
	const place = "open request"
	var r request
	err := strictjson.Unmarshal(text, &r)
	if errors.Is(err, strictjson.ErrTrailing) {
		err = errors.New("data follows the first JSON object")
	}
	if err != nil {
		return nil, diag.Inputf("not understood: %v", err).At(place).Do(`write a JSON object, as in {"arch":"sm90"}`)
	}
	all, err := providers()
	if err != nil {
		return nil, err
	}
	manifests := make([]arch.Manifest, len(all))
	for i, p := range all {
		manifests[i] = p.Manifest()
	}
	m, err := r.find(manifests)
	if err != nil {
		return nil, err
	}
	o := m.Request()
	o.Model, o.Kernel, o.Rung, o.Options = r.Model, r.Kernel, r.Rung, r.Options
	if r.Compiled != "" {
		o.Compiled = []byte(r.Compiled)
	}
	if r.Characterization != "" {
		o.Characterization = []byte(r.Characterization)
	}
	if len(r.Overrides) > 0 {
		overrides, err := hw.ParseOverrides("overrides", r.Overrides)
		if err != nil {
			return nil, err
		}
		if len(overrides.ByArch) > 0 {
			return nil, diag.Inputf("the numbers stand under an architecture").At("overrides").
				Do(`a request is for one device: write {"clock":1.5e9}`)
		}
		o.Overrides = overrides.Bare
	}
	for i := range all {
		if m.Manifest != &manifests[i] {
			continue
		}
		a, err := all[i].Open(context.Background(), o)
		if err != nil {
			return nil, err
		}
		return newModel(a, &r)
	}
	panic("the manifest of a match is one of those that were searched")
}

// find returns the device of a request.
func (r *request) find(manifests []arch.Manifest) (arch.Match, error) {
	switch {
	case r.Live == nil && r.Device == "":
		return arch.Find(manifests, r.Arch)
	case r.Live == nil:
		return arch.Find(manifests, r.Arch+"@"+r.Device)
	case r.Device != "":
		return arch.Match{}, diag.Inputf("there is a device and a live one").Do("leave one of them out")
	default:
		return arch.FindLive(manifests, r.Arch, &arch.LiveDevice{Name: r.Live.Name, Attributes: r.Live.Attributes})
	}
}

// newModel prepares an open architecture for a kernel family and a space.
func newModel(a arch.Architecture, r *request) (*model, error) {
	d := a.Describe()
	if r.Rung != "" && d.Rung != r.Rung {
		why := ""
		if d.RungReason != "" {
			why = ", " + d.RungReason
		}
		return nil, diag.Inputf("the %s model of %s stands on rung %s and not on %s%s", d.Model, d.ID(), d.Rung, r.Rung,
			why).Do("leave the rung out")
	}
	kernel, err := d.Kernel(r.Kernel)
	if err != nil {
		return nil, err
	}
	space := arch.Space(r.Space)
	space.Kernel = kernel
	for _, axis := range space.Axes {
		if _, err := gemm.FindAxis(d.Axes(kernel), axis.Name); err != nil {
			return nil, err
		}
	}
	return &model{
		description: d, kernel: kernel,
		memo: selector.NewMemo(selector.New(a, space)), ranker: selector.New(a, space),
	}, nil
}

// selectOne returns the best configuration for a problem.
func (m *model) selectOne(p gemm.Problem) (selector.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.memo.Select(context.Background(), p)
	if err == nil {
		err = m.finite(&p, &e)
	}
	return e, err
}

// rank passes the best `top` configurations for a problem to use. use must not keep them.
func (m *model) rank(p gemm.Problem, top int, use func([]selector.Entry)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ranker.Rank(context.Background(), p, top, &m.ranked); err != nil {
		return err
	}
	for i := range m.ranked.Entries {
		if err := m.finite(&p, &m.ranked.Entries[i]); err != nil {
			return err
		}
	}
	use(m.ranked.Entries)
	return nil
}

// finite refuses a prediction that is no number. Callers compute with what they get, and look at the status only.
func (m *model) finite(p *gemm.Problem, e *selector.Entry) error {
	low, high := m.interval(p, e)
	for _, v := range [...]float64{float64(e.Estimate.Cycles), float64(m.seconds(e)), float64(low), float64(high)} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return m.nonsense(fmt.Sprintf("the prediction for %s is %v cycles in %v s", e.Config,
				float64(e.Estimate.Cycles), float64(m.seconds(e))))
		}
	}
	return nil
}

func (m *model) nonsense(what string) error {
	return &diag.Error{Kind: diag.Plugin, Where: "model of " + m.description.ID(), What: what,
		Fix: "see whether an override is out of range, otherwise report it"}
}

// seconds returns the predicted time of an entry.
func (m *model) seconds(e *selector.Entry) unit.Seconds {
	return e.Estimate.Cycles.At(m.description.Clock)
}

// describe answers origami_describe.
func (m *model) describe() ([]byte, error) {
	type param struct {
		Name   string    `json:"name"`
		Value  float64   `json:"value"`
		Unit   string    `json:"unit"`
		Tier   string    `json:"tier"`
		Method hw.Method `json:"method"`
		Source string    `json:"source"`
	}
	d := m.description
	text := struct {
		Arch       string            `json:"arch"`
		Device     string            `json:"device"`
		DeviceName string            `json:"device_name"`
		Model      string            `json:"model"`
		Class      arch.ModelClass   `json:"model_class,omitempty"`
		Kernel     string            `json:"kernel"`
		Kernels    []string          `json:"kernels"`
		Rung       arch.Rung         `json:"rung"`
		Reason     string            `json:"rung_reason,omitempty"`
		RanksOnly  bool              `json:"ranks_only,omitempty"`
		Units      int               `json:"units"`
		Clock      float64           `json:"clock_hz"`
		ClockRung  arch.Rung         `json:"clock_rung"`
		Level      float64           `json:"interval_level,omitempty"`
		Params     []param           `json:"params"`
		Options    map[string]string `json:"options"`
	}{
		d.Arch, d.Device, d.DeviceName, d.Model, d.ModelClass, m.kernel, d.Kernels, d.Rung, d.RungReason, d.RanksOnly,
		d.Units, float64(d.Clock), d.ClockRung, 0, nil, map[string]string{},
	}
	for i := range d.Uncertainty {
		if u := &d.Uncertainty[i]; u.Kernel == m.kernel && text.Level == 0 {
			text.Level = u.Level
		}
	}
	for _, p := range d.Params {
		text.Params = append(text.Params, param{p.Name, p.Value, p.Unit, p.Tier.String(), p.Method, p.Source})
	}
	for _, o := range d.Options {
		text.Options[o.Key] = o.Value
	}
	out, err := json.Marshal(text)
	if err != nil { // a number that is not finite
		return nil, m.nonsense(err.Error())
	}
	return out, nil
}

// list answers origami_list.
func list() ([]byte, error) {
	type device struct {
		ID      string   `json:"id"`
		Name    string   `json:"name"`
		Aliases []string `json:"aliases,omitempty"`
	}
	type option struct {
		Key     string   `json:"key"`
		Default string   `json:"default"`
		Values  []string `json:"values,omitempty"`
		Doc     string   `json:"doc"`
	}
	type entry struct {
		ID     string   `json:"id"`
		Vendor string   `json:"vendor"`
		Models []string `json:"models"`
		// Classes are the classes of Models: other names for them in requests.
		Classes []arch.ModelClass `json:"model_classes,omitempty"`
		Kernels []string          `json:"kernels"`
		Devices []device          `json:"devices"`
		Options []option          `json:"options,omitempty"`
	}
	all, err := providers()
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, p := range all {
		m := p.Manifest()
		var options []option
		for _, o := range m.Options {
			options = append(options, option{o.Key, o.Default, o.Values, o.Doc})
		}
		for _, a := range m.Archs {
			e := entry{ID: a.ID, Vendor: a.Vendor, Models: a.Models, Classes: a.Classes, Kernels: a.Kernels, Options: options}
			for _, d := range a.Devices {
				e.Devices = append(e.Devices, device(d))
			}
			entries = append(entries, e)
		}
	}
	return json.Marshal(entries)
}

// handles are the open models by the number that C has. A number is never reused.
type handles struct {
	mu     sync.RWMutex
	last   uint64
	models map[uint64]*model
}

// add gives a model a number.
func (h *handles) add(m *model) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.models == nil {
		h.models = map[uint64]*model{}
	}
	h.last++
	h.models[h.last] = m
	return h.last
}

// find returns the model of a number.
func (h *handles) find(id uint64) (*model, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if m := h.models[id]; m != nil {
		return m, nil
	}
	return nil, diag.Inputf("there is no open model %d", id).Do("open one with origami_open")
}

// remove removes a model.
func (h *handles) remove(id uint64) error {
	if _, err := h.find(id); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.models, id)
	return nil
}
