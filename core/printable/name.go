package printable

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// longestName is what file systems take, in bytes, less the ending of a temporary file.
const longestName = 240

// FileName says why a text cannot be the name of a file in a folder that was chosen before: it would be a path, hidden,
// read as a flag, or shown as another name.
func FileName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of the file is empty")
	case strings.ContainsAny(name, `/\`):
		return fmt.Errorf("%q is a path, and no name of a file", name)
	case name[0] == '.' || name[0] == '-':
		return fmt.Errorf("the name %q begins with %q", name, name[0])
	case Line(name) != name:
		return fmt.Errorf("the name %q has characters that cannot be seen", name)
	case len(name) > longestName:
		return fmt.Errorf("the name %.40q… is longer than %d bytes", name, longestName)
	}
	return nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// ShellWords writes words for a shell, on one line. A word that cannot be seen as it is cannot be written either: a
// line end leaves a comment, and what writes the script may show another character in its place.
func ShellWords(words ...string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if Line(w) != w {
			return "", fmt.Errorf("the word %q has characters that cannot be seen", w)
		}
		if quoted[i] = w; !plainWord.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " "), nil
}
