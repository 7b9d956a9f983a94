package ask_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/example"
)

// A question in JSON is the question in Go: it opens its targets, and an opened model gives the same answers.
func TestAsk(t *testing.T) {
	provider, err := example.Provider()
	if err != nil {
		t.Fatal(err)
	}
	source := models.Providers{provider}
	id := provider.Manifest().Archs[0].ID
	text := `{"targets":[{"arch":"` + id + `"},{"arch":"` + id + `","space":{"block_m":[64]}}],` +
		`"problems":[{"m":4096,"n":4096,"k":4096},{"m":64,"n":4096,"k":512,"batch":2,"trans_b":true}],"top":1}`
	var q ask.Question
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		t.Fatal(err)
	}
	answers, err := ask.Ask(t.Context(), source, q)
	if err != nil || len(answers) != 2 {
		t.Fatalf("%d targets answered, %v", len(answers), err)
	}
	a, err := q.Targets[0].Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ask.Rankings(t.Context(), a, ask.Question{Problems: []gemm.Problem{gemm.New(4096, 4096, 4096)}, Top: 1})
	if err != nil || answers[0][0].Entries[0].Config != want[0].Entries[0].Config {
		t.Errorf("%+v, want %+v, %v", answers[0][0].Entries, want[0].Entries, err)
	}
	if p := answers[0][1].Problem; p.M != 64 || !p.TransB() || p.Batch != 2 || p.DType != gemm.FP16 {
		t.Errorf("the second problem is %s", p)
	}
	for _, one := range answers[1] {
		if one.Err != nil || one.Entries[0].Config.BlockM != 64 {
			t.Errorf("%s: %+v, %v", one.Problem, one.Entries, one.Err)
		}
	}

	written, err := json.Marshal(q)
	var again ask.Question
	if err == nil {
		err = json.Unmarshal(written, &again)
	}
	if rewritten, _ := json.Marshal(again); err != nil || string(rewritten) != string(written) {
		t.Errorf("%s becomes %s, %v", written, rewritten, err)
	}
	for bad, want := range map[string]string{
		`{"problems":[{"m":1,"n":1}]}`:                        `problem 0: `,
		`{"problems":[{"m":1,"n":1,"k":1,"kk":2}]}`:           `kk`,
		`{"targets":[{"arch":"x"}],"problems":[]}`:            `unknown architecture "x"`,
		`{"targets":[{"arch":"` + id + `","kernel":"none"}]}`: `no model of`,
	} {
		var q ask.Question
		err := json.Unmarshal([]byte(bad), &q)
		if err == nil {
			_, err = ask.Ask(t.Context(), source, q)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}
