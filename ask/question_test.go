package ask_test

import (
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/example"
)

// A question about two problems has an answer for each, from the space of the target alone.
func TestRankings(t *testing.T) {
	provider := must.Get(example.Provider())(t)
	source := models.Providers{provider}
	id := provider.Manifest().Archs[0].ID
	a := must.Get((&models.Target{Arch: id}).Open(t.Context(), source))(t)
	problems := []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(64, 4096, 512)}
	space := models.Space{{Name: "block_m", Values: []string{"64"}}}
	answers, err := ask.Rankings(t.Context(), a, ask.Question{Problems: problems, Space: space, Top: 1})
	must.Need(t, err == nil && len(answers) == len(problems), "%d answers, %v", len(answers), err)
	for i, one := range answers {
		must.That(t, one.Err == nil && one.Problem == problems[i] && one.Entries[0].Config.BlockM == 64,
			"%s: %+v, %v", one.Problem, one.Entries, one.Err)
	}
	for want, bad := range map[string]models.Target{
		`unknown architecture "x"`: {Arch: "x"}, `no model of`: {Arch: id, Kernel: "none"},
	} {
		must.Fail(t, must.Err(bad.Open(t.Context(), source)), want)
	}
}
