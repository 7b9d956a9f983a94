package session

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/logic"
)

// ReadLogic reads a library logic, through gzip if its name ends in .gz.
func ReadLogic(ctx context.Context, name string) (*logic.Logic, error) {
	const fix = "give a library logic as `origami logic build` writes it, or of Tensile or hipBLASLt"
	text, err := readFile(ctx, name, limit.Table, fix)
	if err != nil {
		if diag.KindOf(err) == diag.Input || ctx.Err() != nil {
			return nil, err
		}
		return nil, diag.Inputf("the file cannot be read: %v", err).At("%s", name).Do(fix)
	}
	return logic.Read(name, text)
}

// RegisterLayout adds the flags that say which of measured times to use: type, layout and kernel family.
func (f *ProblemFlags) RegisterLayout(flags *pflag.FlagSet) {
	f.Batch.value = 1
	flags.SortFlags = false
	f.registerLayout(flags)
	f.registerFamily(flags)
}
