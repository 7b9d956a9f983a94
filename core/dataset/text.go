package dataset

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of the texts of a measurement, in bytes. An executor chooses these texts, and a line must stay far below
// what is read of it.
const (
	// MaxName bounds names: of devices, drivers, references, versions.
	MaxName = 256
	// maxDetail bounds the part of an error or of a compiler's log that is kept.
	maxDetail = 2000
	// maxReasons bounds the number of throttle reasons, maxReason each.
	maxReasons, maxReason = 32, 100
)

// Text returns a text as it can be recorded: in UTF-8, and cut to a number of bytes, with an ellipsis at its end then.
func Text(text string, most int) string {
	const ellipsis = " …"
	if len(text) > most {
		end := most - len(ellipsis)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + ellipsis
	}
	return strings.ToValidUTF8(text, "?")
}

// texts lists the texts of a measurement.
func (m *Measurement) texts() []keyed {
	all := []keyed{{"detail", &m.Detail}, {"host_software", &m.Host}, {"gpu", &m.GPU}, {"library", &m.Library}}
	if n := m.Numerics; n != nil {
		all = append(all, keyed{"reference", &n.Reference})
	}
	if e := m.Environment; e != nil {
		all = append(all, keyed{"driver", &e.Driver}, keyed{"runtime", &e.Runtime})
	}
	return all
}

// Bound cuts the texts of a measurement to their limits.
func (m *Measurement) Bound() {
	if m.Numerics != nil {
		n := *m.Numerics
		m.Numerics = &n
	}
	if m.Environment != nil {
		e := *m.Environment
		e.ThrottleReasons = slices.Clone(e.ThrottleReasons[:min(len(e.ThrottleReasons), maxReasons)])
		for i, reason := range e.ThrottleReasons {
			e.ThrottleReasons[i] = Text(reason, maxReason)
		}
		m.Environment = &e
	}
	m.Detail = Text(m.Detail, maxDetail)
	for _, t := range m.texts()[1:] {
		*t.text = Text(*t.text, MaxName)
	}
}
