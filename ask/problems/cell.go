package problems

import (
	"errors"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/gemm"
)

// setCell sets what a column of a problems file says. The error completes a sentence that begins with the cell. fix is
// what to do about it.
func setCell(p *gemm.Problem, column, cell string) (fix string, err error) {
	var size *int
	switch column {
	case "m":
		size = &p.M
	case "n":
		size = &p.N
	case "k":
		size = &p.K
	case "batch":
		size = &p.Batch
	case "lda":
		size = &p.LDA
	case "ldb":
		size = &p.LDB
	case "ldc":
		size = &p.LDC
	case "align_a", "align_b", "align_c":
		bytes, err := ParseAlign(cell)
		if err == nil {
			err = p.SetAlign(gemm.Operand(column[len(column)-1]-'a'), bytes)
		}
		return "give 1, 2, 4, 8 or 16", err
	default:
		return setWord(p, column, cell)
	}
	*size, err = ParseSize(cell)
	return "give a whole number of at least 1", err
}

// setWord is setCell for the columns that have no numbers.
func setWord(p *gemm.Problem, column, cell string) (fix string, err error) {
	switch column {
	case "trans_a":
		trans, err := parseBool(cell)
		p.SetTrans(trans, p.TransB())
		return "write 0, 1, false or true", err
	case "trans_b":
		trans, err := parseBool(cell)
		p.SetTrans(p.TransA(), trans)
		return "write 0, 1, false or true", err
	case "groups":
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
		return "use one of " + gemm.EpilogueNames() + ", or bias+ and an activation, as in bias+gelu", err
	case "dtype":
		p.DType, err = parseType(cell, gemm.DTypes())
	case "out_dtype":
		p.Out, err = parseType(cell, gemm.OutputTypes())
	}
	return "use one of those", err
}

func parseScalar(cell string) (float32, error) {
	v, err := strconv.ParseFloat(cell, 32)
	if err != nil || v-v != 0 {
		return 0, errors.New("is no finite number")
	}
	return float32(v), nil
}

func parseType(cell string, list []gemm.DType) (gemm.DType, error) {
	t, err := gemm.ParseDType(cell)
	if err != nil {
		err = errors.New("is none of " + gemm.TypeNames(list))
	}
	return t, err
}

func parseBool(cell string) (bool, error) {
	switch strings.ToLower(cell) {
	case "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	}
	return false, errors.New("is neither true nor false")
}
