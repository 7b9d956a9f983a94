package measure

import (
	"cmp"
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// arm is one entry of a block that is measured in turns.
type arm struct {
	m       dataset.Measurement
	kernel  exec.Kernel
	samples []exec.Sample
	// suspect is what speaks against the kernel. The pick shares it with the null arm.
	suspect *suspect
}

// failed reports whether an arm has failed and gets no more turns.
func (a *arm) failed() bool { return a.m.Status != dataset.OK }

func (a *arm) close() {
	if a.kernel != nil {
		_ = a.kernel.Close()
		a.kernel = nil
	}
}

// finals measures the pick, the fastest candidates of the sweep and the libraries again, in turns, so that any
// drift of the device affects all of them alike. The pick has a second entry, the null arm: the difference of its
// two times is the noise. If the data has a complete block of the same arms, nothing is measured.
func (s *Sweep) finals(ctx context.Context, p gemm.Problem, candidates []gemm.Config) error {
	arms := s.finalArms(p, candidates)
	if len(arms) == 0 || s.haveFinals(p, arms) {
		return nil
	}
	block, err := s.takeTurns(ctx, arms)
	if err != nil {
		return err
	}
	return s.keep(block...)
}

func entriesOf(p gemm.Problem, configs []gemm.Config) []dataset.Measurement {
	entries := make([]dataset.Measurement, len(configs))
	for i, c := range configs {
		entries[i] = dataset.Measurement{Problem: p, Config: c}
	}
	return entries
}

// takeTurns takes samples of the arms in turns until there are enough.
func (s *Sweep) takeTurns(ctx context.Context, arms []arm) ([]dataset.Measurement, error) {
	defer func() {
		for i := range arms {
			arms[i].close()
		}
	}()
	var used unit.Seconds
	for round := 0; round < minRounds || round < maxRounds && used < finalBudget; round++ {
		for i := range arms {
			a := &arms[i]
			if round%2 == 1 { // every other round backwards, so that no arm always follows the same one
				a = &arms[len(arms)-1-i]
			}
			if a.failed() {
				continue
			}
			before := len(a.samples)
			if err := s.takeTurn(ctx, arms, a); err != nil {
				return nil, err
			}
			if len(a.samples) > before {
				used += a.samples[before].Time
			}
		}
	}
	environment, err := s.environment(ctx)
	if err != nil {
		return nil, err
	}
	block := make([]dataset.Measurement, len(arms))
	for i := range arms {
		a := &arms[i]
		if !a.failed() {
			if err := setSamples(&a.m, a.samples); err != nil {
				return nil, err
			}
		}
		a.m.Environment = environment
		block[i] = a.m
	}
	return block, nil
}

// takeTurn takes one sample of an arm, or fails the arm. It returns without a sample if others are to be tried first.
func (s *Sweep) takeTurn(ctx context.Context, arms []arm, a *arm) error {
	for {
		err := s.control(ctx, a.suspect)
		if err == nil {
			if a.kernel == nil {
				s.attempts++ // a turn of a kernel that is there is too short to count
			}
			err = s.turn(ctx, a)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			a.suspect.times, a.suspect.weight = 0, 0
			s.recorded(&a.m)
			return nil
		}
		for i := range arms {
			arms[i].close() // the kernels are lost with the process
		}
		v, end := s.judge(ctx, a.suspect, true, err)
		switch {
		case end != nil:
			return end
		case v == later:
			return nil
		case v == guilty:
			for i := range arms {
				if arms[i].suspect == a.suspect {
					blame(&arms[i].m, a.suspect, err)
				}
			}
			return nil
		}
	}
}

// turn takes one sample of an arm and compiles its kernel first if needed. A fault of the configuration is entered
// in the arm.
func (s *Sweep) turn(ctx context.Context, a *arm) error {
	var err error
	if a.kernel == nil {
		b := s.compile(ctx, &a.m)
		if err = b.err; err == nil {
			a.kernel, a.m.Resources = b.kernel, b.kernel.Resources()
		}
	}
	if err == nil {
		taken := false
		err = a.kernel.Measure(ctx, s.options(finalWarmup), func(sample exec.Sample) bool {
			if !taken {
				a.samples, taken = append(a.samples, sample), true
			}
			return false
		})
	}
	if err != nil && diag.KindOf(err) == diag.Input {
		a.m.Status, a.m.Fault, a.m.Detail = dataset.Failed, dataset.FaultKernel, err.Error()
		return nil
	}
	return err
}

// finalArms returns the arms of the finals: the pick, the fastest candidates, the libraries, and the pick's null arm.
func (s *Sweep) finalArms(p gemm.Problem, candidates []gemm.Config) []arm {
	var found []dataset.Measurement // in predicted order
	for _, c := range candidates {
		if m, ok := s.Data.Find(p, c); ok && m.Status == dataset.OK {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil
	}
	pick := found[0].Config
	entries := []dataset.Measurement{{Problem: p, Config: pick}}
	fastest := slices.Clone(found)
	slices.SortStableFunc(fastest, func(a, b dataset.Measurement) int { return cmp.Compare(a.Median, b.Median) })
	for _, m := range fastest[:min(finalists, len(fastest))] {
		if m.Config != pick {
			entries = append(entries, dataset.Measurement{Problem: p, Config: m.Config})
		}
	}
	for _, name := range s.Libraries {
		if m, ok := s.Data.FindLibrary(p, name); ok && m.Status == dataset.OK {
			entries = append(entries, dataset.Measurement{Problem: p, Library: name})
		}
	}
	return s.arms(entries)
}

// arms returns an arm for each entry and the null arm of the first one. An entry says what to measure.
func (s *Sweep) arms(entries []dataset.Measurement) []arm {
	null := entries[0]
	null.Null = true
	arms := make([]arm, 0, len(entries)+1)
	for _, m := range append(slices.Clone(entries), null) {
		m.Phase, m.Status, m.Host = dataset.Final, dataset.OK, s.Host
		m.Block, m.Arms = s.Data.NextBlock(m.Problem), len(entries)+1
		arms = append(arms, arm{m: m, suspect: &suspect{}})
	}
	arms[len(arms)-1].suspect = arms[0].suspect
	return arms
}

// haveFinals reports whether a complete block has exactly these arms.
func (s *Sweep) haveFinals(p gemm.Problem, arms []arm) bool {
	return slices.ContainsFunc(s.Data.Finals(p), func(block []dataset.Measurement) bool {
		return len(block) == len(arms) && !slices.ContainsFunc(arms, func(a arm) bool {
			return !slices.ContainsFunc(block, func(m dataset.Measurement) bool {
				return m.Config == a.m.Config && m.Library == a.m.Library && m.Null == a.m.Null && !s.again(&m)
			})
		})
	})
}
