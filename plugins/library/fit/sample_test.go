// Package fit finds the quantities of the library model that reproduce published times best.
package fit_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// opener opens the model on a device under options.
type opener func(device string, options map[string]string) (*library.Model, error)

// sampled is published times.
type sampled struct {
	models []*library.Model
	times  []timed
}

// timed is a published time, with the model that predicts it.
type timed struct {
	*published.Time
	model   int
	problem gemm.Problem
	configs []gemm.Config
	log     float64
}

// readSample returns the times that keep accepts and the model takes, about most of each series at most: those whose
// shapes have the lowest hash, so that series have the same shapes.
func readSample(open opener, keep func(*published.Time) bool, most int) (*sampled, error) {
	s := &sampled{}
	models := map[string]int{}
	lists := map[string][]gemm.Config{}
	bySeries := map[*published.Series][]timed{}
	all := published.Times()
	for i := range all {
		t := &all[i]
		if t.Device == "" || !keep(t) {
			continue
		}
		options, ok := optionsOf(t.Series)
		p, err := t.Problem()
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
	for i := range all {
		list := bySeries[all[i].Series]
		delete(bySeries, all[i].Series)
		s.times = append(s.times, thinned(list, most)...)
	}
	return s, nil
}

// optionsOf returns the options of the model for the conditions of a series, and false if the model has none for them.
func optionsOf(s *published.Series) (map[string]string, bool) {
	scheme := s.Scheme
	if scheme == published.NoScheme {
		scheme = published.TensorScheme
	}
	given := map[string]string{"timing": string(s.Timing), "scheme": scheme, "release": s.Release}
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
	return &sampled{models: s.models, times: kept}
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

// Len is the number of times.
func (s *sampled) Len() int { return len(s.times) }

// Errors calls use for each time with log(predicted ÷ published), under other values of quantities.
func (s *sampled) Errors(
	ctx context.Context, values map[string]float64, use func(t *published.Time, err float64),
) error {
	models := make([]*library.Model, len(s.models))
	for i, m := range s.models {
		var err error
		if models[i], err = m.With(values); err != nil {
			return err
		}
	}
	var estimates []arch.Estimate
	for i := range s.times {
		t := &s.times[i]
		if len(estimates) < len(t.configs) {
			estimates = make([]arch.Estimate, len(t.configs))
		}
		found := estimates[:len(t.configs)]
		m := models[t.model]
		if err := m.Estimate(ctx, found, t.problem, t.configs); err != nil {
			return err
		}
		least := math.Inf(1)
		for _, e := range found {
			if e.Reject == "" {
				least = min(least, float64(e.Cycles))
			}
		}
		use(t.Time, math.Log(least/float64(m.Describe().Clock))-t.log)
	}
	return nil
}

// Residuals are the errors.
func (s *sampled) Residuals(ctx context.Context, values map[string]float64) ([]float64, error) {
	r := make([]float64, 0, len(s.times))
	err := s.Errors(ctx, values, func(_ *published.Time, e float64) { r = append(r, e) })
	return r, err
}
