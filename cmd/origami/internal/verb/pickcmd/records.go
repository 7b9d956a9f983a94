package pickcmd

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/residual"
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

// correctedBy returns a model that the times of a data set correct: of each problem, the time of the pick.
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
	return residual.Beside(a, &residual.Times{Of: "times of this GPU", Term: "records", Like: a,
		Intervals: true, Rows: residual.ByKernel(residual.Picks(ctx, a, data))}), nil
}
