package hw

import "strings"

// plainHeader reads a header that has one field per line and no value that YAML reads in another way than letter by
// letter. It reports false for every other text. Programs read the headers of all devices when they start, and a YAML
// decoder would take a twelfth of a selection for them.
func plainHeader(text string) (h Header, ok bool) {
	fields := map[string]*string{"arch": &h.Arch, "device": &h.Device, "name": &h.Name, "vendor": &h.Vendor}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' && !strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			continue
		}
		key, value, found := strings.Cut(line, ": ")
		switch field := fields[key]; {
		case !found:
			return h, false
		case field != nil && *field == "" && isPlain(value):
			*field = value
		case key == "default" && value == "true" && !h.Default:
			h.Default = true
		case key == "aliases" && h.Aliases == nil:
			list, ok := bracketed(value, "[", "]")
			if !ok {
				return h, false
			}
			for alias := range strings.SplitSeq(list, ", ") {
				inner, quoted := bracketed(alias, `"`, `"`)
				if !isPlain(alias) && (!quoted || !isPlain("q"+inner)) {
					return h, false
				}
				h.Aliases = append(h.Aliases, inner)
			}
		default:
			return h, false
		}
	}
	return h, h.Arch != "" // without a field, the decoder says what is wrong
}

// bracketed returns the text between two marks, or the text itself if they are not around it.
func bracketed(text, left, right string) (inner string, ok bool) {
	if inner, ok = strings.CutPrefix(text, left); ok {
		inner, ok = strings.CutSuffix(inner, right)
	}
	if !ok {
		return text, false
	}
	return inner, true
}

// isPlain reports whether a text stands for itself in YAML: it begins with a letter and has no special sign.
func isPlain(text string) bool {
	for i, c := range []byte(text) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_./()+ ", rune(c))) {
			return false
		}
	}
	return text != "" && text[len(text)-1] != ' ' && !strings.EqualFold(text, "null")
}
