package host_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// The benchmarked provider: a built-in and its devices with as many candidates as a reference and as a refined model.
// The model of the fake costs about as much as a real one. To measure a real one, put its Builtin here.
var benched = struct {
	builtin host.Builtin
	arch    string
	devices []string
}{builtin("fake"), "fake", []string{"small", "large"}}

// BenchmarkSelect is one warm selection in a child process over gRPC with mutual TLS, as the command line does it. The
// median is reported beside the mean; the budget is 300 µs for 122 candidates and 500 µs for 1,000.
func BenchmarkSelect(b *testing.B) {
	h := newHost(b, host.Options{Builtins: []host.Builtin{benched.builtin}})
	for _, device := range benched.devices {
		for _, top := range []int{1, 0} {
			a := open(b, h, arch.OpenRequest{Arch: benched.arch, Device: device})
			c, err := a.Candidates(b.Context(), gemm.New(1, 1, 1), arch.Space{})
			must.Do(b, err)
			name := fmt.Sprintf("candidates=%d/top=%d", len(c.Configs), top)
			b.Run(name, func(b *testing.B) { benchmarkRank(b, a, top) })
		}
	}
}

func benchmarkRank(b *testing.B, a arch.Architecture, top int) {
	request := selector.Request{Problems: make([]gemm.Problem, 1), Top: top}
	times := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		request.Problems[0] = gemm.New(64+i%4096, 4096, 4096)
		begin := time.Now()
		results, err := selector.Rank(b.Context(), a, request)
		times = append(times, time.Since(begin))
		must.Need(b, err == nil && results[0].Err == nil, "%v %v", err, results)
	}
	reportMedian(b, times)
}

// BenchmarkBatch is the cost per problem when a request has many.
func BenchmarkBatch(b *testing.B) {
	h := newHost(b, host.Options{Builtins: []host.Builtin{benched.builtin}})
	a := open(b, h, arch.OpenRequest{Arch: benched.arch})
	request := selector.Request{Top: 1}
	for i := range 256 {
		request.Problems = append(request.Problems, gemm.New(64+i, 4096, 4096))
	}
	for b.Loop() {
		_, err := selector.Rank(b.Context(), a, request)
		must.Do(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(request.Problems)), "ns/problem")
}

// BenchmarkColdStart is the cost of a command: start a plugin, open an architecture, select once, stop the plugin.
// The median up to the answer is reported separately.
func BenchmarkColdStart(b *testing.B) {
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		h := host.New(host.Options{Builtins: []host.Builtin{benched.builtin}})
		a := open(b, h, arch.OpenRequest{Arch: benched.arch})
		_, err := selector.Rank(b.Context(), a, selector.Request{Problems: []gemm.Problem{problem},
			Top: 1})
		must.Do(b, err)
		times = append(times, time.Since(begin))
		_ = h.Close()
	}
	reportMedian(b, times)
}

func reportMedian(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "median-ns")
}
