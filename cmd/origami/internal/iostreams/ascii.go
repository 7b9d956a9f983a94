package iostreams

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// spellings are how letters of origami's texts are written where the locale has no UTF-8.
var spellings = map[rune]string{
	'µ': "u", 'μ': "u", '–': "-", '—': "-", '−': "-", '÷': "/", '×': "x", '·': "*", '…': "...", '→': "->", '←': "<-",
	'≤': "<=", '≥': ">=", '≈': "~", '±': "+-", '²': "^2", '³': "^3", '°': "deg", 'τ': "tau", 'σ': "sigma", 'Σ': "sum",
	'‘': "'", '’': "'", '“': `"`, '”': `"`, '\u00a0': " ",
}

// isUTF8 reports whether the locale of the environment takes UTF-8. It does where none is set.
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return true
}

// Letters returns a text in the letters that the locale has. What has no spelling in them is escaped.
func (s *Streams) Letters(text string) string {
	if !s.ASCII {
		return text
	}
	return string(appendASCII(nil, text))
}

func appendASCII(b []byte, text string) []byte {
	for _, r := range text {
		switch spelling, ok := spellings[r]; {
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		case ok:
			b = append(b, spelling...)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b = append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return b
}
