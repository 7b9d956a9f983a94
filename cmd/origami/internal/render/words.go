package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/selector"
)

// Heading names the device and the model that an answer comes from.
func Heading(a *session.Answer) string {
	return Device(a.Arch) + "\n" + Model(a.Arch, a.Kernel)
}

// Device describes a device in one line, and in a second one what the driver of this machine told of it.
func Device(d *arch.Description) string {
	units := fmt.Sprintf("%d %ss", d.Units, d.UnitName)
	if d.Partitions > 1 {
		units += fmt.Sprintf(" on %d dies", d.Partitions)
	}
	s := fmt.Sprintf("%-11s %s (%s), %s at %s", "device", d.DeviceName, d.ID(), units, d.Clock)
	if live := LiveJSON(d); live != nil {
		s += fmt.Sprintf("\n%-11s %s", "derived", liveWords(d, live))
	}
	return s
}

// liveWords says which numbers of a GPU of this machine are its own, and where the others come from.
func liveWords(d *arch.Description, live *Live) string {
	s := fmt.Sprintf("%d of %d numbers from the driver", len(live.Driver), len(d.Params))
	if len(live.Scaled) > 0 {
		s += fmt.Sprintf(", %d scaled from %s (%s)", len(live.Scaled), live.ScaledFrom, few(live.Scaled))
	} else {
		s += fmt.Sprintf(" (%s)", few(live.Driver))
	}
	return s + ": origami arch show auto"
}

// few lists the last five names: devices list the numbers that predictions rest on last.
func few(names []string) string {
	more := len(names) - 5
	if more <= 0 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[more:], ", "), more)
}

// Model describes a model in one line, with the rung of knowledge that it and the clock stand on.
func Model(d *arch.Description, kernel string) string {
	s := fmt.Sprintf("%-11s %s, kernel family %s, rung %s", "model", d.Model, kernel, d.Rung)
	if d.ClockRung != d.Rung {
		s += fmt.Sprintf(" (clock: %s)", d.ClockRung)
	}
	return s
}

// MappingWords says how workgroups are dealt to dies.
func MappingWords(m arch.Mapping) string {
	s := fmt.Sprintf("launch order: groups of %s, dealt to %s", Count(m.GroupM, "row", "rows"), Count(m.XCDs, "XCD", "XCDs"))
	if m.Chunk > 0 {
		s += fmt.Sprintf(" in chunks of %d", m.Chunk)
	}
	return s
}

// Counts says how many candidates there were, and why the others were rejected, most frequent reason first.
func Counts(feasible int, rejected []selector.ReasonCount) string {
	s := fmt.Sprintf("%d usable", feasible)
	if len(rejected) == 0 {
		return s
	}
	sorted := slices.Clone(rejected)
	slices.SortStableFunc(sorted, func(a, b selector.ReasonCount) int { return b.Count - a.Count })
	total := 0
	parts := make([]string, len(sorted))
	for i, r := range sorted {
		total += r.Count
		parts[i] = fmt.Sprintf("%d %s", r.Count, r.Reason)
	}
	return fmt.Sprintf("%s, %d rejected (%s)", s, total, strings.Join(parts, ", "))
}

// TermKind names how a term relates to the total.
func TermKind(k arch.TermKind) string {
	switch k {
	case arch.KindStep:
		return "step"
	case arch.KindShare:
		return "share"
	case arch.KindTotal:
		return "total"
	default:
		return "intermediate"
	}
}

// Wrap breaks words, joined by commas, into lines of at most width columns.
func Wrap(lead string, words []string, width int) []string {
	lines := []string{lead}
	for i, w := range words {
		if i < len(words)-1 {
			w += ","
		}
		last := &lines[len(lines)-1]
		if i > 0 && utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(w) > width {
			lines = append(lines, w)
			continue
		}
		*last += " " + w
	}
	return lines
}
