package costs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/costs"
)

// Every constant has a reader, a unit, a meaning and a source, and what was measured on devices of another generation
// says that it is assumed. What was measured on the generation itself replaces it.
func TestOf(t *testing.T) {
	device := regexp.MustCompile(`H[12]00`)
	for _, generation := range []string{"hopper", "blackwell", "cdna2", ""} {
		seen := map[string]bool{}
		for _, c := range costs.Of("library", generation) {
			assumed := strings.HasPrefix(c.Source, "assumed")
			if c.Reader() == "" || c.Unit == "" || c.Doc == "" || c.Source == "" || !(c.Value > 0) || seen[c.Name] {
				t.Errorf("%+v", c)
			}
			if seen[c.Name] = true; device.MatchString(c.Source) && assumed == (generation == "hopper") &&
				c.Name != "timing_launch" {
				t.Errorf("%s: %s is from %s", generation, c.Name, c.Source)
			}
		}
	}
	for of, want := range map[[2]string]float64{
		{"library", "blackwell"}: 3.4e-6, {"pipelined", "blackwell"}: 2.4e-6, {"library", "cdna2"}: 2.4e-6,
	} {
		d := arch.Description{Constants: costs.Of(of[0], of[1])}
		if got := d.Constant("timing_launch", 0); got != want {
			t.Errorf("%v: %v, want %v", of, got, want)
		}
	}
	mi210 := arch.Description{Constants: costs.Of("library", "cdna2")}
	if got := mi210.Constant("timing_call", 0); got != 23.6e-6 {
		t.Error(got)
	}
}
