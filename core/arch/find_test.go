package arch

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"testing"
)

func TestFind(t *testing.T) {
	manifests := []Manifest{
		{Name: "first", Archs: []ArchEntry{
			{ID: "sm90", Devices: []DeviceEntry{{ID: "h100", Aliases: []string{"hopper"}},
				{ID: "h200", Name: "Acme Fast H200 SXM"}}},
			{ID: "empty"},
		}},
		{Name: "second", Archs: []ArchEntry{
			{ID: "sm90", Devices: []DeviceEntry{{ID: "gh200"}}},
			{ID: "gfx942", Devices: []DeviceEntry{{ID: "mi300x"}}},
		}},
	}
	for name, want := range map[string]string{
		"sm90": "first sm90@h100", "SM90": "first sm90@h100", "sm90@h200": "first sm90@h200",
		"sm90@Hopper": "first sm90@h100",
		"sm90@gh200":  "second sm90@gh200", "h200": "first sm90@h200", "hopper": "first sm90@h100",
		"mi300x": "second gfx942@mi300x", "MI-300 X": "second gfx942@mi300x", "H200 SXM": "first sm90@h200",
		"Acme Fast H200 SXM": "first sm90@h200",
	} {
		m, err := Find(manifests, name)
		must.That(t, err == nil && m.Manifest.Name+" "+m.ID() == want, "%s: %+v, %v; want %s", name, m, err, want)
	}
	for name, want := range map[string]string{
		"sm91":        `unknown architecture "sm91"; did you mean sm90`,
		"sm90@h300":   `sm90 has no device "h300"; did you mean h100, h200`,
		"":            "the architecture is missing",
		"@h200":       "the architecture is missing",
		"empty":       `unknown architecture "empty"`,
		"mi300x@sm90": `unknown architecture "mi300x"`,
	} {
		must.Fail(t, must.Err(Find(manifests, name)), want)
	}
}
