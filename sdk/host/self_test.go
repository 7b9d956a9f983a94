package host

import (
	"os"
	"path/filepath"
	"testing"
)

// Without the system's help, a program is found under the name that it was called by, and no other program is.
func TestCalledAs(t *testing.T) {
	want := self()
	if got := calledAs(os.Args[0]); got != want {
		t.Errorf("called as %s: %q, want %q", os.Args[0], got, want)
	}
	t.Setenv("PATH", filepath.Dir(want)+":"+os.Getenv("PATH"))
	if got := calledAs(filepath.Base(want)); got != want {
		t.Errorf("called from PATH: %q, want %q", got, want)
	}
	for _, other := range []string{"sh", "go", "", filepath.Join(t.TempDir(), "missing")} {
		if got := calledAs(other); got != "" {
			t.Errorf("called as %q: %q", other, got)
		}
	}
}
