//go:build !race

// Decoding in one goroutine, which the race detector would only slow down tenfold.

package data_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// problems.jsonl lists the problems of every data set but the grids, to which nothing is fitted.
func TestProblems(t *testing.T) {
	var want bytes.Buffer
	lines := json.NewEncoder(&want)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if name == "grids" {
			return fs.SkipDir
		}
		if err != nil || path.Base(name) != "dataset.json" {
			return err
		}
		set := path.Dir(name)
		d, err := dataset.Read(set, os.DirFS(set))
		if err != nil {
			return err
		}
		line := struct {
			DataSet  string        `json:"data_set"`
			Problems []gemm.Record `json:"problems"`
		}{DataSet: set}
		for _, p := range d.Problems() {
			line.Problems = append(line.Problems, p.Record())
		}
		return lines.Encode(line)
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		err := os.WriteFile("problems.jsonl", want.Bytes(), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(data.Problems, want.Bytes()) {
		t.Error("problems.jsonl lists other problems than the data sets: " +
			"run go test ./plugins/nvidia/data -run Problems -update")
	}
}
