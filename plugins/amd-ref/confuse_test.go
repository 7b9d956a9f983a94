package amdref_test

import (
	"fmt"
	"sort"
	"testing"

	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/internal/tuned"
)

func TestConfuse(t *testing.T) {
	rows, _ := tuned.Read("data")
	provider, _ := amdref.Provider()
	kernels := kernelsOf(rows)
	st := map[string]*student{}
	count := map[string]int{}
	for i := range rows {
		r := &rows[i]
		if r.Arch != "gfx942" || r.Set != "stream-k" || r.CUs != 304 {
			continue
		}
		s := st[r.Key()]
		if s == nil {
			s = newStudent(t, provider, "refined", r, kernels[r.Key()])
			st[r.Key()] = s
		}
		c := s.chooseLibrary(t, r.Problem)
		if c.BlockM*c.BlockN != r.Config.BlockM*r.Config.BlockN {
			tiles := r.Problem.M * r.Problem.N / r.Config.BlockM / r.Config.BlockN
			count[fmt.Sprintf("lib %dx%d tiles %5d k %5d -> %d", r.Config.BlockM, r.Config.BlockN, tiles, r.Problem.K, c.BlockM*c.BlockN*100/r.Config.BlockM/r.Config.BlockN)]++
		}
	}
	type kv struct {
		k string
		v int
	}
	var list []kv
	for k, v := range count {
		list = append(list, kv{k, v})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].v > list[j].v })
	for _, e := range list[:min(50, len(list))] {
		fmt.Println(e.v, e.k)
	}
}
