package arch

import (
	"encoding/json"

	"github.com/origami-gemm/origami/core/gemm"
)

// MarshalJSON writes the ends of the range.
func (r Range) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{r.Low, r.High}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Range) UnmarshalJSON(text []byte) error {
	var ends [2]float64
	err := json.Unmarshal(text, &ends)
	r.Low, r.High = ends[0], ends[1]
	return err
}

// writtenLayout is a Layout in JSON.
type writtenLayout struct {
	DType  string `json:"dtype"`
	Out    string `json:"out_dtype"`
	TransA bool   `json:"trans_a"`
	TransB bool   `json:"trans_b"`
}

// MarshalJSON writes types and storage as of a problem.
func (l Layout) MarshalJSON() ([]byte, error) {
	return json.Marshal(writtenLayout{l.Types.In.String(), l.Types.Out.String(), l.AMajor == gemm.MajorM,
		l.BMajor == gemm.MajorK})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Layout) UnmarshalJSON(text []byte) error {
	var w writtenLayout
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	stored := gemm.Record{M: 2, N: 2, K: 2, Batch: 1, TransA: w.TransA, TransB: w.TransB, DType: w.DType, Out: w.Out}
	p, err := stored.Problem()
	*l = LayoutOf(&p)
	return err
}
