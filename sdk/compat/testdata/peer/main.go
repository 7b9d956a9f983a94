// Command peer is either end of the plugin boundary, of the revision that it is built in:
//
//	peer host PLUGIN LOCK   asks the plugin through the host, and prints the answers as JSON
//	peer here               prints the answers of the example in process
//	anything else           is the example plugin
//
// It keeps to what every revision has, and prints numbers and names rather than values of core's types, which gain
// fields. JSON has the shortest text that is read back to the same number, so equal text means equal bits.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() {
	here, err := provider()
	switch {
	case err != nil:
	case len(os.Args) == 4 && os.Args[1] == "host":
		h := host.New(host.Options{Plugins: os.Args[2:3], LockFile: os.Args[3]})
		err = answer(func(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) { return h.Open(ctx, r) })
		_ = h.Close()
	case len(os.Args) == 2 && os.Args[1] == "here":
		err = answer(here.Open)
	default:
		serve.Main(here)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type answers struct {
	ID, Model string
	Units     int
	Clock     float64
	Params    map[string]float64
	Terms     []string // names and formulas
	Problems  []problem
	Refused   []string
}

type problem struct {
	Configs  []string
	Rejected []string
	Cycles   []float64
	Bounds   []string
	Terms    []float64
	GroupM   []int
	Ranked   []ranked
}

type ranked struct {
	Index  int
	Config string
	Cycles float64
	Bound  string
	GroupM int
}

func answer(open func(context.Context, arch.OpenRequest) (arch.Architecture, error)) error {
	ctx := context.Background()
	a, err := open(ctx, arch.OpenRequest{Arch: "example", Device: "abstract"})
	if err != nil {
		return err
	}
	d := a.Describe()
	out := answers{ID: d.ID(), Model: d.Model, Units: d.Units, Clock: float64(d.Clock), Params: map[string]float64{}}
	for _, p := range d.Params {
		out.Params[p.Name] = p.Value
	}
	for _, t := range d.Terms {
		out.Terms = append(out.Terms, t.Name+" = "+t.Formula)
	}

	problems := []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(1, 5, 77), gemm.New(16, 8192, 8192),
		gemm.New(1000, 3000, 129)}
	problems[3].Batch = 7
	rankings, err := selector.Rank(ctx, a, selector.Request{Problems: problems})
	if err != nil {
		return err
	}
	for i, p := range problems {
		one, err := ask(ctx, a, p)
		if err != nil {
			return err
		}
		if rankings[i].Err != nil {
			return rankings[i].Err
		}
		for _, e := range rankings[i].Entries {
			one.Ranked = append(one.Ranked, ranked{e.Index, e.Config.String(), float64(e.Estimate.Cycles),
				e.Estimate.Bound.String(), e.Mapping.GroupM})
		}
		out.Problems = append(out.Problems, one)
	}

	// Refusals cross the boundary as they were said.
	bf16 := problems[0]
	bf16.DType = gemm.BF16
	_, err1 := a.Candidates(ctx, bf16, arch.Space{})
	_, err2 := open(ctx, arch.OpenRequest{Arch: "example", Options: map[string]string{"no": "such"}})
	for _, err := range []error{err1, err2} {
		if err == nil {
			return fmt.Errorf("what cannot be answered is")
		}
		out.Refused = append(out.Refused, err.Error())
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// ask makes every call about one problem.
func ask(ctx context.Context, a arch.Architecture, p gemm.Problem) (one problem, err error) {
	d := a.Describe()
	list, err := a.Candidates(ctx, p, arch.Space{})
	if err != nil {
		return one, err
	}
	for _, r := range list.Rejected {
		one.Rejected = append(one.Rejected, fmt.Sprintf("%d %s %s %s", r.Position, r.Config, r.Reason, r.Detail))
	}
	estimates := make([]arch.Estimate, len(list.Configs))
	if err := a.Estimate(ctx, estimates, p, list.Configs); err != nil {
		return one, err
	}
	one.Terms = make([]float64, len(list.Configs)*len(d.Terms))
	if err := a.Terms(ctx, one.Terms, p, list.Configs); err != nil {
		return one, err
	}
	for i, c := range list.Configs {
		one.Configs = append(one.Configs, c.String())
		one.Cycles = append(one.Cycles, float64(estimates[i].Cycles))
		one.Bounds = append(one.Bounds, estimates[i].Bound.String())
		m, err := a.Mapping(ctx, p, c)
		if err != nil {
			return one, err
		}
		one.GroupM = append(one.GroupM, m.GroupM)
	}
	return one, nil
}
