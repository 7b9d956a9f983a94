package gemm

// Record is a problem in JSON and in the CSV that origami writes. What was added later is left out at its default, so
// that the text of other problems stays what it was.
type Record struct {
	// rows of A and C, columns of B and C, and columns of A
	M int `json:"m"`
	N int `json:"n"`
	K int `json:"k"`
	// the number of products of this size
	Batch int `json:"batch"`
	// whether A is contiguous along M, and B along K
	TransA bool `json:"trans_a"`
	TransB bool `json:"trans_b"`
	// the type of the elements of A and B
	DType string `json:"dtype"`
	// the type of C, if it is not the default
	Out string `json:"out_dtype,omitempty"`
	// leading dimensions in elements, if rows are not dense
	LDA int `json:"lda,omitempty"`
	LDB int `json:"ldb,omitempty"`
	LDC int `json:"ldc,omitempty"`
	// the bytes that divide the address, if fewer than 16
	AlignA int `json:"align_a,omitempty"`
	AlignB int `json:"align_b,omitempty"`
	AlignC int `json:"align_c,omitempty"`
	// the rows of each group, if there are groups; `m` is their sum
	Groups []int `json:"groups,omitempty"`
	// dimension, size and strides in A, B and C of each nested index: `m64:1:0:3,k16:64:1:0`
	Nest string `json:"nest,omitempty"`
	// factors of the product and of what C holds before
	Alpha float32 `json:"alpha,omitempty"`
	Beta  float32 `json:"beta,omitempty"`
	// what is done to C before it is stored, as in `--epilogue`
	Epilogue string `json:"epilogue,omitempty"`
}

// Record returns the problem as JSON has it.
func (p Problem) Record() Record {
	p = p.Canonical()
	r := Record{
		M: p.M, N: p.N, K: p.K, Batch: p.Batch, TransA: p.TransA(), TransB: p.TransB(), DType: p.DType.String(),
		LDA: p.LDA, LDB: p.LDB, LDC: p.LDC,
		AlignA: int(p.AlignA), AlignB: int(p.AlignB), AlignC: int(p.AlignC), Groups: p.Groups.List(),
		Nest: p.Nest.String(), Alpha: p.Alpha, Beta: p.Beta, Epilogue: p.Epilogue.String(),
	}
	if p.Out != 0 {
		r.Out = p.Out.String()
	}
	return r
}

// String formats as the problem does.
func (r Record) String() string {
	p, _ := r.Problem() // it was one
	return p.String()
}

// Problem returns the problem of a record, validated and canonical.
func (r *Record) Problem() (Problem, error) {
	p := Problem{M: r.M, N: r.N, K: r.K, Batch: r.Batch, LDA: r.LDA, LDB: r.LDB, LDC: r.LDC,
		Alpha: r.Alpha, Beta: r.Beta}
	p.SetTrans(r.TransA, r.TransB)
	var err error
	if p.DType, err = ParseDType(r.DType); err != nil {
		return p, err
	}
	if r.Out != "" {
		if p.Out, err = ParseOutput(r.Out); err != nil {
			return p, err
		}
	}
	for i, bytes := range [...]int{A: r.AlignA, B: r.AlignB, C: r.AlignC} {
		if bytes != 0 {
			if err := p.SetAlign(Operand(i), bytes); err != nil {
				return p, err
			}
		}
	}
	if p.Groups, err = NewGroups(r.Groups...); err != nil {
		return p, err
	}
	if p.Nest, err = ParseNest(r.Nest); err != nil {
		return p, err
	}
	if p.Epilogue, err = ParseEpilogue(r.Epilogue); err != nil {
		return p, err
	}
	return p.Canonical(), p.Validate()
}

// Columns of a problem in CSV. A file has the first ones always. It has the others only where a problem needs them.
var (
	Columns     = []string{"m", "n", "k", "batch", "trans_a", "trans_b", "dtype"}
	MoreColumns = []string{"out_dtype", "lda", "ldb", "ldc", "align_a", "align_b", "align_c", "groups", "nest",
		"alpha", "beta", "epilogue"}
)
