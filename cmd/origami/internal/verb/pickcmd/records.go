package pickcmd

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/unit"
)

// records adds the flag of the times that correct predictions near their sizes.
func records(f *session.Factory, flags *pflag.FlagSet) {
	folder := flags.String("records", "", "`FOLDER` of a data set of this GPU: what it took corrects times near its sizes")
	session.Files(flags, "records")
	before := f.Corrected
	f.Corrected = func(ctx context.Context, a arch.Architecture) (arch.Architecture, error) {
		if before != nil {
			corrected, err := before(ctx, a)
			if err != nil {
				return nil, err
			}
			a = corrected
		}
		if *folder == "" {
			return a, nil
		}
		return correctedBy(ctx, a, f.Settings.Kernel, *folder)
	}
}

// correctedBy returns a model that the times of a data set correct: of each problem, the shortest.
func correctedBy(ctx context.Context, a arch.Architecture, kernel, folder string) (arch.Architecture, error) {
	d := a.Describe()
	data, err := datastore.Folder(ctx, d, kernel, "--records", folder)
	if err != nil {
		return nil, err
	}
	if of := data.Timing(); d.Timing != string(of) {
		return nil, diag.Inputf("the times are of %s, and predictions of %s", of, d.Timing).At("--records %s", folder).
			Do("add --timing %s", of)
	}
	return residual.Beside(ctx, a, fastest(data))
}

func fastest(data *dataset.Dataset) (all []residual.Measured) {
	for _, p := range data.Problems() {
		list, times := data.Times(p)
		best := gemm.Config{}
		for _, c := range list {
			if best == (gemm.Config{}) || times[c] < times[best] {
				best = c
			}
		}
		if len(list) > 0 {
			all = append(all, residual.Measured{Problem: p, Config: best, Time: unit.Seconds(times[best])})
		}
	}
	return all
}
