package dataset

import (
	"io"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Compiled is what a compiler reports about one kernel, a row of a kernels.csv.
type Compiled struct {
	// Config is the configuration without its kernel family. GroupM is 0 if the file has no column gm.
	Config gemm.Config
	// EvenK means that block_k divides K, so that the kernel needs no mask along K.
	EvenK bool
	// Built: the kernel compiled and fits the device. Resources are those of a built kernel.
	Built     bool
	Resources exec.Resources
}

// compiledColumns are the columns that every kernels.csv has.
var compiledColumns = []string{
	"bm", "bn", "bk", "stages", "warps", "even_k", "n_regs", "n_spills", "shared", "status",
}

// registerBytes is the size of a register. Spills are counted in registers.
const registerBytes = 4

// EachCompiled calls use for every kernel of a kernels.csv, in the order of the file. only filters by column: rows with
// another value are skipped, and a column that the file lacks is ignored. place names the file in errors.
func EachCompiled(in io.Reader, place string, only map[string]string, use func(*Compiled) error) error {
	return table(place, compiledColumns).Each(in, func(r *columns.Row) error {
		for column, value := range only {
			if r.Has(column) && r.Text(column) != value {
				return nil
			}
		}
		c := row{r}.compiled()
		if r.Err() != nil {
			return nil
		}
		return use(&c)
	})
}

func (r row) compiled() Compiled {
	c := Compiled{Config: r.config(""), EvenK: r.Number("even_k") == 1, Built: r.Text("status") == "ok"}
	if c.Built { // the other cells of one that was not may be empty
		c.Resources = exec.Resources{
			Registers: r.Number("n_regs"), SpillBytes: unit.Bytes(registerBytes * r.Number("n_spills")),
			SharedMemory: unit.Bytes(r.Number("shared")),
		}
	}
	return c
}
