// Command page writes the tables and equations of docs/model-pipelined.md, from the table of the model's terms. It
// runs in its own folder, through go generate.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula/page"
	"github.com/origami-gemm/origami/plugins/nvidia"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

//go:generate go run .

func main() {
	if err := run(); err != nil {
		log.Fatal(fmt.Errorf("page: %w", err))
	}
}

// path is that of the page from the folder of go generate.
const path = "../../../../docs/model-pipelined.md"

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

// open returns the model on a device of the first architecture with most kernel families. Quantities are the same on
// all devices, and families have some of their own.
func open() (*pipelined.Model, error) {
	p, err := nvidia.Provider()
	if err != nil {
		return nil, err
	}
	most := &p.Manifest().Archs[0]
	for _, a := range p.Manifest().Archs {
		if len(a.Kernels) > len(most.Kernels) {
			most = &a
		}
	}
	a, err := p.Open(context.Background(), arch.OpenRequest{Arch: most.ID, Model: pipelined.Name})
	if err != nil {
		return nil, err
	}
	return a.(*pipelined.Model), nil
}

// fill returns the page with new generated parts.
func fill(text string) (string, error) {
	model, err := open()
	if err != nil {
		return "", err
	}
	parts := map[string]string{"quantities": quantities(model)}
	for _, p := range terms.Parts {
		parts["terms of "+p.Name] = modelgen.Equations(p.Terms)
	}
	return page.Fill(text, parts)
}

func quantities(model *pipelined.Model) string {
	var b strings.Builder
	b.WriteString("\n| quantity | value | unit | bounds | over folds | fitted on | what |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, q := range model.Quantities() {
		folds, dataSet := "–", "chosen"
		if q.Folds != nil {
			folds, dataSet = q.Range(q.Folds[0], q.Folds[1]), q.DataSet
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n",
			q.Name, number(q.Value), q.Unit, q.Range(q.Low, q.High), folds, dataSet, q.Doc)
	}
	return b.String() + "\n"
}

func number(v float64) string { return page.Number(v, -1) }
