package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
)

// The picture of the experiment tuning-compared is that of its numbers.
func TestTuningCompared(t *testing.T) {
	folder := filepath.FromSlash("../../docs/experiments/tuning-compared")
	text, err := os.ReadFile(filepath.Join(folder, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Groups []struct {
			Group   string
			Methods []struct {
				Method string
				Points []struct {
					Budget   any
					Regret   float64
					Measured float64
				}
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	f := &figure.Figure{Title: "Tuners on the same recorded times",
		X: figure.Axis{Label: "measurements per size", Log: true},
		Y: figure.Axis{Label: "regret, geometric mean of all sizes", Unit: "%", Log: true}}
	for _, m := range result.Groups[len(result.Groups)-1].Methods {
		if m.Method == "Tensile's steps" {
			continue // most of these sweeps have too few combinations for it
		}
		line := figure.Mark{Kind: figure.Line, Series: len(f.Series)}
		for _, p := range m.Points {
			x, ok := p.Budget.(float64)
			if !ok {
				x = p.Measured
			}
			if x > 0 && p.Regret > 0 {
				line.Rows = append(line.Rows, figure.Row{X: x, Y: p.Regret})
			}
		}
		if len(line.Rows) == 0 {
			t.Fatalf("%s has no points", m.Method)
		}
		dots := line
		if dots.Kind = figure.Dots; len(line.Rows) > 1 {
			f.Marks = append(f.Marks, line)
		}
		f.Series, f.Marks = append(f.Series, m.Method), append(f.Marks, dots)
	}
	name := filepath.Join(folder, "regret.svg")
	svg := f.SVG("compare.py")
	if *update {
		if err := os.WriteFile(name, svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, svg) {
		t.Errorf("%s is not the picture of result.json (%v); run the test with -update", name, err)
	}
}
