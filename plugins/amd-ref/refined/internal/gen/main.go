// Command gen writes the code of the refined model, and the tables of its page, from the table of its terms. It runs in
// plugins/amd-ref/refined, through go generate.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/plugins/amd-ref/refined/terms"
)

// What a value can depend on, besides the device.
const (
	onKernel gogen.Deps = 1 << iota // the configuration, the layout and the type of the operands
	onSizes                         // M, N, K and the batch
)

// stages are the moments at which the model computes, with the struct for the results.
var stages = []struct {
	variable, kind, args, doc string
	knows                     gogen.Deps
}{
	{"d", "device", "value func(name string) float64",
		"device holds what depends on the device alone. value returns the parameters, constants and quantities.", 0},
	{"t", "timing", "in *inputs, d *device", "timing holds what depends on the kernel and the problem.",
		onKernel | onSizes},
}

// kept are the terms that the model's own code reads.
var kept = strings.Fields(`total registers workgroups_per_cu matrix_step full_waves tail_count steps full_l2_step
	tail_l2_step far full_power_step tail_power_step dram_floor loops`)

// given are the names that are neither terms nor numbers of the device.
var given = strings.Fields(`m n k batch element_bytes output_bytes trans_a trans_b block_m block_n block_k num_warps
	num_stages split_k group_m stream_k local_split`)

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

// plan gives all names and formulas to a new plan, and returns the inputs.
func plan() (*gogen.Plan, []string, error) {
	list := make([]gogen.Stage, len(stages))
	for i, s := range stages {
		list[i] = gogen.Stage{Var: s.variable, Knows: s.knows}
	}
	p := gogen.New(list...)
	for _, name := range terms.Numbers() {
		if err := p.Input(name, 0, fmt.Sprintf("value(%q)", name), gogen.Once); err != nil {
			return nil, nil, err
		}
	}
	inputs := given
	for _, name := range given {
		if err := p.Input(name, onKernel|onSizes, "in."+gogen.Identifier(name), gogen.Own); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range terms.Terms {
		if t.Input == "" {
			if err := p.Define(t.Name, t.Formula, ""); err != nil {
				return nil, nil, err
			}
			continue
		}
		inputs = append(inputs, t.Name)
		if err := p.Input(t.Name, onKernel|onSizes, "in."+gogen.Identifier(t.Name), gogen.Own); err != nil {
			return nil, nil, err
		}
		if err := p.Show(t.Name); err != nil {
			return nil, nil, err
		}
	}
	return p, inputs, p.Keep(kept...)
}

// code writes the model as Go.
func code() ([]byte, error) {
	p, inputs, err := plan()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(gogen.Inputs("inputs", inputs))
	for i, s := range stages {
		b.WriteString(p.Declare(i, s.doc, s.kind, s.args, nil))
	}
	b.WriteString(p.DeclareColumns("d *device, in *inputs, t *timing"))
	return gogen.File("refined", b.String())
}
