// Command gen writes the code of the refined model, and the tables of its page, from the table of its terms. It runs in
// plugins/nvidia/refined, through go generate.
package main

import (
	"fmt"
	"log"
	"os"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(fmt.Errorf("gen: %w", err))
	}
}

func run() error {
	src, err := code()
	if err != nil {
		return err
	}
	return os.WriteFile("zterms.go", src, 0o644)
}
