package dataset

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

// A problem that needs more than its sizes is another key, and other lines stay what they were.
func TestLineOfAWholeProblem(t *testing.T) {
	m := full()
	d := New("d", Conditions{Arch: "sm90", Device: "h200", Kernel: m.Config.Kernel, Input: "normal"})
	m.Phase, m.Block, m.Arms, m.Null = Sweep, 0, 0, false
	plain, err := AppendLine(nil, d.Conditions, &m)
	if err != nil || !bytes.Contains(plain, []byte(`"dtype":"`+m.Problem.DType.String()+`"},`)) {
		t.Fatalf("%s, %v", plain, err)
	}
	whole := m
	whole.Problem.Out, whole.Problem.LDA, whole.Problem.AlignB = gemm.FP32, m.Problem.K+5, 4
	whole.Problem.LDC = m.Problem.N // the default
	line, err := AppendLine(nil, d.Conditions, &whole)
	want := fmt.Sprintf(`,"out_dtype":"fp32","lda":%d,"align_b":4},`, m.Problem.K+5)
	if err != nil || !bytes.Contains(line, []byte(want)) {
		t.Fatalf("%s, %v", line, err)
	}
	_, back, err := ParseLine(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil || back.Problem != whole.Problem.Canonical() || back.Problem == whole.Problem {
		t.Fatalf("%+v, %v", back.Problem, err)
	}
	for _, one := range []Measurement{m, whole} {
		if err := d.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Add(back); err == nil {
		t.Error("the same problem counts as another")
	}
	for _, p := range []gemm.Problem{m.Problem, back.Problem} {
		if found, ok := d.Find(p, m.Config); !ok || found.Problem != p {
			t.Errorf("%s is not found", p)
		}
	}
	if got := len(d.Problems()); got != 2 {
		t.Errorf("%d problems", got)
	}
}
