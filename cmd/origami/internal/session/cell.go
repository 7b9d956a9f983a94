package session

import (
	"errors"

	"github.com/origami-gemm/origami/core/gemm"
)

// setCell sets what a column of a problems file says. The error completes a sentence that begins with the cell. fix is
// what to do about it.
func setCell(p *gemm.Problem, column, cell string) (fix string, err error) {
	sizes := map[string]*int{
		"m": &p.M, "n": &p.N, "k": &p.K, "batch": &p.Batch, "lda": &p.LDA, "ldb": &p.LDB, "ldc": &p.LDC,
	}
	if size := sizes[column]; size != nil {
		*size, err = parseSize(cell)
		return "give a whole number of at least 1", err
	}
	switch column {
	case "trans_a", "trans_b":
		trans, err := parseBool(cell)
		if column == "trans_a" {
			p.SetTrans(trans, p.TransB())
		} else {
			p.SetTrans(p.TransA(), trans)
		}
		return "write 0, 1, false or true", err
	case "dtype":
		p.DType, err = parseType(cell, gemm.DTypes())
		return "use one of those", err
	case "out_dtype":
		p.Out, err = parseType(cell, gemm.OutputTypes())
		return "use one of those", err
	default: // align_a, align_b, align_c
		bytes, err := parseAlign(cell)
		if err == nil {
			err = p.SetAlign(gemm.Operand(column[len(column)-1]-'a'), bytes)
		}
		return "give 1, 2, 4, 8 or 16", err
	}
}

func parseType(cell string, list []gemm.DType) (gemm.DType, error) {
	t, err := gemm.ParseDType(cell)
	if err != nil {
		err = errors.New("is none of " + gemm.TypeNames(list))
	}
	return t, err
}

func parseBool(cell string) (bool, error) {
	switch cell {
	case "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	}
	return false, errors.New("is neither true nor false")
}
