package session

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/formats/tensile"
)

// ReadLogic reads a library logic, through gzip if its name ends in .gz.
func ReadLogic(ctx context.Context, name string) (*tensile.Logic, error) {
	const fix = "give a library logic as `origami logic build` writes it, or of Tensile or hipBLASLt"
	text, err := ReadText(ctx, name, limit.Logic, fix)
	if err != nil {
		return nil, err
	}
	return tensile.Read(name, text)
}

// ReadText reads a file that the user named, through gzip if its name ends in .gz. fix is the advice if it cannot be
// read.
func ReadText(ctx context.Context, name string, most limit.Size, fix string) ([]byte, error) {
	text, err := readFile(ctx, name, most, fix)
	if err == nil || diag.KindOf(err) == diag.Input || ctx.Err() != nil {
		return text, err
	}
	return nil, diag.Inputf("the file cannot be read: %v", err).At("%s", name).Do("%s", fix)
}

// WriteFile writes a file that a flag named.
func WriteFile(name, flag string, text []byte) error {
	if err := os.WriteFile(name, text, 0o666); err != nil {
		return diag.Inputf("the file cannot be written: %v", withoutPath(err)).At("%s %s", flag, name).
			Do("name another one")
	}
	return nil
}

// RegisterLayout adds the flags that say which of measured times to use: type, layout and kernel family.
func (f *ProblemFlags) RegisterLayout(flags *pflag.FlagSet) {
	f.Batch.value = 1
	flags.SortFlags = false
	f.registerLayout(flags)
	f.registerFamily(flags)
}
