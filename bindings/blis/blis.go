// Package blis is a latency model of BLIS (github.com/inference-sim/inference-sim, sim/latency_model.go): it has the
// methods of sim.LatencyModel for any type of requests, so that this module does not import the simulator.
//
//	model, err := blis.New(ctx, "h200", configJSON, serving.Layout{TP: 8, Server: "vllm"},
//		func(r *sim.Request) (fresh, past int) { return r.NumNewTokens, int(r.ProgressIndex) })
//	var latency sim.LatencyModel = model
package blis

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/forward"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/serving"
)

// Model is a language model on a device, for requests of type R. It is for one goroutine, as a simulation is.
type Model[R any] struct {
	steps *ask.Steps
	plan  forward.Plan
	read  func(R) (fresh, past int)
}

// New returns a model from a config.json and a device as in `--arch`. read says how many tokens a request adds in a
// step, and how many it had before.
func New[R any](
	ctx context.Context, arch string, config []byte, layout serving.Layout, read func(R) (fresh, past int),
) (*Model[R], error) {
	c, err := hf.Decode("config.json", config)
	if err != nil {
		return nil, err
	}
	plan, err := serving.New("config.json", c, layout)
	if err != nil {
		return nil, err
	}
	providers, err := builtins.Providers()
	if err != nil {
		return nil, err
	}
	source := models.Providers(providers)
	targets, err := models.Parse([]string{arch}, "")
	if err != nil {
		return nil, err
	}
	targets[0].Kernel = "library"
	found, err := models.Find(ctx, source, &targets[0])
	if err != nil {
		return nil, err
	}
	opened, err := found.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	side, err := ask.NewContender(source, &found, opened)
	if err != nil {
		return nil, err
	}
	m := &Model[R]{steps: ask.StepsOn(&side), plan: plan, read: read}
	_, _, err = m.steps.Pass(ctx, plan, forward.Pass{Sequences: 1, Context: 1}) // what has no time is said here
	return m, err
}

// StepTime is the time of a step of a batch in microseconds, at least 1.
func (m *Model[R]) StepTime(batch []R) int64 {
	requests := make([][2]int, len(batch))
	for i, r := range batch {
		requests[i][0], requests[i][1] = m.read(r)
	}
	pass := forward.PassOf(requests)
	if pass.Tokens() == 0 {
		return 1
	}
	seconds, _, err := m.steps.Pass(context.Background(), m.plan, pass)
	if err != nil { // New has answered a question; the interface has no error
		return math.MaxInt64
	}
	return max(1, int64(math.Min(1e6*float64(seconds), 1<<62)))
}

// QueueingTime is 0: the time of a step has the server's part.
func (*Model[R]) QueueingTime(R) int64 { return 0 }

// OutputTokenProcessingTime is 0, as QueueingTime.
func (*Model[R]) OutputTokenProcessingTime() int64 { return 0 }

// PostDecodeFixedOverhead is 0, as QueueingTime.
func (*Model[R]) PostDecodeFixedOverhead() int64 { return 0 }
