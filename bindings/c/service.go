package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/sdk/here"
)

// dtype is the type of the operands where a question names none, as on the command line.
const dtype = "fp16"

// providers are the built-in plugins, in order of precedence.
var providers = sync.OnceValues(builtins.Providers)

// sideQuestion says which model answers, and which of its configurations are considered.
type sideQuestion struct {
	question.Target
	question.Search
	question.Orders
	Kernel string `json:"kernel"`

	reach bool // as a side of a comparison
}

// request is a question with the list of problems that it may have.
type request struct {
	// Ask is select, rank, explain, compare, kernel, pin, describe or archs.
	Ask string
	// Problems are products, each an object with the keys of question.Product. What they leave out is the question's.
	Problems []json.RawMessage
	// Sides of a comparison are objects with the keys of a target and of the configurations to consider.
	Sides []json.RawMessage
	// Kernels are descriptions of compiled kernels.
	Kernels []builtins.Kernel

	rest map[string]json.RawMessage
}

// answer answers a question in JSON.
func answer(ctx context.Context, text []byte) (any, error) {
	r, err := read(text)
	if err != nil {
		return nil, err
	}
	switch r.Ask {
	case "select":
		return r.pick(ctx)
	case "rank":
		var q struct {
			question.Target
			question.Rank
			Brief bool `json:"brief"`
		}
		answer := func(ctx context.Context, side *ask.Contender, fallback string) (any, error) {
			q.Rank.Brief = q.Brief
			return q.Answer(ctx, side, fallback)
		}
		return one(ctx, r, &q, &q.Target, &q.Search, &q.Product, &q.Orders, answer)
	case "explain":
		var q struct {
			question.Target
			question.Explain
		}
		return one(ctx, r, &q, &q.Target, &q.Search, &q.Product, &question.Orders{}, q.Answer)
	case "compare":
		return r.compare(ctx)
	case "kernel":
		return r.kernel(ctx)
	case "pin":
		return r.pin(ctx)
	case "describe":
		return r.describe(ctx)
	case "archs":
		return archs()
	default:
		return nil, diag.Inputf("there is no question %q", r.Ask).At("ask").
			Do("use select, rank, explain, compare, kernel, pin, describe or archs")
	}
}

// read takes apart what all questions have.
func read(text []byte) (*request, error) {
	values, err := question.Object(text)
	if err != nil {
		return nil, err
	}
	r := &request{rest: values}
	for key, to := range map[string]any{"ask": &r.Ask, "problems": &r.Problems, "sides": &r.Sides, "kernels": &r.Kernels} {
		value, ok := values[key]
		if !ok {
			continue
		}
		if err := json.Unmarshal(value, to); err != nil {
			return nil, diag.Inputf("not understood: %v", err).At("%s", key).Do("see origami.h")
		}
		delete(values, key)
	}
	return r, nil
}

// one fills a question about one problem and answers it.
func one(ctx context.Context, r *request, q any, t *question.Target, s *question.Search, p *question.Product,
	o *question.Orders, answer func(context.Context, *ask.Contender, string) (any, error)) (any, error) {
	if err := question.Fill(r.rest, q); err != nil {
		return nil, err
	}
	m, err := open(ctx, &sideQuestion{Target: *t, Search: *s, Orders: *o, Kernel: p.Kernel})
	if err != nil {
		return nil, err
	}
	return answer(ctx, &m.side, dtype)
}

// pick answers select, for one problem or for many.
func (r *request) pick(ctx context.Context) (any, error) {
	var q struct {
		question.Target
		question.Select
	}
	if err := question.Fill(r.rest, &q); err != nil {
		return nil, err
	}
	m, err := open(ctx, &sideQuestion{Target: q.Target, Search: q.Search, Orders: q.Orders, Kernel: q.Kernel})
	if err != nil {
		return nil, err
	}
	if r.Problems == nil {
		return m.pick(ctx, &q.Select)
	}
	return r.each(&q.Product, func(p question.Product) (any, error) {
		one := q.Select
		one.Product = p
		return m.pick(ctx, &one)
	})
}

// each answers for each of the problems. What is wrong with one stands in its place.
func (r *request) each(base *question.Product, answer func(question.Product) (any, error)) ([]any, error) {
	out := make([]any, len(r.Problems))
	for i, text := range r.Problems {
		p := *base
		err := question.Decode(text, &p)
		if err == nil {
			out[i], err = answer(p)
		}
		if err != nil {
			out[i] = ask.Failure{Error: ask.ErrorOf(diag.Within(fmt.Sprintf("problem %d", i), err))}
		}
	}
	return out, nil
}

// compare answers compare, with an ask.Comparison for each problem.
func (r *request) compare(ctx context.Context) (any, error) {
	var q struct {
		question.Target
		question.Compare
	}
	if err := question.Fill(r.rest, &q); err != nil {
		return nil, err
	}
	if len(r.Sides) > models.Most || len(r.Problems) > maxCompared {
		return nil, diag.Inputf("there are %d sides and %d problems", len(r.Sides), len(r.Problems)).
			Do("give up to %d sides and %d problems", models.Most, maxCompared)
	}
	var sides []ask.Contender
	for i, text := range r.Sides {
		side := sideQuestion{Kernel: q.Kernel, reach: true}
		err := question.Decode(text, &side)
		if err == nil {
			var m *model
			if m, err = open(ctx, &side); err == nil {
				sides = append(sides, m.side)
			}
		}
		if err != nil {
			return nil, diag.Within(fmt.Sprintf("side %d", i), err)
		}
	}
	if r.Sides == nil {
		all, err := providers()
		if err != nil {
			return nil, err
		}
		if err := readOwn(&q.Target); err != nil {
			return nil, err
		}
		if sides, err = q.Sides(ctx, models.Providers(all), &q.Search, q.Kernel, false, true); err != nil {
			return nil, err
		}
	}
	if len(sides) < 2 {
		return nil, diag.Inputf("there are %d sides", len(sides)).Do("give 2 to %d sides", models.Most)
	}
	rows := make([]problems.Problem, max(1, len(r.Problems)))
	for i := range rows {
		p := q.Product
		var err error
		if r.Problems != nil {
			err = question.Decode(r.Problems[i], &p)
		}
		if err == nil {
			rows[i].Problem, err = p.One(dtype)
		}
		if err != nil {
			return nil, diag.Within(fmt.Sprintf("problem %d", i), err)
		}
	}
	contests, err := ask.Compare(ctx, sides, rows, false, func(int) {})
	if err != nil {
		return nil, err
	}
	out := make([]ask.Comparison, len(contests))
	for i := range contests {
		out[i] = contests[i].Comparison(nil, func(err error) error { return err })
	}
	return out, nil
}

// maxCompared is the most problems of a comparison: their answers are in memory at once.
const maxCompared = 1 << 14

// model is an open model with its previous picks. It is safe for concurrent use: callers take turns.
type model struct {
	side ask.Contender
	mu   sync.Mutex
	memo *selector.Memo
	// narrow are the same model with lists of candidates, by the hash of their text. A caller ranks one list for many
	// problems.
	narrow keep.Map[[sha256.Size]byte, model]
}

// remember gives an open model its memory of picks.
func (m *model) remember() {
	m.memo = selector.NewMemo(selector.New(m.side.Model, arch.Space{Kernel: m.side.Kernel}))
}

// kept are models by what they were asked for, at most mostKept of them.
type kept struct {
	mu     sync.Mutex
	models map[string]*model
}

const mostKept = 64

// opened are the open models by their question.
var opened kept

// get returns the model of a key, which it makes once. Callers with the same new key may make one each.
func (k *kept) get(key string, make func() (*model, error)) (*model, error) {
	k.mu.Lock()
	m := k.models[key]
	k.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := make()
	if err != nil {
		return nil, err
	}
	m.remember()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.models == nil || len(k.models) >= mostKept {
		k.models = map[string]*model{}
	}
	k.models[key] = m
	return m, nil
}

// open returns the model of a question. A list of candidates narrows it.
func open(ctx context.Context, q *sideQuestion) (*model, error) {
	whole := *q
	whole.Candidates = question.Document{}
	key, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	m, err := opened.get(fmt.Sprint(q.reach, string(key)), func() (*model, error) { return openWhole(ctx, &whole) })
	if err != nil || !q.Candidates.Asked() {
		return m, err
	}
	return m.narrow.Get(sha256.Sum256([]byte(q.Candidates.Text)), func() (*model, int, error) {
		narrow := &model{side: m.side}
		narrow.side.Fixed = true
		var err error
		if narrow.side.Model, err = q.Restrict(m.side.Model, q.Kernel, q.Invariant); err != nil {
			return nil, 0, err
		}
		narrow.remember()
		return narrow, 2 * len(q.Candidates.Text), nil // a configuration takes as much as its text, and as much to rank it
	})
}

func openWhole(ctx context.Context, q *sideQuestion) (*model, error) {
	all, err := providers()
	if err != nil {
		return nil, err
	}
	if err := readOwn(&q.Target); err != nil {
		return nil, err
	}
	sides, err := q.Sides(ctx, models.Providers(all), &q.Search, q.Kernel, q.Invariant, q.reach)
	if err != nil {
		return nil, err
	}
	if len(sides) != 1 {
		return nil, diag.Inputf("%d architectures are given", len(sides)).At("arch").Do("give one, or ask compare")
	}
	return &model{side: sides[0]}, nil
}

// readOwn gives a question what `origami here` measured on its device, unless it has a device file.
func readOwn(q *question.Target) error {
	targets, err := models.Parse(q.Arch, q.Device)
	for i := 0; err == nil && i < len(targets) && q.DeviceFile.Text == ""; i++ {
		targets[i].Live = q.Live.LiveDevice
		q.DeviceFile.Text, err = here.FileOf(&targets[i])
	}
	return err
}

// pick answers a select. The pick alone for a plain product is kept.
func (m *model) pick(ctx context.Context, q *question.Select) (any, error) {
	_, several := q.M.Several()
	if !q.Brief || several || q.Top != 1 || q.Regret || q.Advice || q.Invariant || q.Contract != "" || len(q.Same) > 0 {
		return q.Answer(ctx, &m.side, dtype)
	}
	p, err := q.Product.One(dtype)
	if err != nil {
		return nil, err
	}
	if p.BeyondProduct() || m.side.For(ctx, &p) != &m.side {
		return q.Answer(ctx, &m.side, dtype)
	}
	m.mu.Lock()
	e, err := m.memo.Select(ctx, p)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r := ask.Ranking{Arch: m.side.Describe(), Kernel: m.side.Kernel, Problem: p}
	return r.Answer(&ask.Entry{Rank: 1, Config: e.Config, Estimate: e.Estimate, Mapping: e.Mapping}), nil
}

// pin answers pin: the times of compiled kernels, and the one to take. Terms come with brief false.
func (r *request) pin(ctx context.Context) (any, error) {
	q := struct {
		question.Target
		Brief bool `json:"brief"`
	}{Brief: true}
	if err := question.Fill(r.rest, &q); err != nil {
		return nil, err
	}
	m, err := open(ctx, &sideQuestion{Target: q.Target})
	if err != nil {
		return nil, err
	}
	a, err := builtins.Pin(m.side.Describe(), r.Kernels)
	for i := 0; err == nil && q.Brief && i < len(a.Times); i++ {
		a.Times[i].Terms = nil
	}
	return a, err
}

// describe answers describe: what the model is.
func (r *request) describe(ctx context.Context) (any, error) {
	var q sideQuestion
	if err := question.Fill(r.rest, &q); err != nil {
		return nil, err
	}
	m, err := open(ctx, &q)
	if err != nil {
		return nil, err
	}
	d := m.side.Describe()
	out := described{Arch: d.Arch, Device: d.Device, DeviceName: d.DeviceName, Model: d.Model, Class: d.ModelClass,
		Kernel: m.side.Kernel, Kernels: d.Kernels, Rung: d.Rung, Reason: d.RungReason, Timing: d.Timing,
		RanksOnly: d.RanksOnly, Units: d.Units, Clock: float64(d.Clock), ClockRung: d.ClockRung,
		Params: ask.Parameters(d), Options: map[string]string{}}
	if i := slices.IndexFunc(d.Uncertainty, func(u arch.Uncertainty) bool { return u.Kernel == m.side.Kernel }); i >= 0 {
		out.Level = d.Uncertainty[i].Level
	}
	for _, o := range d.Options {
		out.Options[o.Key] = o.Value
	}
	return out, nil
}

// described is an open model.
type described struct {
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
	Params     []ask.Parameter   `json:"params"`
	Options    map[string]string `json:"options"`
}

// archs answers archs: what can be opened.
func archs() (any, error) {
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
	return entries, nil
}

// generated is a kernel of a problem.
type generated struct {
	*builtins.Launch
	arch string
}

// configuration is a configuration as JSON has it.
type configuration struct{ *gemm.Config }

// UnmarshalJSON reads a configuration.
func (c *configuration) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &c.Config) }

// kernel generates the kernel of the pick, or of a configuration.
func (r *request) kernel(ctx context.Context) (*generated, error) {
	var q struct {
		question.Target
		question.Product
		question.Search
		question.Orders
		Config configuration `json:"config"`
	}
	if err := question.Fill(r.rest, &q); err != nil {
		return nil, err
	}
	p, err := q.One(dtype)
	if err != nil {
		return nil, err
	}
	m, err := open(ctx, &sideQuestion{Target: q.Target, Search: q.Search, Orders: q.Orders, Kernel: q.Kernel})
	if err != nil {
		return nil, err
	}
	a := m.side.Model
	if c := q.Config.Config; c != nil {
		c.Kernel = m.side.Kernel
		if err := c.ValidateNumbers(); err != nil {
			return nil, diag.Within("config", err)
		}
		a = arch.WithCandidates(a, []gemm.Config{*c})
	}
	all, err := ask.Rankings(ctx, a, ask.Question{Problems: []gemm.Problem{p}, Kernel: m.side.Kernel, Top: 1})
	if err == nil {
		err = all[0].Err
	}
	if err != nil {
		return nil, err
	}
	d, config := m.side.Describe(), all[0].Entries[0].Config
	l, err := builtins.Generate(d, p, config, p.Beta != 0)
	return &generated{l, d.Arch}, err
}
