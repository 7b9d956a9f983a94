package ask_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/example"
)

// A question about two problems has an answer for each, from the space of the target alone.
func TestRankings(t *testing.T) {
	provider, err := example.Provider()
	if err != nil {
		t.Fatal(err)
	}
	source := models.Providers{provider}
	id := provider.Manifest().Archs[0].ID
	target, err := models.Decode([]byte(`{"arch":"` + id + `","space":{"block_m":[64]}}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := target.Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	problems := []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(64, 4096, 512)}
	answers, err := ask.Rankings(t.Context(), a, ask.Question{Problems: problems, Space: target.Space, Top: 1})
	if err != nil || len(answers) != len(problems) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for i, one := range answers {
		if one.Err != nil || one.Problem != problems[i] || one.Entries[0].Config.BlockM != 64 {
			t.Errorf("%s: %+v, %v", one.Problem, one.Entries, one.Err)
		}
	}
	for bad, want := range map[string]string{
		`{"arch":"x"}`: `unknown architecture "x"`, `{"arch":"` + id + `","kernel":"none"}`: `no model of`,
	} {
		target, err := models.Decode([]byte(bad))
		if err == nil {
			_, err = target.Open(t.Context(), source)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}
