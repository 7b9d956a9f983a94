package show

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// pasteForm is a format for configurations that are pasted into a program.
type pasteForm struct {
	comment string
	write   func(s *iostreams.Streams, e *ask.Entry)
}

var pasteForms = map[Format]pasteForm{
	config.Triton: {"#", pasteTriton}, config.Inductor: {"#", pasteInductor}, config.CUDA: {"//", pasteCUDA},
}

// Paste writes the first configurations of an answer as a program has them.
func Paste(s *iostreams.Streams, f Format, a *ask.Ranking, top int) error {
	form := pasteForms[f]
	if err := pastes(f, a, top); err != nil {
		return err
	}
	for i := range a.Entries[:min(top, len(a.Entries))] {
		e := &a.Entries[i]
		if e.Estimate.Reject != "" {
			continue
		}
		s.Printf(form.comment+" %s on %s: %s\n", a.Problem, a.Arch.ID(), Prediction(a, e))
		form.write(s, e)
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
			Do("use json, csv, tsv or table")
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

func pasteTriton(s *iostreams.Streams, e *ask.Entry) {
	s.Printf("%s,\n", tritonConfig(&e.Config, e.Config.SplitK > 1, e.Config.Axes.All()))
}

// tritonConfig is a configuration with the values on axes.
func tritonConfig(c *gemm.Config, splits bool, axes iter.Seq2[string, string]) string {
	var b strings.Builder
	fmt.Fprintf(&b, "triton.Config({'BLOCK_SIZE_M': %d, 'BLOCK_SIZE_N': %d, 'BLOCK_SIZE_K': %d, 'GROUP_SIZE_M': %d",
		c.BlockM, c.BlockN, c.BlockK, c.GroupM)
	if splits {
		fmt.Fprintf(&b, ", 'SPLIT_K': %d", c.SplitK)
	}
	for name, value := range axes {
		fmt.Fprintf(&b, ", '%s': %s", strings.ToUpper(name), literal(value, "'"))
	}
	fmt.Fprintf(&b, "}, num_warps=%d, num_stages=%d)", c.NumWarps, c.NumStages)
	return b.String()
}

func pasteInductor(s *iostreams.Streams, e *ask.Entry) { s.Printf("%s,\n", inductorConfig(&e.Config)) }

// inductorConfig is a configuration as the class of torch/_inductor/template_heuristics.
func inductorConfig(c *gemm.Config) string {
	return fmt.Sprintf("GemmConfig(block_m=%d, block_n=%d, block_k=%d, num_stages=%d, num_warps=%d, group_m=%d)",
		c.BlockM, c.BlockN, c.BlockK, c.NumStages, c.NumWarps, c.GroupM)
}

func pasteCUDA(s *iostreams.Streams, e *ask.Entry) {
	c := &e.Config
	s.Printf("struct Config%d {\n", e.Rank)
	for _, v := range []struct {
		name  string
		value int
	}{
		{"BLOCK_M", c.BlockM}, {"BLOCK_N", c.BlockN}, {"BLOCK_K", c.BlockK}, {"NUM_WARPS", c.NumWarps},
		{"NUM_STAGES", c.NumStages}, {"GROUP_M", c.GroupM}, {"SPLIT_K", c.SplitK},
	} {
		s.Printf("  static constexpr int %s = %d;\n", v.name, v.value)
	}
	for name, value := range c.Axes.All() {
		kind := "int"
		if _, err := strconv.Atoi(value); err != nil {
			kind = "const char *"
		}
		s.Printf("  static constexpr %s %s = %s;\n", kind, strings.ToUpper(name), literal(value, `"`))
	}
	s.Printf("};\n")
}

// literal is the value on an axis in a program: a number, or a text in quotes.
func literal(value, quote string) string {
	if _, err := strconv.Atoi(value); err == nil {
		return value
	}
	return fmt.Sprintf("%s%s%s", quote, value, quote)
}
