package target

import (
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Target{
		"sm90": {CC: 90}, "sm_90": {CC: 90}, "sm_90a": {90, ArchFeatures}, "sm90a": {90, ArchFeatures},
		"sm_100f": {100, FamilyFeatures}, "sm_120": {CC: 120},
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v, want %v", in, got, err, want)
			continue
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("Parse(%q) = %v, %v, want %v back", got.String(), again, err, got)
		}
	}
	for _, in := range []string{
		"", "sm", "sm_", "90", "sm_a", "sm_90b", "sm_9", "sm__90", "sm_-90", "sm_+90", "sm_090", "gfx942", "sm_99999",
	} {
		got, err := Parse(in)
		must.That(t, err != nil, "Parse(%q) = %v, want an error", in, got)
	}
	s := (Target{CC: 90, Suffix: ArchFeatures}).String()
	must.That(t, s == "sm_90a", "String() = %q, want sm_90a", s)
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		target, min string
		want        bool
	}{
		{"sm_90", "sm_80", true},
		{"sm_80", "sm_90", false},
		{"sm_90a", "sm_90", true},
		{"sm_90", "sm_90a", false},
		{"sm_90a", "sm_90a", true},
		{"sm_100a", "sm_90a", false}, // wgmma is gone on the next architecture
		{"sm_100a", "sm_100f", true},
		{"sm_103f", "sm_100f", true},
		{"sm_103a", "sm_100f", true},
		{"sm_103", "sm_100f", false},
		{"sm_100f", "sm_103f", false},
		{"sm_120f", "sm_100f", false},
	} {
		target := must.Get(Parse(c.target))(t)
		least := must.Get(Parse(c.min))(t)
		must.Equal(t, target.Covers(least), c.want, target, "covers", least)
	}
}

func TestEmulatesFP8(t *testing.T) {
	for name, want := range map[string]bool{
		"sm_80": false, "sm_89": false, "sm_90": true, "sm_90a": true, "sm_100": true, "sm_110": true, "sm_120": false,
	} {
		target := must.Get(Parse(name))(t)
		must.That(t, target.EmulatesFP8() == want, "%s: %t", name, !want)
	}
}
