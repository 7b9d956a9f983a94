package problems

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// numbered are the columns of whole numbers, and numbers their places in a problem. The first four may be lists and
// ranges.
var (
	numbered = []string{"m", "n", "k", "batch", "lda", "ldb", "ldc"}
	numbers  = [...]func(*gemm.Problem) *int{
		func(p *gemm.Problem) *int { return &p.M }, func(p *gemm.Problem) *int { return &p.N },
		func(p *gemm.Problem) *int { return &p.K }, func(p *gemm.Problem) *int { return &p.Batch },
		func(p *gemm.Problem) *int { return &p.LDA }, func(p *gemm.Problem) *int { return &p.LDB },
		func(p *gemm.Problem) *int { return &p.LDC },
	}
)

// setCell sets what a column of a problems file says. The error completes a sentence that begins with the cell. fix is
// what to do about it.
func setCell(p *gemm.Problem, column, cell string) (fix string, err error) {
	if i := slices.Index(numbered, column); i >= 0 {
		*numbers[i](p), err = ParseSize(cell)
		return "give a whole number of at least 1", err
	}
	switch column {
	case "align_a", "align_b", "align_c":
		bytes, err := ParseAlign(cell)
		if err == nil {
			err = p.SetAlign(gemm.Operand(column[len(column)-1]-'a'), bytes)
		}
		return "give 1, 2, 4, 8 or 16", err
	case "trans_a":
		trans, err := parseTrans(cell, "m")
		p.SetTrans(trans, p.TransB())
		return "write 0, 1, false, true, N, T, row or column", err
	case "trans_b":
		trans, err := parseTrans(cell, "k")
		p.SetTrans(p.TransA(), trans)
		return "write 0, 1, false, true, N, T, row or column", err
	case layout:
		return setLayout(p, cell)
	case "groups":
		if !strings.Contains(cell, ",") {
			cell = strings.Join(strings.Fields(cell), ",") // as origami writes lists
		}
		p.Groups, err = ParseGroups(cell)
		return "write the rows of each group, as in \"120,33,0,512\"", err
	case "nest":
		p.Nest, err = gemm.ParseNest(cell)
		return "write dimension, size and strides of each index, as in \"m64:1:0:3,k16:64:1:0\"", err
	case "alpha":
		p.Alpha, err = parseScalar(cell)
		return "give a finite number other than 0", err
	case "beta":
		p.Beta, err = parseScalar(cell)
		return "give a finite number", err
	case "epilogue":
		if p.Epilogue, err = gemm.ParseEpilogue(cell); err != nil {
			err = errors.New("is no epilogue")
		}
		return "use one of " + gemm.EpilogueNames() + ", or several in this order, as in bias+gelu", err
	case "dtype":
		p.DType, fix, err = parseType(cell, gemm.DTypes())
	case "out_dtype":
		p.Out, fix, err = parseType(cell, gemm.OutputTypes())
	}
	return fix, err
}

func parseScalar(cell string) (float32, error) {
	v, err := strconv.ParseFloat(cell, 32)
	if err != nil || v-v != 0 {
		return 0, errors.New("is no finite number")
	}
	return float32(v), nil
}

func parseType(cell string, list []gemm.DType) (t gemm.DType, fix string, err error) {
	t, err = gemm.ParseDType(cell)
	var d *diag.Error
	if errors.As(err, &d) {
		fix, err = "use one of those", errors.New("is none of "+gemm.TypeNames(list))
		if !strings.HasPrefix(d.Fix, "use one of") {
			fix, _, _ = strings.Cut(d.Fix, " The types are")
		}
	}
	return t, fix, err
}

// parseTrans reads whether a matrix is transposed: in the words of a BLAS, of storage in rows or columns, or by the
// dimension that it is contiguous along.
func parseTrans(cell, along string) (bool, error) {
	switch lower := strings.ToLower(cell); lower {
	case "0", "false", "n", "row", "rowmajor", "row_major":
		return false, nil
	case "1", "true", "t", "col", "column", "colmajor", "columnmajor", "column_major":
		return true, nil
	case "k", "m": // n is not transposed either way
		return lower == along, nil
	}
	return false, errors.New("is neither true nor false, nor N or T")
}

// setLayout reads the layouts of A and B, as nt.
func setLayout(p *gemm.Problem, cell string) (fix string, err error) {
	lower := strings.ToLower(cell)
	if len(lower) != 2 || strings.Trim(lower, "nt") != "" {
		return "write nn, nt, tn or tt, of row-major A and B of which t is transposed", errors.New("is no layout")
	}
	p.SetTrans(lower[0] == 't', lower[1] == 't')
	return "", nil
}
