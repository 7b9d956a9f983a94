package session

import (
	"errors"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// side is one architecture as --arch names it, with the hardware numbers that it asks to change.
type side struct {
	name   string
	whatIf string // as written, without the name
	values map[string]hw.OverrideValue
}

// parseSides reads the words of --arch: names, separated by commas, and behind a name a colon and hardware numbers, as
// in h200:clock=1.5GHz,num_sms=66. A part that has a "=" and no name before it belongs to the name before it.
func parseSides(words []string) ([]side, error) {
	var sides []side
	for _, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			part = strings.TrimSpace(part)
			before, _, changes := strings.Cut(part, "=")
			if !changes {
				sides = append(sides, side{name: part})
				continue
			}
			change := part
			if i := strings.LastIndexByte(before, ':'); i >= 0 {
				sides = append(sides, side{name: part[:i]})
				change = part[i+1:]
			}
			if len(sides) == 0 {
				return nil, diag.Inputf("%q changes a number of no architecture", part).At("--arch %s", word).
					Do("write the architecture before it, as in h200:clock=1.5GHz")
			}
			if err := sides[len(sides)-1].change(change); err != nil {
				return nil, err
			}
		}
	}
	return sides, nil
}

// change adds a hardware number.
func (s *side) change(text string) error {
	name, v, err := hw.ParseOverride(text)
	var d *diag.Error
	if errors.As(err, &d) {
		return d.At("--arch %s:%s", s.name, text)
	}
	if _, again := s.values[name]; again {
		return diag.Inputf("%s is given twice", name).At("--arch %s:%s,%s", s.name, s.whatIf, text).Do("give it once")
	}
	if s.values == nil {
		s.values = map[string]hw.OverrideValue{}
	} else {
		s.whatIf += ","
	}
	s.whatIf += text
	s.values[name] = v
	return nil
}
