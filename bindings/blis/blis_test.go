package blis_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/bindings/blis"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/serving"
)

// request has the fields of BLIS's sim.Request that a latency model reads, and latencyModel is its sim.LatencyModel:
// github.com/inference-sim/inference-sim at f90a1e3a, sim/request.go and sim/latency_model.go (Apache-2.0).
type request struct {
	ProgressIndex int64
	NumNewTokens  int
}

type latencyModel interface {
	StepTime(batch []*request) int64
	QueueingTime(req *request) int64
	OutputTokenProcessingTime() int64
	PostDecodeFixedOverhead() int64
}

func read(r *request) (fresh, past int) { return r.NumNewTokens, int(r.ProgressIndex) }

// The model keeps what BLIS asks of one: a step takes at least 1 µs, more tokens take longer, and a prompt in chunks
// takes longer than at once.
func TestLatencyModel(t *testing.T) {
	configs := filepath.Join("..", "..", "plugins", "serving", "testdata", "configs")
	config, err := os.ReadFile(filepath.Join(configs, "llama-3.1-70b.json"))
	must.Do(t, err)
	m, err := blis.New(t.Context(), "h200", config, serving.Layout{TP: 8, Server: "vllm"}, read)
	must.Do(t, err)
	var model latencyModel = m
	batch := func(n, fresh int, past int64) (list []*request) {
		for range n {
			list = append(list, &request{ProgressIndex: past, NumNewTokens: fresh})
		}
		return list
	}
	got := model.StepTime(nil)
	must.That(t, got == 1, "an empty batch takes %d µs, want 1", got)
	one := model.StepTime(batch(16, 1, 2048))
	must.That(t, one >= 3_000 && one <= 30_000, "a token of 16 sequences takes %d µs", one)
	chunks := model.StepTime(batch(1, 4096, 0)) + model.StepTime(batch(1, 4096, 4096))
	for _, c := range []struct {
		what           string
		slower, faster int64
	}{
		{"more sequences", model.StepTime(batch(64, 1, 2048)), one},
		{"a longer context", model.StepTime(batch(16, 1, 32768)), one},
		{"a prompt besides", model.StepTime(append(batch(16, 1, 2048), batch(1, 1024, 0)...)), one},
		{"a prompt in chunks", chunks, model.StepTime(batch(1, 8192, 0))},
		{"a prompt behind a cached one", model.StepTime(batch(1, 1024, 8192)), model.StepTime(batch(1, 1024, 0))},
	} {
		must.That(t, c.slower > c.faster, "%s takes %d µs, not longer than %d", c.what, c.slower, c.faster)
	}
	if model.QueueingTime(batch(1, 1, 1)[0])+model.OutputTokenProcessingTime()+model.PostDecodeFixedOverhead() != 0 {
		t.Error("the server's part is counted twice")
	}
	_, err = blis.New(t.Context(), "h200", []byte("{}"), serving.Layout{TP: 8, Server: "vllm"}, read)
	must.That(t, err != nil, "an empty config.json is accepted")
}
