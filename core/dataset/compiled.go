package dataset

import (
	"io"

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

// EachCompiled calls use for every kernel of a kernels.csv that was built, in the order of the file. only filters by
// column: rows with another value are skipped, and a column that the file lacks is ignored. place names the file in
// errors. The kernel is valid until use returns.
func EachCompiled(in io.Reader, place string, only map[string]string, use func(*Compiled) error) error {
	return eachCompiled(in, place, compiledColumns, only, func(c *Compiled) error {
		if !c.Built {
			return nil
		}
		return use(c)
	})
}

func eachCompiled(in io.Reader, place string, columns []string, only map[string]string,
	use func(*Compiled) error,
) error {
	var c Compiled
	return eachRow(in, place, columns, func(row *row) error {
		if !row.matches(only) {
			return nil
		}
		c = Compiled{Config: row.config(""), EvenK: row.number("even_k") == 1, Built: row.text("status") == "ok"}
		if c.Built { // the other cells of one that was not may be empty
			c.Resources = exec.Resources{
				Registers: row.number("n_regs"), SpillBytes: unit.Bytes(registerBytes * row.number("n_spills")),
				SharedMemory: unit.Bytes(row.number("shared")),
			}
		}
		if row.err != nil {
			return row.err
		}
		return use(&c)
	})
}

// matches reports whether the row has no other value in one of the columns.
func (r *row) matches(only map[string]string) bool {
	for column, value := range only {
		if i, ok := r.column[column]; ok && r.cells[i] != value {
			return false
		}
	}
	return true
}
