package conformance

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// checkAnswers checks the results of answered. The client itself refuses totals that are not finite and positive, a
// rejected configuration without a reason or with a total, and positions that do not ascend.
func checkAnswers(ctx context.Context, s *subject, found *findings) error {
	cases, err := s.answered(ctx)
	if err != nil && len(s.problems) == 0 {
		return err
	}
	for _, u := range s.problems {
		// A model may decline a problem with a reason.
		if diag.KindOf(u) != diag.Input {
			found.add("%s", u)
		}
	}
	answers := map[*target]bool{}
	for _, c := range cases {
		list := c.candidates
		seen := map[gemm.Config]bool{}
		for _, config := range list.Configs {
			if err := c.Describe().CheckConfig(&config); err != nil {
				found.add("%s: candidate %v", c, err)
			}
			if config.Kernel != c.kernel {
				found.add("%s: candidate %s is of kernel family %q", c, config, config.Kernel)
			}
			if seen[config] {
				found.add("%s: candidate %s comes twice", c, config)
			}
			seen[config] = true
		}
		for _, r := range list.Rejected {
			if seen[r.Config] {
				found.add("%s: %s is a candidate and rejected (%s)", c, r.Config, r.Reason)
			}
		}
		if len(c.feasible(1)) > 0 {
			answers[c.target] = true
		}
	}
	silent := func(t *target, why string) {
		if !answers[t] {
			answers[t] = true // report it once
			found.add("%s: %s", t, why)
		}
	}
	for _, c := range cases {
		silent(c.target, "no candidate is feasible for any problem")
	}
	for _, u := range s.problems {
		if diag.KindOf(u) == diag.Input {
			silent(u.target, "every problem is declined, the first with: "+oneLine(u.err))
		}
	}
	return nil
}

// checkRejected estimates the configurations that Candidates has rejected. Some reasons appear only then.
func checkRejected(ctx context.Context, s *subject, found *findings, cases []*testcase) error {
	any := false
	for _, c := range cases {
		var configs []gemm.Config
		for _, r := range spread(c.candidates.Rejected, 64) {
			configs = append(configs, r.Config)
			if r.Detail == "" {
				found.add("%s: %s is rejected (%s) without numbers", c, r.Config, r.Reason)
			}
		}
		if len(configs) == 0 {
			continue
		}
		any = true
		est := make([]arch.Estimate, len(configs))
		if err := c.Estimate(ctx, est, c.problem, configs); err != nil {
			found.add("%s: estimating rejected configurations: %s", c, err)
			continue
		}
		for i := range est {
			if est[i].Reject == "" {
				found.add("%s: Candidates rejects %s and Estimate gives it %v cycles", c, configs[i],
					float64(est[i].Cycles))
			}
		}
	}
	if !any {
		return skipped("nothing is rejected")
	}
	return nil
}

func checkDeterminism(ctx context.Context, s *subject, found *findings, c *testcase) {
	for _, how := range []string{"again", "after it was closed"} {
		if how != "again" {
			if err := c.Close(ctx); err != nil {
				found.add("%s: %s", c, err)
			}
		}
		list, err := c.Candidates(ctx, c.problem, c.space())
		if err != nil {
			found.add("%s: asked %s: %s", c, how, err)
			continue
		}
		if !slices.Equal(list.Configs, c.candidates.Configs) || !slices.Equal(list.Rejected,
			c.candidates.Rejected) {
			found.add("%s: asked %s, the candidates differ", c, how)
			continue
		}
		est := make([]arch.Estimate, len(list.Configs))
		if err := c.Estimate(ctx, est, c.problem, list.Configs); err != nil {
			found.add("%s: asked %s: %s", c, how, err)
			continue
		}
		compare(found, c, "asked "+how, est, identity(len(est)))
	}
}

func identity(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// compare adds a finding for the first estimate that differs from that of the same candidate in the first answer.
func compare(found *findings, c *testcase, how string, got []arch.Estimate, order []int) {
	for i, j := range order {
		if !sameBits(got[i], c.estimates[j]) {
			found.add("%s, %s: %s, it is %s and was %s", c, c.candidates.Configs[j], how, text(got[i]),
				text(c.estimates[j]))
			return
		}
	}
}

func checkOrder(ctx context.Context, _ *subject, found *findings, cases []*testcase) error {
	rng := rand.New(rand.NewPCG(1, 2)) // a fixed random order
	for _, c := range cases {
		configs := c.candidates.Configs
		order := rng.Perm(len(configs))
		ask := func(how string, order []int) {
			some, est := make([]gemm.Config, len(order)), make([]arch.Estimate, len(order))
			for i, j := range order {
				some[i] = configs[j]
			}
			if err := c.Estimate(ctx, est, c.problem, some); err != nil {
				found.add("%s: %s: %s", c, how, err)
				return
			}
			compare(found, c, how, est, order)
		}
		ask("in another order", order)
		ask("in part of the list", order[:len(order)/2])
		ask("listed twice", []int{order[0], order[0]})
		for _, i := range order[:min(4, len(order))] {
			ask("alone", []int{i})
		}
	}
	return nil
}

// checkK uses whole K steps, so that padding has no effect.
func checkK(ctx context.Context, s *subject, found *findings, cases []*testcase) error {
	return s.monotone(ctx, found, cases, arch.DimK)
}

func checkDeclared(ctx context.Context, s *subject, found *findings, cases []*testcase) error {
	return s.monotone(ctx, found, cases, arch.DimM, arch.DimN)
}

// monotone checks that the predicted time of a configuration does not fall when a dimension grows by whole blocks,
// for the dimensions that the models declare monotone.
func (s *subject) monotone(ctx context.Context, found *findings, cases []*testcase, dims ...arch.Dim) error {
	declared := false
	for _, c := range cases {
		for _, dim := range dims {
			if declared := c.Describe().Monotone; dim == arch.DimK && slices.Contains(declared, arch.DimNone) ||
				dim != arch.DimK &&
					!slices.Contains(declared, dim) {
				continue
			}
			declared = true
			for _, i := range c.feasible(6) {
				config := c.candidates.Configs[i]
				previous, at := 0.0, 0
				for _, size := range s.sizes(dim, config) {
					p := c.problem
					*map[arch.Dim]*int{arch.DimM: &p.M, arch.DimN: &p.N, arch.DimK: &p.K}[dim] = size
					if p.Validate() != nil {
						break
					}
					est := make([]arch.Estimate, 1)
					if err := c.Estimate(ctx, est, p, []gemm.Config{config}); err != nil {
						found.add("%s, %s, %s = %d: %s", c, config, dim, size, err)
						break
					}
					if est[0].Reject != "" {
						continue // a size may rule a configuration out
					}
					cycles := float64(est[0].Cycles)
					if cycles < previous {
						found.add("%s, %s: %v cycles with %s = %d, and %v with %d", c, config, cycles, dim,
							size, previous, at)
						break
					}
					previous, at = cycles, size
				}
			}
		}
	}
	if !declared {
		return skipped("the models do not declare it (arch.Description.Monotone)")
	}
	return nil
}

// sizes are ascending multiples of the block, some close together and some far apart.
func (s *subject) sizes(dim arch.Dim, c gemm.Config) []int {
	block := map[arch.Dim]int{arch.DimM: c.BlockM, arch.DimN: c.BlockN, arch.DimK: c.BlockK * max(c.SplitK, 1)}[dim]
	list := []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 129, 250, 500, 1000}
	if s.Short {
		list = []int{1, 2, 3, 5, 8, 17, 64, 127, 500}
	}
	for i := range list {
		list[i] *= block
	}
	return list
}

func checkMapping(ctx context.Context, s *subject, found *findings, c *testcase) {
	for _, i := range c.feasible(3) {
		config := c.candidates.Configs[i]
		m, err := c.Mapping(ctx, c.problem, config)
		if err != nil {
			found.add("%s, %s: %s", c, config, err)
			continue
		}
		least := 1
		if c.Describe().Opaque(config.Kernel) {
			least = 0
		}
		if m.GroupM < least || m.GroupM > gemm.MaxConfigNumber || m.XCDs < 0 ||
			m.XCDs > max(c.Describe().Partitions, 0) ||
			m.Chunk < 0 {
			found.add("%s, %s: a launch order of %+v; GroupM is %d to %d, XCDs 0 to the %d partitions, "+
				"Chunk at least 0", c,
				config, m, least, gemm.MaxConfigNumber, c.Describe().Partitions)
		}
		if again, err := c.Mapping(ctx, c.problem, config); err != nil || again != m {
			found.add("%s, %s: the launch order is %+v, and asked again %+v (%v)", c, config, m, again, err)
		}
	}
}
