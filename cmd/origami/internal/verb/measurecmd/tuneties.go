package measurecmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/tune"
)

// tied is a configuration that is as fast as a pick, as far as is known, in JSON.
type tied struct {
	Config  string  `json:"config"`  // the configuration
	Seconds float64 `json:"seconds"` // its measured time
	// by what share the two times may differ by chance
	Noise ask.Number `json:"noise"`
	// whether both were measured again, in turns
	Repeated bool `json:"repeated"`
}

// mostRepeated is how many configurations are measured again beside a pick.
const mostRepeated = 3

// repeat spends what is left of a budget on ties: the pick and the fastest that are tied with it are measured again, in
// turns. A folder that was tuned has what earlier runs repeated. What is compared is measured on one GPU.
func (s *tuning) repeat(ctx context.Context, t *tune.Tuner) error {
	if s.known {
		return nil
	}
	if s.sweep != nil && (s.o.Most > 0 || s.o.Budget > 0) {
		if err := s.repeatTies(ctx, t); err != nil {
			return err
		}
	}
	for i := range t.Picks {
		p, size := &t.Picks[i], &t.Sizes[i]
		if p.Time == 0 {
			continue
		}
		block := s.block(t, i)
		s.repeats += len(block)
		if choice, _ := measure.Choose(block); choice >= 0 {
			s.blocks[i] = block
			p.Time = block[choice].Median
			p.Candidate = slices.IndexFunc(size.Candidates, func(c tune.Candidate) bool {
				return c.Config == block[choice].Config
			})
		}
	}
	return nil
}

// repeatTies measures what was not repeated yet, as far as the budget goes.
func (s *tuning) repeatTies(ctx context.Context, t *tune.Tuner) error {
	spent, begun := len(t.Log), 0
	for i := range t.Picks {
		p, size := &t.Picks[i], &t.Sizes[i]
		if p.Time == 0 {
			continue
		}
		if block := s.block(t, i); block != nil {
			spent += len(block)
			continue
		}
		configs := []gemm.Config{size.Candidates[p.Candidate].Config}
		for _, m := range s.beside(t, i) {
			configs = append(configs, m.Config)
		}
		configs = configs[:min(1+mostRepeated, len(configs))]
		arms := len(configs) + 1 // with the null arm
		if len(configs) == 1 || s.o.Most > 0 && spent+arms > s.o.Most ||
			s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget {
			continue
		}
		spent += arms
		if s.fleet == nil {
			if err := s.sweep.Repeat(ctx, size.Problem, configs); err != nil {
				return err
			}
			continue
		}
		s.fleet.Repeat(size.Problem, configs)
		if begun++; begun%(batch*len(s.gpus)) == 0 { // so few that a budget of time is held
			if err := s.settled(ctx); err != nil {
				return err
			}
		}
	}
	return s.settled(ctx)
}

// settled waits until all that GPUs repeat is confirmed.
func (s *tuning) settled(ctx context.Context) error {
	for s.fleet != nil {
		if done, err := s.fleet.Wait(ctx); err != nil || len(done) == 0 {
			return err
		}
	}
	return nil
}

// block returns the last block of measurements in turns of a size that is about its pick, nil without one.
func (s *tuning) block(t *tune.Tuner, i int) []dataset.Measurement {
	size := &t.Sizes[i]
	pick := size.Candidates[t.Picks[i].Candidate].Config
	for _, block := range slices.Backward(s.data.Finals(size.Problem)) {
		unknown := func(m dataset.Measurement) bool {
			return !slices.ContainsFunc(size.Candidates, func(c tune.Candidate) bool { return c.Config == m.Config })
		}
		if block[0].Config == pick && block[len(block)-1].Null && !slices.ContainsFunc(block, unknown) {
			return block
		}
	}
	return nil
}

// beside returns the measurements of a size whose times the noise cannot tell from that of the pick, the fastest first.
func (s *tuning) beside(t *tune.Tuner, i int) (list []dataset.Measurement) {
	size := &t.Sizes[i]
	pick, there := s.recordedAt(t, tune.Task{Size: i, Candidate: t.Picks[i].Candidate})
	if !there {
		return nil
	}
	for _, m := range t.Log {
		if m.Size != i || m.Time <= 0 || m.Candidate == t.Picks[i].Candidate {
			continue
		}
		other, there := s.recordedAt(t, m.Task)
		other.Config = size.Candidates[m.Candidate].Config
		if there && float64(other.Median/pick.Median)-1 <= measure.Noise(&pick, &other) {
			list = append(list, other)
		}
	}
	slices.SortStableFunc(list, func(a, b dataset.Measurement) int { return cmp.Compare(a.Median, b.Median) })
	return list
}

// ties lists what is as fast as the pick of a size, as far as is known.
func (s *tuning) ties(t *tune.Tuner, i int) []tied {
	out := []tied{}
	if t.Picks[i].Time == 0 {
		return out
	}
	if block := s.blocks[i]; block != nil {
		choice, noise := measure.Choose(block)
		for j := range block {
			m := &block[j]
			if m.Status == dataset.OK && !m.Null && j != choice && float64(m.Median/block[choice].Median)-1 <= noise {
				out = append(out, tied{m.Config.String(), float64(m.Median), ask.Number(noise), true})
			}
		}
		return out
	}
	pick, _ := s.recordedAt(t, tune.Task{Size: i, Candidate: t.Picks[i].Candidate})
	for _, m := range s.beside(t, i) {
		out = append(out, tied{m.Config.String(), float64(m.Median), ask.Number(measure.Noise(&pick, &m)), false})
	}
	return out
}

// tieCell says what a pick is tied with, for people.
func tieCell(list []tied) string {
	if len(list) == 0 {
		return ""
	}
	noise := list[0].Noise
	for _, x := range list {
		noise = max(noise, x.Noise)
	}
	more := ""
	if len(list) > 1 {
		more = fmt.Sprintf(" and %d more", len(list)-1)
	}
	return fmt.Sprintf("%s%s within the noise of %s", list[0].Config, more, digits.Percent(float64(noise)))
}
