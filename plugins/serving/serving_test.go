package serving_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/serving"
)

// step answers for a model of testdata.
func step(t testing.TB, device, model string, l serving.Layout, batch, context, fresh int) *ask.Step {
	t.Helper()
	if l.Server == "" {
		l.Server = "vllm"
	}
	plan := must.Get(serving.New(model, config(t, model), l))(t)
	one := must.Get(ask.StepsOn(open(t, device)).Advised(t.Context(),
		ask.StepQuestion{Plan: plan, Batch: batch, Context: context, New: fresh}))(t)
	return one
}

// The parts add up to the time per token, which lies in its interval.
func TestPartsAddUp(t *testing.T) {
	for _, model := range []string{"llama-3.1-70b", "deepseek-r1", "gpt-oss-120b", "qwen3.5-397b-a17b"} {
		for _, device := range []string{"h200", "b200", "mi355x"} {
			one := step(t, device, model, serving.Layout{TP: 8}, 32, 4096, 512)
			sum, share := ask.Number(0), ask.Number(0)
			for _, p := range one.Parts {
				must.That(t, p.Seconds >= 0, "%s on %s: %s takes %v", model, device, p.Name, p.Seconds)
				sum, share = sum+p.Seconds, share+p.Share
			}
			must.That(t, math.Abs(float64(sum/one.Seconds-1)) <= 1e-9 && math.Abs(float64(share-1)) <= 1e-9 &&
				one.Interval[0] < one.Seconds && one.Seconds < one.Interval[1],
				"%s on %s: the parts are %v of %v in %v", model, device, sum, one.Seconds, one.Interval)
		}
	}
}

// What takes more work, or has less to do it with, is never faster.
func TestMonotone(t *testing.T) {
	for _, model := range []string{"llama-3.1-70b", "deepseek-r1", "kimi-k2.5", "gpt-oss-120b"} {
		base := serving.Layout{TP: 8}
		at := func(device string, batch, context int) ask.Number {
			return step(t, device, model, base, batch, context, 1024).Seconds
		}
		one := at("h200", 16, 4096)
		for _, c := range []struct {
			what           string
			slower, faster ask.Number
		}{
			{"more sequences", at("h200", 64, 4096), one}, {"a longer prompt", at("h200", 16, 16384), one},
			{"less bandwidth", one, at("h200:dram_bandwidth=6TB/s", 16, 4096)},
		} {
			must.That(t, c.slower >= c.faster, "%s: %s is faster: %v < %v", model, c.what, c.slower, c.faster)
		}
	}
}

// What does not fit into memory is said, and what does not divide is refused.
func TestWhatDoesNotFit(t *testing.T) {
	m := step(t, "h100", "deepseek-r1", serving.Layout{TP: 8}, 8, 1024, 1024).Memory
	must.That(t, *m.Sequences == 0 && !m.Fits(1), "671 GB of weights fit 8 H100: %v", m)
	m = step(t, "h200", "deepseek-r1", serving.Layout{TP: 8}, 64, 1024, 1024).Memory
	must.That(t, m.Fits(64), "671 GB of weights do not fit 8 H200: %v", m)
	for _, c := range []struct {
		model, want string
		layout      serving.Layout
	}{
		{"llama-3.1-70b", "do not divide", serving.Layout{TP: 3, Server: "vllm"}},
		{"llama-3.1-70b", `the server "tgi" is not known`, serving.Layout{TP: 1, Server: "tgi"}},
		{"llama-3.1-70b", `weights of "fp5" are not known`, serving.Layout{TP: 1, Server: "vllm", Weights: "fp5"}},
		{"llama-3.1-70b", "16 bits by weights of 4", serving.Layout{TP: 1, Server: "vllm", Weights: "int4"}},
		{"deepseek-r1", "do not divide 256 experts", serving.Layout{TP: 8, EP: 3, Server: "vllm"}},
	} {
		_, err := serving.New(c.model, config(t, c.model), c.layout)
		must.That(t, err != nil && strings.Contains(err.Error(), c.want),
			"%s %+v: %v, want %q", c.model, c.layout, err, c.want)
	}
}

// The weights are as large as the files that are published, without DeepSeek's module for drafts.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		model string
		bytes float64
	}{{"llama-3.1-70b", 141e9}, {"deepseek-r1", 672e9}, {"gpt-oss-120b", 65e9}, {"qwen3-235b-a22b", 236e9}} {
		one := step(t, "b300", c.model, serving.Layout{TP: 1}, 1, 1024, 1024)
		if got := float64(one.Memory.Weights); math.Abs(got/c.bytes-1) > 0.03 {
			t.Errorf("%s has %s of weights, want %s", c.model, unit.SI(got, "B"), unit.SI(c.bytes, "B"))
		}
	}
}

// Published times multiply the terms as experiments/step-operators computed it, in Python.
func TestNear(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "near.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		number := func(i int) float64 { v, _ := strconv.ParseFloat(r[i], 64); return v }
		got, want := serving.Near(r[0], r[1], r[2], r[3], number(4), number(5), number(6)), number(7)
		if math.Abs(got/want-1) > 0.03 { // eight nearest sizes of some that are equally near
			t.Errorf("%v: %.4f, want %.4f", r, got, want)
		}
	}
	if got := serving.Near("decode", "vllm", "sm90", "96 bfloat16", 1024, 8, 8); got != 1 {
		t.Errorf("no time is of a head of 96, and the terms are multiplied by %v", got)
	}
}
