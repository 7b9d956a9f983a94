package nvidia

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// fittedTo returns the data sets that quantities were fitted to. A quantity names several with commas between them.
func fittedTo(quantities []model.Quantity) (fitted []arch.Fitted) {
	for _, q := range quantities {
		for _, name := range strings.Split(q.DataSet, ", ") {
			fitted = withDataSet(fitted, name, q.Kernel)
		}
	}
	return fitted
}

// withDataSet adds a data set of a kernel family, or of all, to a list that lacks it, and a folder that it may lie in.
func withDataSet(list []arch.Fitted, name, kernel string) []arch.Fitted {
	if name == "" || slices.ContainsFunc(list, func(f arch.Fitted) bool {
		return (f.DataSet == name || strings.HasPrefix(name, f.DataSet+"/")) && f.Concerns(kernel)
	}) {
		return list
	}
	return append(list, arch.Fitted{DataSet: name, Kernel: kernel, Problems: problemsOf(name)})
}

// problemsOf returns the problems of a data set, or of all in a folder.
func problemsOf(name string) (problems []gemm.Problem) {
	for _, set := range data.Problems {
		if set.Name == name || strings.HasPrefix(set.Name, name+"/") {
			problems = append(problems, set.Problems...)
		}
	}
	return problems
}
