package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// pasteForms are the formats for configurations that are pasted into a program.
var pasteForms = map[Format]func(*gemm.Config) string{config.Triton: tritonConfig, config.Inductor: inductorConfig}

// Paste writes the first configurations of an answer as a program has them.
func Paste(s *iostreams.Streams, f Format, a *ask.Ranking, top int) error {
	if err := pastes(f, a, top); err != nil {
		return err
	}
	for i := range a.Entries[:min(top, len(a.Entries))] {
		e := &a.Entries[i]
		if e.Estimate.Reject != "" {
			continue
		}
		s.Printf("# %s on %s: %s\n%s,\n", a.Problem, a.Arch.ID(), Prediction(a, e), pasteForms[f](&e.Config))
	}
	return nil
}

// pastes reports why programs do not take the first configurations of an answer in a format.
func pastes(f Format, a *ask.Ranking, top int) error {
	var families []string
	for i := range a.Arch.Families {
		if slices.Contains(a.Arch.Families[i].Pastes, string(f)) {
			families = append(families, a.Arch.Families[i].Name)
		}
	}
	switch {
	case len(families) == 0:
		return diag.Inputf("no program takes kernels of %s in the format %s", a.Arch.ID(), f).At("--format %s", f).
			Do("use json, csv or table")
	case !slices.Contains(families, a.Kernel):
		return diag.Inputf("this is a kernel of the family %s, and --format %s writes kernels of %s", a.Kernel, f,
			strings.Join(families, " and ")).Do("add --kernel %s", families[0])
	}
	for i := range a.Entries[:min(top, len(a.Entries))] {
		e := &a.Entries[i]
		if f == config.Inductor && e.Estimate.Reject == "" && (e.Config.SplitK > 1 || e.Config.Axes.String() != "") {
			return diag.Inputf("Inductor's template has no kernel %s", e.Config).Do("add --space split_k=1")
		}
	}
	return nil
}

// tritonConfig is a configuration as triton.autotune takes it.
func tritonConfig(c *gemm.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "triton.Config({'BLOCK_SIZE_M': %d, 'BLOCK_SIZE_N': %d, 'BLOCK_SIZE_K': %d, 'GROUP_SIZE_M': %d",
		c.BlockM, c.BlockN, c.BlockK, c.GroupM)
	if c.SplitK > 1 {
		fmt.Fprintf(&b, ", 'SPLIT_K': %d", c.SplitK)
	}
	for name, value := range c.Axes.All() {
		fmt.Fprintf(&b, ", '%s': %s", strings.ToUpper(name), literal(value))
	}
	fmt.Fprintf(&b, "}, num_warps=%d, num_stages=%d)", c.NumWarps, c.NumStages)
	return b.String()
}

// inductorConfig is a configuration as the class of torch/_inductor/template_heuristics.
func inductorConfig(c *gemm.Config) string {
	return fmt.Sprintf("GemmConfig(block_m=%d, block_n=%d, block_k=%d, num_stages=%d, num_warps=%d, group_m=%d)",
		c.BlockM, c.BlockN, c.BlockK, c.NumStages, c.NumWarps, c.GroupM)
}

// literal is the value on an axis in Python: a number, or a text in quotes.
func literal(value string) string {
	if _, err := strconv.Atoi(value); err == nil {
		return value
	}
	return "'" + value + "'"
}
