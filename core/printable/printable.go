// Package printable makes foreign text safe to show. Foreign is what the program did not write itself: names, texts and
// errors of plugins, files, drivers and command lines. Shown as it is, it could steer a terminal, look like another
// line or column, reverse the order of what is read, or be a part of a page's markup.
//
// What unicode.IsGraphic does not count is replaced by its escape in Go's notation: \n, \x1b, \u202e. That covers
// control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls and other invisible
// characters. A byte that is not UTF-8 becomes \xff. Nothing is dropped.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text as one line of printable characters: for a line of a terminal, and for a cell of a table.
func Line(text string) string {
	i := 0
	for i < len(text) && ' ' <= text[i] && text[i] < 0x7f {
		i++
	}
	if i == len(text) {
		return text
	}
	return string(Append(make([]byte, 0, len(text)+16), text, ""))
}

// Cell returns text as a cell of a file that a spreadsheet may open: as Line, and behind an apostrophe where a
// spreadsheet would compute it, which is text that begins with =, +, - or @ and is no number, no lone sign and no flag.
func Cell(text string) string {
	line := Line(text)
	if len(line) < 2 || strings.IndexByte("=+-@", line[0]) < 0 {
		return line
	}
	if _, err := strconv.ParseFloat(line, 64); err == nil {
		return line
	}
	if flag, ok := strings.CutPrefix(line, "--"); ok && strings.Trim(flag, "abcdefghijklmnopqrstuvwxyz-") == "" {
		return line
	}
	return "'" + line
}

// Append appends text to b with everything escaped that is neither printable nor in keep, which holds ASCII characters.
func Append(b []byte, text, keep string) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, `\x`...)
			b = append(b, hex[text[0]>>4], hex[text[0]&15])
		case unicode.IsGraphic(r), r < utf8.RuneSelf && strings.IndexByte(keep, byte(r)) >= 0:
			b = append(b, text[:size]...)
		default:
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			b = append(b, quoted[1:len(quoted)-1]...)
		}
		text = text[size:]
	}
	return b
}

const hex = "0123456789abcdef"

// JSON returns encoded JSON with the characters escaped that Line would escape. A parser reads the same values. Line
// ends between values stay.
func JSON(encoded []byte) []byte {
	clean := true
	for i := 0; i < len(encoded) && clean; i++ {
		clean = encoded[i] < 0x7f
	}
	if clean {
		return encoded // the encoder has escaped what is below
	}
	out := make([]byte, 0, len(encoded)+16)
	for len(encoded) > 0 {
		r, size := utf8.DecodeRune(encoded)
		if r < ' ' || unicode.IsGraphic(r) && (r != utf8.RuneError || size > 1) {
			out = append(out, encoded[:size]...)
		} else {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
			}
		}
		encoded = encoded[size:]
	}
	return out
}

// Cut returns the first bytes of a text, at most this many, and says how many there are more.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "… (" + strconv.Itoa(len(text)-end) + " bytes more)"
}
