package conformance

import (
	"bytes"
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
func checkGolden(r *run) {
	if r.skip(r.Golden == "", "there is no golden file") {
		return
	}
	if r.UpdateGolden {
		r.stop(r.writeGolden())
		return
	}
	content, err := os.ReadFile(r.Golden)
	if err != nil {
		r.stop(fmt.Errorf("the golden file cannot be read: %w; update it first", err))
		return
	}
	r.when(len(bytes.TrimSpace(content)) == 0, "%s is empty", r.Golden)
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if len(bytes.TrimSpace(line)) > 0 && r.err == nil {
			r.checkGoldenLine(fmt.Sprintf("%s:%d", r.Golden, number), line)
		}
	}
}

// checkGoldenLine ranks the problem of a line.
func (r *run) checkGoldenLine(where string, text []byte) {
	var want goldenLine
	err := strictjson.Unmarshal(text, &want)
	var dtype gemm.DType
	if err == nil {
		dtype, err = gemm.ParseDType(want.DType)
	}
	if err != nil {
		r.stop(fmt.Errorf("%s: %w", where, err))
		return
	}
	p := gemm.New(want.M, want.N, want.K)
	p.Batch, p.DType = want.Batch, dtype
	p.SetTrans(want.TransA, want.TransB)
	a, err := r.client.Open(r, arch.OpenRequest{Arch: want.Arch, Device: want.Device, Model: want.Model,
		Kernel: want.Kernel})
	if r.fails(err, "%s", where) {
		return
	}
	got, err := r.golden(&target{Architecture: a, kernel: want.Kernel}, p, len(want.Best))
	if r.fails(err, "%s: %s", where, p) {
		return
	}
	where = fmt.Sprintf("%s: %s@%s %s, %s", where, want.Arch, want.Device, want.Model, p)
	for i, w := range want.Best {
		if r.when(i >= len(got.Best), "%s: only %d configurations are feasible", where, len(got.Best)) {
			return
		}
		g := got.Best[i]
		if r.when(g.Config != w.Config || math.Float64bits(g.Cycles) != math.Float64bits(w.Cycles),
			"%s: place %d is %s with %v cycles, and was %s with %v", where, i+1, g.Config, g.Cycles, w.Config, w.Cycles) {
			return
		}
	}
}

// golden ranks a problem.
func (r *run) golden(t *target, p gemm.Problem, best int) (goldenLine, error) {
	results, err := selector.Rank(r, here{t.Architecture}, selector.Request{Problems: []gemm.Problem{p},
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
func (r *run) writeGolden() error {
	cases, err := r.answered()
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
		line, err := r.golden(c.target, c.problem, goldenBest)
		if err != nil {
			return err
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
		lines++
	}
	r.when(true, "%s is rewritten with %d lines: look at the difference, and check again without updating", r.Golden, lines)
	return os.WriteFile(r.Golden, text.Bytes(), 0o644)
}
