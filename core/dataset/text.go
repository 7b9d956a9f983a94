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

// Bound cuts the texts of a measurement to their limits.
func (m *Measurement) Bound() {
	m.Detail, m.Host = Text(m.Detail, maxDetail), Text(m.Host, MaxName)
	if m.Numerics != nil {
		n := *m.Numerics
		n.Reference = Text(n.Reference, MaxName)
		m.Numerics = &n
	}
	if m.Environment != nil {
		e := *m.Environment
		e.Driver, e.Runtime = Text(e.Driver, MaxName), Text(e.Runtime, MaxName)
		e.ThrottleReasons = slices.Clone(e.ThrottleReasons[:min(len(e.ThrottleReasons), maxReasons)])
		for i, reason := range e.ThrottleReasons {
			e.ThrottleReasons[i] = Text(reason, maxReason)
		}
		m.Environment = &e
	}
}
