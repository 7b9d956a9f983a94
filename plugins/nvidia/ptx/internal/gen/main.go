// Command gen writes the builder's constructors, one per row of the instruction table. It runs in plugins/nvidia/ptx,
// through go generate.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

func main() {
	src, err := inst.Constructors()
	if err == nil {
		err = os.WriteFile("zinstructions.go", src, 0o644)
	}
	if err != nil {
		log.Fatal(fmt.Errorf("gen: %w", err))
	}
}
