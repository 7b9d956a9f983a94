package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/strictjson"
)

// goldenLine is a line of a golden file: the best configurations for a problem, and their totals.
type goldenLine struct {
	Arch   string        `json:"arch"`
	Device string        `json:"device"`
	Model  string        `json:"model"`
	Kernel string        `json:"kernel"`
	M      int           `json:"m"`
	N      int           `json:"n"`
	K      int           `json:"k"`
	Batch  int           `json:"batch"`
	DType  string        `json:"dtype"`
	TransA bool          `json:"trans_a,omitempty"`
	TransB bool          `json:"trans_b,omitempty"`
	Best   []goldenEntry `json:"best"`
}

// goldenEntry is a configuration in the form that gemm.ParseConfig reads, with its total as the shortest decimal that
// gives the same bits.
type goldenEntry struct {
	Config string  `json:"config"`
	Cycles float64 `json:"cycles"`
}

// goldenBest is the number of configurations written per problem.
const goldenBest = 5

// checkGolden ranks the problems of the file and compares the rankings.
func checkGolden(ctx context.Context, s *subject, found *findings) error {
	switch {
	case s.Golden == "":
		return skipped("there is no golden file")
	case s.UpdateGolden:
		return s.writeGolden(ctx, found)
	}
	text, err := os.ReadFile(s.Golden)
	if err != nil {
		return fmt.Errorf("the golden file cannot be read: %w; update it first", err)
	}
	lines := 0
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for number := 1; scanner.Scan(); number++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		lines++
		var want goldenLine
		if err := strictjson.Unmarshal(scanner.Bytes(), &want); err != nil {
			return fmt.Errorf("%s:%d: %w", s.Golden, number, err)
		}
		dtype, err := gemm.ParseDType(want.DType)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", s.Golden, number, err)
		}
		p := gemm.New(want.M, want.N, want.K)
		p.Batch, p.DType = want.Batch, dtype
		p.SetTrans(want.TransA, want.TransB)
		a, err := s.client.Open(ctx, arch.OpenRequest{Arch: want.Arch, Device: want.Device, Model: want.Model,
			Kernel: want.Kernel})
		if err != nil {
			found.add("%s:%d: %s", s.Golden, number, err)
			continue
		}
		got, err := goldenOf(ctx, &target{Architecture: a, kernel: want.Kernel}, p, len(want.Best))
		if err != nil {
			found.add("%s:%d: %s: %s", s.Golden, number, p, err)
			continue
		}
		for i, w := range want.Best {
			if i >= len(got.Best) {
				found.add("%s:%d: %s@%s %s, %s: only %d configurations are feasible", s.Golden, number,
					want.Arch, want.Device,
					want.Model, p, len(got.Best))
				break
			}
			w.Config = written(a.Describe(), want.Kernel, w.Config)
			if g := got.Best[i]; g.Config != w.Config || math.Float64bits(g.Cycles) != math.Float64bits(w.Cycles) {
				found.add("%s:%d: %s@%s %s, %s: place %d is %s with %v cycles, and was %s with %v", s.Golden,
					number, want.Arch,
					want.Device, want.Model, p, i+1, g.Config, g.Cycles, w.Config, w.Cycles)
				break
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("%s: %w", s.Golden, err)
	}
	if lines == 0 {
		found.add("%s is empty", s.Golden)
	}
	return nil
}

// written returns a configuration as it is written now: golden files may have an earlier text, which is still read.
func written(d *arch.Description, kernel, text string) string {
	family, err := d.Kernel(kernel)
	if err != nil {
		return text
	}
	c, err := gemm.ParseConfig(text, gemm.Config{}, d.Axes(family)...)
	if err != nil {
		return text
	}
	return c.String()
}

func goldenOf(ctx context.Context, t *target, p gemm.Problem, best int) (goldenLine, error) {
	results, err := selector.Rank(ctx, here{t.Architecture}, selector.Request{Problems: []gemm.Problem{p},
		Space: t.space(), Top: best})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return goldenLine{}, err
	}
	d := t.Describe()
	line := goldenLine{Arch: d.Arch, Device: d.Device, Model: d.Model, Kernel: t.kernel,
		M: p.M, N: p.N, K: p.K, Batch: p.Batch, DType: p.DType.String(), TransA: p.TransA(), TransB: p.TransB()}
	for _, e := range results[0].Entries {
		line.Best = append(line.Best, goldenEntry{e.Config.String(), float64(e.Estimate.Cycles)})
	}
	return line, nil
}

// writeGolden writes the current rankings.
func (s *subject) writeGolden(ctx context.Context, found *findings) error {
	cases, err := s.answered(ctx)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	lines := 0
	for _, c := range cases {
		if len(c.feasible(1)) == 0 {
			continue
		}
		line, err := goldenOf(ctx, c.target, c.problem, goldenBest)
		if err != nil {
			return err
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
		lines++
	}
	if err := os.WriteFile(s.Golden, text.Bytes(), 0o644); err != nil {
		return err
	}
	found.add("%s is rewritten with %d lines: look at the difference, and check again without updating",
		s.Golden, lines)
	return nil
}
