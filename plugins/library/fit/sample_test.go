// Package fit finds the quantities of the library model that reproduce published times best.
package fit_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/published"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

// opener opens the model on a device under options.
type opener func(device string, options map[string]string) (*library.Model, error)

// sampled is published times.
type sampled struct {
	models []*library.Model
	times  []timed
	// near are the values under which the contenders of each time were found.
	near map[string]float64
	// Models of generations other than this one take only the values of the quantities that are shared, if it is not nil.
	generation terms.Generation
	shared     func(quantity string) bool
}

// timed is a published time, with the model that predicts it.
type timed struct {
	*published.Time
	model   int
	problem gemm.Problem
	configs []gemm.Config
	// contenders are the configurations that may be the fastest under values that hardly differ from sampled.near.
	contenders []gemm.Config
	log        float64
	more       int // how often it counts besides once
}

// sampleOf returns the times that keep accepts and the model takes, about most of each series at most: those whose
// shapes have the lowest hash, so that series have the same shapes.
func sampleOf(open opener, all []published.Time, keep func(*published.Time) bool, most int) (*sampled, error) {
	s := &sampled{}
	models := map[string]int{}
	lists := map[string][]gemm.Config{}
	bySeries := map[*published.Series][]timed{}
	for i := range all {
		t := &all[i]
		if t.Device == "" || !keep(t) {
			continue
		}
		options, ok := optionsOf(t.Series)
		p, err := t.Problem()
		if t.Out == "fp8" && t.K > t.M+t.N { // of which the output is next to nothing
			p, err = gemm.New(t.M, t.N, t.K), nil
			p.DType = gemm.FP8
			p.SetTrans(t.TransA, t.TransB)
		}
		if err != nil || !ok {
			continue
		}
		key := t.Device + fmt.Sprint(options)
		at, ok := models[key]
		if !ok {
			m, err := open(t.Device, options)
			if err != nil {
				return nil, err
			}
			at = len(s.models)
			models[key], s.models = at, append(s.models, m)
		}
		m := s.models[at]
		if m.Describe().SupportsTypes(library.Family, &p) != nil {
			continue
		}
		list := key + p.Types().Text()
		if lists[list] == nil {
			c, err := m.Candidates(context.Background(), p, arch.Space{})
			if err != nil {
				return nil, err
			}
			lists[list] = c.Configs
		}
		bySeries[t.Series] = append(bySeries[t.Series],
			timed{Time: t, model: at, problem: p, configs: lists[list], log: math.Log(float64(t.Median))})
	}
	if alone(bySeries) {
		most *= 3
	}
	for i := range all {
		list := bySeries[all[i].Series]
		delete(bySeries, all[i].Series)
		s.times = append(s.times, thinned(list, most)...)
	}
	return s, nil
}

// alone reports whether one series has nearly all of the times.
func alone(series map[*published.Series][]timed) bool {
	sum, largest := 0, 0
	for _, list := range series {
		sum, largest = sum+len(list), max(largest, len(list))
	}
	return 5*largest > 4*sum
}

// optionsOf returns the options of the model for the conditions of a series, and false if the model has none for them.
func optionsOf(s *published.Series) (map[string]string, bool) {
	scheme := s.Scheme
	if scheme == published.NoScheme {
		scheme = published.TensorScheme
	}
	given := map[string]string{"timing": string(s.Timing), "scheme": scheme, "release": s.Release,
		residual.Nearby: residual.None}
	for _, o := range library.Options {
		if !slices.Contains(o.Values, given[o.Key]) {
			return nil, false
		}
	}
	return given, true
}

// thinned keeps about most of the times of a series.
func thinned(list []timed, most int) []timed {
	share := float64(most) / float64(len(list))
	return slices.DeleteFunc(list, func(t timed) bool {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d,%d,%d", t.M, t.N, t.K)) // a shorter hash is not even
		return float64(binary.BigEndian.Uint32(sum[4:]))/math.MaxUint32 >= share
	})
}

// Without returns the sample without some of the times.
func (s *sampled) Without(out func(*published.Time) bool) *sampled {
	kept := slices.DeleteFunc(slices.Clone(s.times), func(t timed) bool { return out(t.Time) })
	return &sampled{models: s.models, times: kept, generation: s.generation, shared: s.shared}
}

// blind reports whether a time is kept for tests, and no number is fitted to it: a source as a whole, a device as a
// whole, half of the shapes of the sources with few devices, an eighth of the others.
func blind(t *published.Time) bool {
	h := fnv.New32a()
	fmt.Fprint(h, t.N, t.K, t.M)
	drawn := h.Sum32() >> 8
	switch t.Source.ID {
	case "xla":
		return true
	case "llmservingsim":
		return t.Device == "sm86@a6000" || t.Device == "sm90@h100" || drawn&1 == 1
	case "origami":
		return drawn&1 == 1
	default:
		return drawn&7 == 1
	}
}

// Even lets the devices with few times count as much together as the one with most. Of models of other generations than
// the given one, only the shared quantities take other values.
func (s *sampled) Even(g terms.Generation, shared func(quantity string) bool) *sampled {
	of := map[string]int{}
	for i := range s.times {
		of[s.times[i].Device]++
	}
	most := slices.Max(slices.Collect(maps.Values(of)))
	for i := range s.times {
		t := &s.times[i]
		if of[t.Device] < most {
			t.more = most/(len(s.times)-most) - 1
		}
	}
	s.generation, s.shared = g, shared
	return s
}

// Len is the number of times.
func (s *sampled) Len() int { return len(s.times) }

// Errors calls use for each time with log(predicted ÷ published), under other values of quantities.
func (s *sampled) Errors(
	ctx context.Context, values map[string]float64, use func(t *published.Time, err float64),
) error {
	return s.errors(ctx, values, func(t *timed) []gemm.Config { return t.configs },
		func(t *timed, least float64, _ []arch.Estimate) { use(t.Time, math.Log(least)-t.log) })
}

// errors calls use for each time with the least prediction of the configurations of, and with all of them.
func (s *sampled) errors(
	ctx context.Context, values map[string]float64, of func(*timed) []gemm.Config,
	use func(t *timed, least float64, all []arch.Estimate),
) error {
	models := make([]*library.Model, len(s.models))
	for i, m := range s.models {
		of := values
		if s.shared != nil && m.Generation() != s.generation {
			of = maps.Clone(values)
			maps.DeleteFunc(of, func(name string, _ float64) bool { return !s.shared(name) })
		}
		models[i] = m.With(of)
	}
	var estimates []arch.Estimate
	for i := range s.times {
		t := &s.times[i]
		configs := of(t)
		if len(estimates) < len(configs) {
			estimates = make([]arch.Estimate, len(configs))
		}
		found := estimates[:len(configs)]
		m := models[t.model]
		if err := m.Estimate(ctx, found, t.problem, configs); err != nil {
			return err
		}
		least := math.Inf(1)
		for _, e := range found {
			if e.Reject == "" {
				least = min(least, float64(e.Cycles))
			}
		}
		use(t, least/float64(m.Describe().Clock), found)
	}
	return nil
}

const (
	// closeBy is how far values may move for the contenders to stay, as a logarithm: farther than a derivative moves them.
	closeBy = 0.0015
	// margin is how much slower than the fastest a contender may be. No time changes so much within closeBy.
	margin = 0.02
)

// Residuals are the errors. Of configurations that cannot be the fastest it asks once, and not for each derivative.
func (s *sampled) Residuals(ctx context.Context, values map[string]float64) ([]float64, error) {
	r := make([]float64, 0, len(s.times))
	count := func(t *timed, least float64) {
		for range 1 + t.more {
			r = append(r, math.Log(least)-t.log)
		}
	}
	if s.isNear(values) {
		err := s.errors(ctx, values, func(t *timed) []gemm.Config { return t.contenders },
			func(t *timed, least float64, _ []arch.Estimate) { count(t, least) })
		return r, err
	}
	err := s.errors(ctx, values, func(t *timed) []gemm.Config { return t.configs },
		func(t *timed, least float64, all []arch.Estimate) {
			count(t, least)
			t.contenders = t.contenders[:0]
			most := (1 + margin) * least * float64(s.models[t.model].Describe().Clock)
			for i := range all {
				if all[i].Reject == "" && float64(all[i].Cycles) <= most {
					t.contenders = append(t.contenders, t.configs[i])
				}
			}
		})
	s.near = maps.Clone(values)
	return r, err
}

func (s *sampled) isNear(values map[string]float64) bool {
	if s.near == nil {
		return false
	}
	for name, v := range values {
		if !(math.Abs(math.Log(v/s.near[name])) <= closeBy) {
			return false
		}
	}
	return true
}
