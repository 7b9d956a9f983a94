package measurecmd

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	if s.recording != nil && (s.o.Most > 0 || s.o.Budget > 0) {
		if err := s.repeatTies(ctx, t); err != nil {
			return err
		}
	}
	for i := range t.Picks {
		block := s.block(t, i)
		s.repeats += len(block)
		if choice, _ := measure.Choose(block); choice >= 0 {
			s.blocks[i] = block
			t.Picks[i].Time = block[choice].Median
			t.Picks[i].Candidate = slices.IndexFunc(t.Sizes[i].Candidates, func(c tune.Candidate) bool {
				return c.Config == block[choice].Config
			})
		}
	}
	return nil
}

// repeatTies measures what was not repeated yet, as far as the budget goes.
func (s *tuning) repeatTies(ctx context.Context, t *tune.Tuner) error {
	spent := len(t.Log)
	again := map[int][]gemm.Config{}
	for i := range t.Picks {
		if block := s.block(t, i); block != nil {
			spent += len(block)
			continue
		}
		ties := s.recordedTies(t, i)
		ties = ties[:min(mostRepeated, len(ties))]
		if arms := len(ties) + 2; len(ties) > 0 && (s.o.Most == 0 || spent+arms <= s.o.Most) { // with pick and null arm
			again[i] = []gemm.Config{t.Sizes[i].Candidates[t.Picks[i].Candidate].Config}
			for _, m := range ties {
				again[i] = append(again[i], m.Config)
			}
			spent += arms
		}
	}
	together := batch * len(s.o.gpus) // so few that a budget of time is held
	if s.recording.Alone {
		together = 1
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(again)), together) {
		if s.spent() {
			return nil
		}
		for _, i := range some {
			s.recording.Repeat(t.Sizes[i].Problem, again[i])
		}
		for {
			if done, err := s.recording.Wait(ctx); err != nil {
				return err
			} else if len(done) == 0 {
				break
			}
		}
	}
	return nil
}

// block returns the last block of measurements in turns of a size that is about its pick, nil without one.
func (s *tuning) block(t *tune.Tuner, i int) []dataset.Measurement {
	if t.Picks[i].Time == 0 {
		return nil
	}
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

// recordedTies returns what is tied with the pick of a size, by times that were measured one after the other.
func (s *tuning) recordedTies(t *tune.Tuner, i int) []measure.Tie {
	if t.Picks[i].Time == 0 {
		return nil
	}
	at := func(task tune.Task) dataset.Measurement {
		m, _ := s.recordedAt(t, task)
		m.Config = t.Sizes[i].Candidates[task.Candidate].Config // in the launch order of the candidate
		return m
	}
	pick := at(tune.Task{Size: i, Candidate: t.Picks[i].Candidate})
	var others []dataset.Measurement
	for _, m := range t.Log {
		if m.Size == i && m.Time > 0 {
			others = append(others, at(m.Task))
		}
	}
	return measure.Ties(&pick, others, measure.Noise)
}

// ties lists what is as fast as the pick of a size, as far as is known.
func (s *tuning) ties(t *tune.Tuner, i int) []tied {
	ties, block := s.recordedTies(t, i), s.blocks[i]
	if block != nil {
		choice, noise := measure.Choose(block)
		ties = measure.Ties(&block[choice], block, func(_, _ *dataset.Measurement) float64 { return noise })
	}
	out := []tied{}
	for _, m := range ties {
		out = append(out, tied{m.Config.String(), float64(m.Median), ask.Number(m.Noise), block != nil})
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
