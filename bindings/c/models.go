package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/builtins"
)

// providers are the built-in plugins, in order of precedence.
var providers = sync.OnceValues(func() (models.Providers, error) {
	var all models.Providers
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
	arch  arch.Architecture
	space arch.Space
	// free is the space with the configurations that space leaves out because the order of their sums depends on M. order
	// are the axes that the order depends on, nil if none is left out for that.
	free  arch.Space
	order []string

	description *arch.Description
	kernel      string
	// side is the model with the other kernel families of its device.
	side ask.Contender

	mu     sync.Mutex
	memo   *selector.Memo
	ranker *selector.Selector
	ranked selector.Result
	// beyond answers for problems that are more than A·B, nil before the first one.
	beyond *selector.Memo
}

// open answers origami_open.
func open(text []byte) (*model, error) {
	t, err := models.Decode(text)
	if err != nil {
		return nil, err
	}
	all, err := providers()
	if err != nil {
		return nil, err
	}
	found, err := models.Find(context.Background(), all, &t)
	if err != nil {
		return nil, err
	}
	a, err := found.Open(context.Background(), all)
	if err != nil {
		return nil, err
	}
	m, err := newModel(a, &t)
	if err != nil {
		return nil, err
	}
	m.side, err = ask.NewContender(all, &found, a)
	if t.Space != nil {
		m.side.Fixed, m.side.Model = true, arch.WithSpace(a, m.space)
	}
	return m, err
}

// newModel prepares an open architecture for a target's kernel family and space.
func newModel(a arch.Architecture, t *models.Target) (*model, error) {
	d := a.Describe()
	kernel, err := d.Kernel(t.Kernel)
	if err != nil {
		return nil, err
	}
	space, err := t.Space.Of(d, kernel)
	if err != nil {
		return nil, err
	}
	free, order := space, []string(nil)
	if t.Invariant {
		if space, order, err = d.Invariant(space); err != nil {
			return nil, err
		}
	}
	return &model{
		arch: a, space: space, free: free, order: order, description: d, kernel: kernel,
		memo: selector.NewMemo(selector.New(a, space)), ranker: selector.New(a, space),
	}, nil
}

// selectOne returns the best configuration for a problem.
func (m *model) selectOne(p gemm.Problem) (selector.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	memo := m.memo
	if p.BeyondProduct() {
		if m.beyond == nil {
			m.beyond = selector.NewMemo(selector.New(arch.Whole(m.arch, p), m.space))
		}
		memo = m.beyond
	}
	e, err := memo.Select(context.Background(), p)
	if err == nil {
		err = m.finite(&p, &e)
	}
	return e, err
}

// rank passes the best `top` configurations for a problem to use. use must not keep them.
func (m *model) rank(p gemm.Problem, top int, use func([]selector.Entry)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ranker := m.ranker
	if p.BeyondProduct() {
		ranker = selector.New(arch.Whole(m.arch, p), m.space)
	}
	if err := ranker.Rank(context.Background(), p, top, &m.ranked); err != nil {
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

// rankAmong returns the ranking of a caller's configurations for a problem.
func (m *model) rankAmong(p gemm.Problem, list []gemm.Config, top int) (*ask.Ranking, error) {
	all, err := ask.Rankings(context.Background(), arch.WithCandidates(m.arch, list),
		ask.Question{Problems: []gemm.Problem{p}, Kernel: m.kernel, Top: top})
	if err != nil {
		return nil, err
	}
	r := &all[0]
	err = r.Err
	for i := 0; err == nil && i < len(r.Entries); i++ {
		e := &r.Entries[i]
		err = m.finite(&p, &selector.Entry{Config: e.Config, Estimate: e.Estimate, Mapping: e.Mapping})
	}
	return r, err
}

// answer answers origami_answer.
func (m *model) answer(p gemm.Problem) ([]byte, error) {
	q := ask.Question{Problems: []gemm.Problem{p}, Kernel: m.kernel, Top: 1, Terms: true, Regret: true, Ways: true,
		Advice: true}
	all, err := m.side.Rankings(context.Background(), q)
	if err == nil {
		err = all[0].Err
	}
	if err != nil {
		return nil, err
	}
	return ask.Encode(all[0].Answer(&all[0].Entries[0]))
}

// compare answers origami_compare.
func compare(sides []*model, list []gemm.Problem) ([]byte, error) {
	contenders := make([]ask.Contender, len(sides))
	for i, m := range sides {
		contenders[i] = m.side
	}
	rows := make([]problems.Problem, len(list))
	for i := range list {
		rows[i].Problem = list[i]
	}
	contests, err := ask.Compare(context.Background(), contenders, rows, false, func(int) {})
	if err != nil {
		return nil, err
	}
	out := make([]ask.Comparison, len(contests))
	for i := range contests {
		out[i] = contests[i].Comparison(nil, func(err error) error { return err })
	}
	return ask.Encode(out)
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
		Timing     string            `json:"timing,omitempty"`
		RanksOnly  bool              `json:"ranks_only,omitempty"`
		Units      int               `json:"units"`
		Clock      float64           `json:"clock_hz"`
		ClockRung  arch.Rung         `json:"clock_rung"`
		Level      float64           `json:"interval_level,omitempty"`
		Params     []param           `json:"params"`
		Options    map[string]string `json:"options"`
	}{
		d.Arch, d.Device, d.DeviceName, d.Model, d.ModelClass, m.kernel, d.Kernels, d.Rung, d.RungReason, d.Timing,
		d.RanksOnly, d.Units, float64(d.Clock), d.ClockRung, 0, nil, map[string]string{},
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
	type entry struct {
		arch.ArchEntry
		Options []arch.Option `json:"options,omitempty"`
	}
	all, err := providers()
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, p := range all {
		m := p.Manifest()
		for _, a := range m.Archs {
			entries = append(entries, entry{a, m.Options})
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
