package nvidia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// fittedTo returns the data sets that quantities were fitted to. A quantity names several with commas between them.
func fittedTo(quantities []kernel.Quantity) (fitted []arch.Fitted) {
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

// problemsOf returns the problems of a data set, or of all in a folder that are not kept for a test. No number of a
// model was fitted to problems in groups.
func problemsOf(name string) (problems []gemm.Problem) {
	for text := range bytes.Lines(data.Problems) {
		set, _, _ := strings.Cut(strings.TrimPrefix(string(text), `{"data_set":"`), `"`)
		inside := strings.HasPrefix(set, name+"/") && !strings.HasSuffix(set, "-test")
		if set != name && !inside {
			continue
		}
		var line struct{ Problems []gemm.Record }
		if err := json.Unmarshal(text, &line); err != nil {
			panic(fmt.Sprintf("problems.jsonl: %v", err)) // a test reads it
		}
		for i := range line.Problems {
			p, err := line.Problems[i].Problem()
			if err != nil {
				panic(fmt.Sprintf("problems.jsonl: %v", err))
			}
			if p.Groups == (gemm.Groups{}) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}
