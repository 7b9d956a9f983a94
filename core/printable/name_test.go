package printable

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// odd are names that files, plugins and command lines had in attacks.
var odd = []string{
	"a b", "a'b", `a"b`, "$(touch x)", "`touch x`", "a;b", `a\`, "-rf", "{{x}}", "*", "%j", "ü", "#", ": x", "- y", "!!x",
	"&a", "|", "$HOME", "${IFS}", "~", "''", "'", "", "a\u00a0b", "(x)", "x>y", "!x",
	"a\nb", "a\r\nb", "\x1b]0;x\x07", "a\u2028b", "a\tb", "\x00", "\xff", "a/b", "../b", "..", ".", ".x", `a\b`,
	strings.Repeat("x", 300),
	"NVIDIA H100 80GB HBM3",
}

// A shell reads the words as they were given, and those that it might not are refused.
func TestShellWords(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, w := range odd {
		text, err := ShellWords("printf", "%s|", w, "end")
		if unseen := Line(w) != w; unseen != (err != nil) {
			t.Errorf("%q: %v", w, err)
		}
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(t.Context(), sh, "-c", text).Output()
		if err != nil || !bytes.Equal(out, []byte(w+"|end|")) {
			t.Errorf("%q is written as %s and read as %q, %v", w, text, out, err)
		}
		if strings.Contains(text, "\n") {
			t.Errorf("%q is written in several lines", w)
		}
	}
}

// A name stays in its folder.
func TestFileName(t *testing.T) {
	for _, name := range odd {
		bad := name == "" || strings.ContainsAny(name, "/\\\n\r\t\x1b\x00\u2028") || strings.Contains(name, "\xff") ||
			strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || len(name) > 255
		if err := FileName(name); bad != (err != nil) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
