// Command gen writes the code of the library model, and the tables of its page, from the table of its terms. It runs in
// plugins/library, through go generate.
package main

import (
	"fmt"
	"log"
	"os"
)

// path is that of the page from plugins/library.
const path = "../../docs/model-library.md"

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
	if err := os.WriteFile("zterms.go", src, 0o644); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	filled, err := fill(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}
