// Command parameters writes the tables of docs/kernel-parameters.md: which parameters of a kernel each family chooses,
// from the candidate lists of the models, and what a choice is worth, from the recorded sweeps. It runs in its own
// folder, through go generate.
package main

import (
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/origami-gemm/origami/core/formula/page"
)

//go:generate go run .

func main() {
	if err := run(); err != nil {
		log.Fatal(fmt.Errorf("parameters: %w", err))
	}
}

// path is that of the page from the folder of go generate.
const path = "../../../../docs/kernel-parameters.md"

func run() error {
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

// fill returns the page with new generated parts.
func fill(text string) (string, error) {
	all, err := families()
	if err != nil {
		return "", err
	}
	if err := consistent(parameters, all); err != nil {
		return "", err
	}
	worth, err := worthOfChoices()
	if err != nil {
		return "", err
	}
	affects, err := affectsTable(all[0])
	if err != nil {
		return "", err
	}
	limits, err := limitsTable(all[slices.Index(columns[:], "tensile")])
	if err != nil {
		return "", err
	}
	return page.Fill(text, map[string]string{
		"parameters": statusTable(parameters, all), "values": valueTable(all), "worth": worth,
		"affects": affects, "limits": limits,
	})
}
