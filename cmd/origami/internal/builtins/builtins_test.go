package builtins

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	shipped "github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/sdk/conformance"
)

// TestMain makes this binary serve the built-in plugins, as origami does when it starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && slices.Equal(os.Args[1:3], []string{"plugin", "serve"}) {
		if err := Serve(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every architecture and device of every built-in plugin answers through its process as it does in this one.
func TestPluginsAnswerAsInProcess(t *testing.T) {
	ctx := context.Background()
	processes := must.Get(Connect(ctx, config.Settings{}, nil))(t)
	defer func() {
		err := processes.Close()
		must.That(t, err == nil, "%v", err)
	}()
	inProcess := must.Get(Connect(ctx, config.Settings{InProcess: true}, nil))(t)
	request := selector.Request{Problems: []gemm.Problem{gemm.New(1, 1, 1), gemm.New(100, 3000, 777),
		gemm.New(8192, 8192, 8192), gemm.New(65536, 16, 128)}}
	manifests := must.Get(processes.Manifests(ctx))(t)
	for _, m := range manifests {
		for _, a := range m.Archs {
			for i, d := range a.Devices {
				if i > 0 && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
					continue // they differ in numbers alone
				}
				r := arch.OpenRequest{Arch: a.ID, Device: d.ID}
				far := must.Get(processes.Open(ctx, r))(t)
				near := must.Get(inProcess.Open(ctx, r))(t)
				request := request
				if d := near.Describe(); d.SupportsTypes(d.Kernels[0], &request.Problems[0]) != nil { // no fp16
					request.Problems = slices.Clone(request.Problems)
					for i := range request.Problems {
						request.Problems[i].DType, request.Problems[i].Out = gemm.FP32, 0
					}
				}
				got, farLists := must.Two(selector.RankListed(ctx, far, request))(t)
				want, nearLists := must.Two(selector.RankListed(ctx, near, request))(t)
				for i := range want {
					if !slices.Equal(got[i].Entries, want[i].Entries) || got[i].Feasible != want[i].Feasible ||
						len(want[i].Entries) == 0 {
						t.Errorf("%s@%s, %s: the plugin's ranking differs", a.ID, d.ID, request.Problems[i])
						continue
					}
					e := want[i].Entries[0]
					listed, err1 := nearLists.Candidate(ctx, request.Problems[i], e.Index, e.Config)
					alone, err2 := farLists.Candidate(ctx, request.Problems[i], e.Index, e.Config)
					if err1 != nil || err2 != nil || alone != listed {
						t.Errorf("%s@%s, %s: the candidate is %s (%v), listed alone %s (%v)", a.ID, d.ID,
							request.Problems[i], listed, err1, alone, err2)
					}
				}
			}
		}
	}
}

// BenchmarkWarmSelect is one select, both phases, in the process of a built-in plugin that is running. The median is
// reported beside the mean.
func BenchmarkWarmSelect(b *testing.B) {
	ctx := context.Background()
	h := must.Get(Connect(ctx, config.Settings{}, nil))(b)
	defer func() { _ = h.Close() }()
	for _, id := range []string{"sm89", "gfx942"} {
		b.Run(id, func(b *testing.B) {
			a := must.Get(h.Open(ctx, arch.OpenRequest{Arch: id}))(b)
			times := make([]time.Duration, 0, 1<<16)
			request := selector.Request{Problems: make([]gemm.Problem, 1), Top: 1}
			for i := 0; b.Loop(); i++ {
				request.Problems[0] = gemm.New(64+i%4096, 4096, 4096)
				begin := time.Now()
				_, err := selector.Rank(ctx, a, request)
				must.Do(b, err)
				times = append(times, time.Since(begin))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns/median")
		})
	}
}

var update = flag.Bool("update", false, "rewrite the rankings in testdata")

// Every built-in plugin is what a plugin must be, and ranks as it did. The devices of an architecture differ in numbers
// alone: the rankings are of all, the other checks of one each, and of all with ORIGAMI_TEST_ALL=1.
func TestConformance(t *testing.T) {
	for _, b := range shipped.Plugins {
		t.Run(b.Name, func(t *testing.T) {
			p := must.Get(b.Provider())(t)
			conformance.Architecture(t, p, conformance.Options{Golden: filepath.Join("testdata", b.Name+".jsonl"),
				UpdateGolden: *update,
				Short:        !*update && os.Getenv("ORIGAMI_TEST_ALL") != "1"})
		})
	}
}
